package attach

import (
	"bytes"

	"github.com/bawn-dev/bawn/internal/terminal/modes"
)

// scrollBack is how much output is kept for later viewers.
const scrollBack = 256 << 10

// A screen is a host's model of the guest's terminal: the last output, and the
// modes in force.
type screen struct {
	modes.Splitter
	modes.Modes
	tail []byte      // without questions to the terminal
	base modes.Modes // those in force where the tail begins
}

// feed takes the guest's output, and returns it without queries that a terminal
// would answer and sequences that are not for later viewers. A sequence that is
// not complete yet comes with the call in which it is.
func (s *screen) feed(b []byte) []byte {
	quiet := make([]byte, 0, len(b)+s.Pending())
	s.Split(b, func(text []byte) {
		quiet = appendWithout(quiet, text)
	}, func(seq []byte) {
		s.See(seq)
		if modes.Lasting(seq) {
			quiet = append(quiet, seq...)
		}
	})
	s.keep(quiet)
	return quiet
}

// appendWithout leaves out the bell, and the question for a terminal's name
// (ENQ).
func appendWithout(to, text []byte) []byte {
	if bytes.IndexByte(text, modes.Bell) < 0 && bytes.IndexByte(text, modes.Enquiry) < 0 {
		return append(to, text...)
	}
	for _, c := range text {
		if c != modes.Bell && c != modes.Enquiry {
			to = append(to, c)
		}
	}
	return to
}

// keep appends to the tail, of which it lets the older half go when there is
// twice as much as there may be.
func (s *screen) keep(b []byte) {
	s.tail = append(s.tail, b...)
	if len(s.tail) <= 2*scrollBack {
		return
	}
	at := len(s.tail) - scrollBack
	if i := bytes.IndexByte(s.tail[at:], '\n'); i >= 0 {
		at += i + 1 // so that it does not begin within a sequence
	} else if i := bytes.IndexByte(s.tail[at:], modes.Escape); i >= 0 {
		at += i
	}
	var split modes.Splitter
	split.Split(s.tail[:at], func([]byte) {}, s.base.See)
	s.tail = append([]byte(nil), s.tail[at:]...)
}

// again returns what shows the screen to a terminal that is empty.
func (s *screen) again() []byte {
	var b bytes.Buffer
	b.Write(s.base.Again())
	b.Write(s.tail)
	return b.Bytes()
}
