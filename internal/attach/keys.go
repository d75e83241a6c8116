package attach

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/bawn-dev/bawn/internal/terminal/modes"
)

// DefaultDetachKeys are the keys that leave a session.
const DefaultDetachKeys = "ctrl-],d"

// DetachKeys are keys that leave a session when pressed one after the other. The
// zero value has no keys, so that no key leaves the session.
type DetachKeys []byte

// ParseDetachKeys reads keys that are written as "ctrl-],d": a character each, or
// ctrl- and one of a to z, @, [, \, ], ^ and _. "" and "none" stand for no keys.
func ParseDetachKeys(s string) (DetachKeys, error) {
	if s == "" || s == "none" {
		return nil, nil
	}
	var keys DetachKeys
	for word := range strings.SplitSeq(s, ",") {
		key, ok := parseKey(word)
		if !ok {
			return nil, fmt.Errorf("%q is no key; want one such as \"d\" or \"ctrl-]\", or several with commas between", word)
		}
		keys = append(keys, key)
	}
	if keys[0] >= ' ' && keys[0] != 0x7f {
		return nil, errors.New("the first key must be one with ctrl-: any other is typed all the time")
	}
	return keys, nil
}

func parseKey(word string) (byte, bool) {
	name, ctrl := strings.CutPrefix(strings.ToLower(word), "ctrl-")
	switch {
	case ctrl && len(name) == 1 && (name[0] >= 'a' && name[0] <= 'z' || strings.IndexByte(`@[\]^_`, name[0]) >= 0):
		return name[0] & 0x1f, true
	case !ctrl && len(word) == 1 && word[0] > ' ' && word[0] < 0x7f:
		return word[0], true
	}
	return 0, false
}

// holdKeys is how long the beginning of the detach keys is held back from the
// guest, who may be meant.
const holdKeys = time.Second

// A detacher looks for the detach keys in typed text.
type detacher struct {
	keys DetachKeys
	held []byte // the beginning of them, as typed
	at   int    // how many keys that is
}

// feed takes typed bytes and returns those that are the guest's; true once the
// keys are complete. Keys typed after them are dropped.
func (d *detacher) feed(b []byte) (guest []byte, detach bool) {
	for len(b) > 0 {
		n, key, press := nextKey(b)
		switch {
		case len(d.keys) == 0:
			return append(guest, b...), false
		case press && key == d.keys[d.at]:
			d.held = append(d.held, b[:n]...)
			if d.at++; d.at == len(d.keys) {
				return guest, true
			}
		case !press && d.at > 0: // the release of a key that is held back
			d.held = append(d.held, b[:n]...)
		case d.at > 0: // another key: the held keys are the guest's, and this may begin anew
			guest = append(guest, d.release()...)
			continue
		default:
			guest = append(guest, b[:n]...)
		}
		b = b[n:]
	}
	return guest, false
}

// release returns the held keys.
func (d *detacher) release() []byte {
	held := d.held
	d.held, d.at = nil, 0
	return held
}

// nextKey returns how many bytes of b are one key, and which if it is one that
// detach keys are made of. Programs have terminals write keys as CSI 93;5u
// (kitty's protocol) or CSI 27;5;93~ (xterm's), also where they are released.
func nextKey(b []byte) (n int, key byte, press bool) {
	if b[0] != modes.Escape || len(b) < 3 || b[1] != '[' {
		return 1, b[0], true
	}
	i := bytes.IndexFunc(b[2:], func(r rune) bool { return r >= 0x40 && r <= 0x7e })
	if i < 0 {
		return 1, b[0], true
	}
	n = i + 3
	fields := strings.Split(string(b[2:n-1]), ";")
	switch {
	case b[n-1] == 'u' && len(fields) <= 3:
	case b[n-1] == '~' && len(fields) == 3 && fields[0] == "27":
		fields = []string{fields[2], fields[1]}
	default:
		return n, 0, true // another key, whole
	}
	return encodedKey(n, fields)
}

// encodedKey reads the code of a key, and modifiers:event.
func encodedKey(n int, fields []string) (int, byte, bool) {
	number, _, _ := strings.Cut(fields[0], ":")
	code, err := strconv.Atoi(number)
	if err != nil || code > 0x7e || code < 0 {
		return n, 0, true
	}
	modifiers, event := 1, "1"
	if len(fields) > 1 {
		m, e, ok := strings.Cut(fields[1], ":")
		if ok {
			event = e
		}
		if modifiers, err = strconv.Atoi(m); err != nil {
			return n, 0, true
		}
	}
	if event == "3" {
		return n, 0, false
	}
	const locks = 64 | 128 // caps and num
	switch (modifiers - 1) &^ locks {
	case 0:
		return n, byte(code), true
	case 4:
		return n, byte(code) & 0x1f, true
	}
	return n, 0, true
}
