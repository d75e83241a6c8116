package modes

import (
	"bytes"
	"strconv"
	"strings"
)

// MaxSequence is how many bytes of a control sequence are followed. What is longer, such as
// a picture, is for those who see it live and are asked by it.
const MaxSequence = 64 << 10

// A Splitter cuts what a program writes to its terminal into text and control
// sequences (ECMA-48 section 5.4, and xterm's ctlseqs), across the borders of
// writes, as a terminal does. A control character in the middle of a sequence
// counts as text before the sequence. A sequence that another one interrupts is
// dropped. The zero value begins between two sequences.
type Splitter struct {
	state   splitState
	pending []byte // a sequence of which the end has not come
	long    bool   // it has become too long
}

type splitState uint8

const (
	inText   splitState = iota
	inEscape            // after ESC, and bytes 0x20 to 0x2f
	inCSI               // until a byte of 0x40 or above
	inString            // OSC, DCS, APC, PM, SOS: until ST, an OSC also until BEL
	inStringEscape
)

// Control characters (ECMA-48). Cancel ends a sequence or a string that has been
// begun.
const (
	Enquiry = 0x05
	Bell    = 0x07
	Cancel  = 0x18
	subst   = 0x1a
	Escape  = 0x1b
)

// Pending is how many bytes of a sequence have come of which the end has not; 0
// between two.
func (s *Splitter) Pending() int { return len(s.pending) }

// Split calls text for each run of text and sequence for each complete control
// sequence in b, in their order. Both are handed bytes that are valid until they
// return.
func (s *Splitter) Split(b []byte, text, sequence func([]byte)) {
	for len(b) > 0 {
		switch s.state {
		case inText:
			b = s.text(b, text)
		case inString, inStringEscape:
			b = s.string(b, sequence)
		default:
			s.control(b[:1], text, sequence)
			b = b[1:]
		}
	}
}

// enter goes to a state at the begin of a sequence, or after its end.
func (s *Splitter) enter(state splitState, begin ...byte) {
	s.state, s.pending, s.long = state, append(s.pending[:0], begin...), false
}

// text hands on text up to the next sequence, and returns the rest.
func (s *Splitter) text(b []byte, text func([]byte)) []byte {
	i := bytes.IndexByte(b, Escape)
	if i < 0 {
		text(b)
		return nil
	}
	if i > 0 {
		text(b[:i])
	}
	s.enter(inEscape, Escape)
	return b[i+1:]
}

// control takes one byte of a sequence that is no string.
func (s *Splitter) control(b []byte, text, sequence func([]byte)) {
	switch c := b[0]; {
	case c == Escape:
		s.enter(inEscape, Escape)
	case c == Cancel || c == subst || len(s.pending) > MaxSequence:
		s.enter(inText)
	case c < ' ':
		text(b)
	case c == 0x7f: // means nothing anywhere
	default:
		s.pending = append(s.pending, c)
		s.part(c, sequence)
	}
}

// part takes a byte that has been appended to the sequence.
func (s *Splitter) part(c byte, sequence func([]byte)) {
	second := len(s.pending) == 2
	switch {
	case s.state == inEscape && second && c == '[':
		s.state = inCSI
	case s.state == inEscape && second && strings.IndexByte("]P_^X", c) >= 0:
		s.state = inString
	case s.state == inEscape && c >= '0', s.state == inCSI && c >= '@':
		sequence(s.pending)
		s.enter(inText)
	}
}

// string takes bytes of a string up to its end, and returns the rest.
func (s *Splitter) string(b []byte, sequence func([]byte)) []byte {
	if s.state == inStringEscape {
		if b[0] != '\\' { // a string without an end, and what begins another sequence
			s.enter(inEscape, Escape)
			return b
		}
		return s.stringEnds(b, 1, sequence)
	}
	i := bytes.IndexFunc(b, func(r rune) bool { return r == Escape || r == Cancel || r == subst || r == Bell && s.pending[1] == ']' })
	switch {
	case i < 0:
		s.grow(b)
		return nil
	case b[i] == Escape:
		s.grow(b[:i+1])
		s.state = inStringEscape
		return b[i+1:]
	case b[i] != Bell:
		s.enter(inText)
		return b[i+1:]
	}
	return s.stringEnds(b, i+1, sequence)
}

func (s *Splitter) stringEnds(b []byte, n int, sequence func([]byte)) []byte {
	if s.grow(b[:n]); !s.long {
		sequence(s.pending)
	}
	s.enter(inText)
	return b[n:]
}

func (s *Splitter) grow(b []byte) {
	if s.long = s.long || len(s.pending)+len(b) > MaxSequence; !s.long {
		s.pending = append(s.pending, b...)
	}
}

// A csi is a control sequence of ESC [ as its parts.
type csi struct {
	private byte   // one of <=>? or 0
	params  string // digits, ; and :
	between string // bytes 0x20 to 0x2f
	final   byte
}

func parseCSI(seq []byte) (csi, bool) {
	if len(seq) < 3 || seq[1] != '[' {
		return csi{}, false
	}
	c := csi{final: seq[len(seq)-1]}
	body := string(seq[2 : len(seq)-1])
	if body != "" && strings.IndexByte("<=>?", body[0]) >= 0 {
		c.private, body = body[0], body[1:]
	}
	i := strings.IndexFunc(body, func(r rune) bool { return r < '0' || r > ';' })
	if i < 0 {
		i = len(body)
	}
	c.params, c.between = body[:i], body[i:]
	return c, true
}

// first returns the first parameter, or otherwise if that is not a number.
func (c csi) first(otherwise int) int {
	p, _, _ := strings.Cut(c.params, ";")
	if n, err := strconv.Atoi(p); err == nil {
		return n
	}
	return otherwise
}

// Asks reports whether a terminal would answer the sequence. The answer would reach
// the reader of the terminal's keys.
func Asks(seq []byte) bool {
	switch seq[1] {
	case 'Z': // DECID
		return true
	case '[':
		c, ok := parseCSI(seq)
		return ok && c.asks()
	case ']': // OSC 4;1;? and the like
		return bytes.Contains(seq, []byte(";?"))
	case 'P': // DECRQSS, XTGETTCAP
		return bytes.HasPrefix(seq[2:], []byte("$q")) || bytes.HasPrefix(seq[2:], []byte("+q"))
	case '_': // pictures; who shows them says so
		return true
	}
	return false
}

func (c csi) asks() bool {
	switch c.final {
	case 'n': // DSR
		return c.private != '>' // that one sets a mode
	case 'c', 'x': // DA, DECREQTPARM
		return c.between == ""
	case 'q': // XTVERSION
		return c.private == '>'
	case 'p': // DECRQM
		return c.between == "$"
	case 'u': // the keyboard's mode
		return c.private == '?'
	case 't': // the window's size and title
		n := c.first(0)
		return c.private == 0 && c.between == "" && n >= 11 && n <= 21
	}
	return false
}

// Lasting reports whether a sequence is worth repeating to somebody who comes
// later: no clipboard, no notice, no bell.
func Lasting(seq []byte) bool {
	if Asks(seq) {
		return false
	}
	if seq[1] != ']' {
		return true
	}
	number, _, _ := strings.Cut(string(bytes.TrimRight(seq[2:], "\a\x1b\\")), ";")
	return number != "52" && number != "9" && number != "99" && number != "777"
}
