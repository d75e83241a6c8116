package picture

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/creack/pty"
)

// A Step waits until the terminal has shown a text, and then types.
type Step struct {
	Until string        // text to wait for, after the text of the step before
	Think time.Duration // pause between the text and the typing
	Type  string        // keys to type
}

// pace is the time between two keys, patience that until a text is shown.
const (
	pace     = 35 * time.Millisecond
	patience = 2 * time.Minute
)

// Record runs a command in a new terminal and types what the steps say. It returns when the
// command has ended.
func Record(cmd *exec.Cmd, width, height int, steps []Step) (*Cast, error) {
	f, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: uint16(width), Rows: uint16(height)})
	if err != nil {
		return nil, err
	}
	defer f.Close()
	c := &Cast{Width: width, Height: height}
	shown := make(chan []byte, 1024)
	go read(f, shown)
	begun, seen := time.Now(), []byte{}
	keep := func(p []byte) {
		c.Events = append(c.Events, Event{At: time.Since(begun), Data: string(p)})
		seen = append(seen, p...)
	}
	for _, s := range steps {
		if err := wait(&seen, s.Until, shown, keep); err != nil {
			return c, errors.Join(err, cmd.Process.Kill())
		}
		hold(s.Think, shown, keep)
		for _, key := range s.Type {
			if _, err := io.WriteString(f, string(key)); err != nil {
				return c, err
			}
			hold(pace, shown, keep)
		}
	}
	for p := range shown {
		keep(p)
	}
	return c, cmd.Wait()
}

// read hands on what the terminal shows until nobody has it open.
func read(f io.Reader, to chan<- []byte) {
	defer close(to)
	for buffer := make([]byte, 32<<10); ; {
		n, err := f.Read(buffer)
		if n > 0 {
			to <- bytes.Clone(buffer[:n])
		}
		if err != nil {
			return // EIO: the command has ended
		}
	}
}

// wait keeps what is shown until that holds a text, and takes that off.
func wait(seen *[]byte, text string, shown <-chan []byte, keep func([]byte)) error {
	limit := time.After(patience)
	for {
		if i := bytes.Index(*seen, []byte(text)); i >= 0 {
			*seen = (*seen)[i+len(text):]
			return nil
		}
		select {
		case p, ok := <-shown:
			if !ok {
				return fmt.Errorf("the command has ended before it showed %q; last %q", text, tail(*seen))
			}
			keep(p)
		case <-limit:
			return fmt.Errorf("waited in vain for %q; last %q", text, tail(*seen))
		}
	}
}

func tail(p []byte) string { return strings.ToValidUTF8(string(p[max(0, len(p)-2000):]), "") }

// hold keeps what is shown for some time.
func hold(d time.Duration, shown <-chan []byte, keep func([]byte)) {
	for end := time.After(d); ; {
		select {
		case p, ok := <-shown:
			if !ok {
				return
			}
			keep(p)
		case <-end:
			return
		}
	}
}
