//go:build linux || darwin

package terminal

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"math/big"
	"regexp"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// How long a terminal may take to show what was written: one of which it is not known
// whether it tells, and one that has told before.
const (
	showsUnknown = 2 * time.Second
	showsKnown   = time.Minute
)

// position finds a terminal's report of its cursor's position (CPR, ECMA-48 section 8.3.14).
var position = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\x1b\[[0-9]{1,5};[0-9]{1,5}R`) })

// At how many places a terminal is asked, one after the other, and on a screen of which
// size where it does not tell that.
const (
	places               = 3
	usualRows, usualCols = 24, 80
)

// awaitShown waits until the terminal has shown what was written. A slow line may hold
// megabytes of the guest's output before that, and what is typed meanwhile answers the
// guest. The terminal, which does one thing after the other, is asked where its cursor is,
// at places that nobody can guess: a guest may have asked before, and its answers come
// first. Where a terminal does not tell, awaitShown returns nil after a while.
func (t *talk) awaitShown() error {
	if t.stage.plain {
		return nil
	}
	ask, want, err := t.positions()
	if err != nil {
		return err
	}
	if _, err := t.Write(ask); err != nil {
		return err
	}
	limit := showsUnknown
	if *t.stage.tells {
		limit = showsKnown
	}
	var said []byte
	for until := time.Now().Add(limit); ; {
		ready, woken, err := poll(t.console.fd, unix.POLLIN, t.pump.wakeFD, max(0, time.Until(until)))
		switch {
		case err != nil:
			return err
		case woken:
			return context.Cause(t.ctx)
		case !ready:
			return nil
		}
		part := make([]byte, keyBuffer)
		n, err := readAll(t.console.fd, part)
		if err != nil {
			return fmt.Errorf("user's terminal can't be read: %w", err)
		}
		said = append(said, part[:n]...)
		all := position().FindAll(said, -1)
		all = all[max(0, len(all)-places):]
		if bytes.Equal(bytes.Join(all, nil), want) {
			*t.stage.tells = true
			return nil
		}
		said = said[max(0, len(said)-keyBuffer):]
	}
}

// positions returns what asks a terminal where its cursor is, at places of the screen, and
// its answer. The cursor is afterwards where it was before.
func (t *talk) positions() (ask, answer []byte, err error) {
	rows, cols := t.Size()
	if rows == 0 || cols == 0 {
		rows, cols = usualRows, usualCols
	}
	ask = []byte("\x1b7")
	for range places {
		var at [2]int64
		for i, most := range []int{rows, cols} {
			n, err := rand.Int(rand.Reader, big.NewInt(int64(most)))
			if err != nil {
				return nil, nil, err
			}
			at[i] = n.Int64() + 1
		}
		ask = fmt.Appendf(ask, "\x1b[%d;%dH\x1b[6n", at[0], at[1])
		answer = fmt.Appendf(answer, "\x1b[%d;%dR", at[0], at[1])
	}
	return append(ask, "\x1b8"...), answer, nil
}
