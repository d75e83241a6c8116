//go:build linux || darwin

package terminal

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/terminal/modes"
)

const (
	secondScreen = "\x1b[?1049h"
	firstScreen  = "\x1b[?1049l"
	empty        = "\x1b[2J\x1b[H"
	bracketsOn   = "\x1b[?2004h" // what is pasted comes in brackets
	bracketsOff  = "\x1b[?2004l"
)

// noticing is how long a note stands alone in the place of a guest that draws
// its own screen.
const noticing = 2 * time.Second

// A stage is the state of the user's terminal during a conversation: a screen
// that shows nothing of the guest's, and shows text as it was written. The
// guest's own modes come back afterwards, as far as they are followed;
// rendition, character sets other than G0, colors and the saved cursor are lost.
type stage struct {
	console *console
	plain   bool         // the terminal knows no control sequences
	tells   *bool        // the terminal has told where its cursor is
	guest   *modes.Modes // what the guest has made of it
	spoken  bool         // something was written
	note    []byte       // stays on the guest's screen
}

// Emulates reports whether a terminal of that name (TERM, environ(7)) can be
// expected to understand control sequences (ECMA-48).
func Emulates(name string) bool { return name != "" && name != "dumb" && name != "unknown" }

// Plain says that the user's terminal understands no control sequences. Call it
// before a conversation.
func (t *Terminal) Plain() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.plain = true
}

// enter makes the terminal Bawn's own.
func (s *stage) enter() error {
	if s.plain {
		return s.console.put([]byte{modes.Cancel, '\r', '\n'})
	}
	b := append([]byte(modes.End), s.guest.Away()...)
	if s.guest.Alternate() == 0 {
		b = append(b, secondScreen...)
	}
	return s.console.put(append(b, modes.Plain+empty+bracketsOn...))
}

// leave gives the terminal back to the guest.
func (s *stage) leave(t *talk) error {
	if s.plain {
		return s.console.put(s.note)
	}
	alt := s.guest.Alternate()
	if alt != 0 && !s.spoken && len(s.note) > 0 {
		if err := s.console.put(s.note); err == nil {
			_ = t.pause(noticing) // also the end of the conversation ends it
		}
	}
	off, on := firstScreen, ""
	if alt != 0 {
		off, on = fmt.Sprintf("\x1b[?%dl", alt), fmt.Sprintf("\x1b[?%dh", alt)
	}
	b := append([]byte("\x1b[0m"+bracketsOff+empty+off+"\x1b[0m"), s.note...)
	b = append(b, on...)
	return s.console.put(append(b, s.guest.Back()...))
}

// put writes all of b, and waits no longer than a terminal that is alive needs.
func (c *console) put(b []byte) error {
	for len(b) > 0 {
		n, err := unix.Write(c.fd, b)
		b = b[max(n, 0):]
		switch err {
		case nil, unix.EINTR:
		case unix.EAGAIN:
			if ready, _, _ := poll(c.fd, unix.POLLOUT, -1, drainWait); !ready {
				return fmt.Errorf("user's terminal takes nothing: %w", err)
			}
		default:
			return fmt.Errorf("user's terminal can't be written: %w", err)
		}
	}
	return nil
}
