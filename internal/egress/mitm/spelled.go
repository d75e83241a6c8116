package mitm

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf16"
)

// A form is how a value may stand in a text.
type form struct {
	text  []byte
	owner int  // of which secret
	exact bool // no escape is undone
	fold  bool // letters may have changed their case
}

// spelled are forms of values. They are found however they are escaped, and with line
// ends, blanks and NULs between: base64 is broken into lines (RFC 2045 section 6.8),
// headers are folded, and UTF-16 adds a NUL to each ASCII character.
type spelled struct {
	forms   []form
	longest int
	starts  [1 << 8][]int   // the forms that begin with a byte
	firsts  [1 << 8]bool    // bytes with which a form may begin, or an escape
	pairs   [1 << 10]uint64 // the first two bytes of every form
	triples [1 << 10]uint64 // a hash of the first three
	blank   bool            // one of these is a blank, a NUL or a line end
}

const (
	maxBreak  = 16 // bytes that may stand where a form is broken
	expansion = 12 // bytes that spell one of a form, on average, at most
)

// shortestFolded is the length from which a value is found in another case: a short one may
// be a word.
const shortestFolded = 8

// addValue adds a value in the forms in which programs write one.
func (s *spelled) addValue(owner int, value []byte) {
	fold := len(value) >= shortestFolded
	s.add(form{text: canonical(value), owner: owner, fold: fold})
	if bytes.ContainsFunc(value, func(r rune) bool { return r < 0x80 && leads(byte(r)) }) {
		s.add(form{text: bytes.Clone(value), owner: owner, exact: true, fold: fold})
	}
	s.add(form{text: fmt.Appendf(nil, "%x", value), owner: owner, fold: true})
	s.add(form{text: listed(value), owner: owner})
	little, big := wideForms(value)
	for _, wide := range [][]byte{little, big} {
		if bytes.ContainsFunc(value, func(r rune) bool { return r >= 0x80 }) { // others are found without their NULs
			s.add(form{text: wide, owner: owner, exact: true})
		}
	}
	once := base64Forms(value)
	packed := slices.Concat(once, base64Forms(little))
	for _, one := range once {
		packed = append(packed, base64Forms(one)...)
	}
	for _, one := range packed {
		s.add(form{text: one, owner: owner})
	}
}

// listed returns the bytes of a value as JSON has a list of numbers.
func listed(value []byte) (out []byte) {
	for i, c := range value {
		if i > 0 {
			out = append(out, ',')
		}
		out = strconv.AppendUint(out, uint64(c), 10)
	}
	return out
}

// wideForms returns a value in UTF-16, with both orders of bytes.
func wideForms(value []byte) (little, big []byte) {
	for _, unit := range utf16.Encode([]rune(string(value))) {
		little = binary.LittleEndian.AppendUint16(little, unit)
		big = binary.BigEndian.AppendUint16(big, unit)
	}
	return little, big
}

// canonical undoes every escape that a value itself seems to have.
func canonical(value []byte) (out []byte) {
	for len(value) > 0 {
		c, more := next(value)
		if more {
			c = plainChar(value[0])
		}
		out, value = append(out, c.text[:c.size]...), value[c.n:]
	}
	return out
}

func (s *spelled) add(f form) {
	same := func(o form) bool { return bytes.Equal(o.text, f.text) && o.exact == f.exact && o.fold == f.fold }
	if len(f.text) < shortest || slices.ContainsFunc(s.forms, same) {
		return
	}
	s.forms = append(s.forms, f)
	s.longest = max(s.longest, len(f.text))
	s.blank = s.blank || slices.ContainsFunc(f.text[:3], isBreak)
	s.firsts['%'], s.firsts['\\'], s.firsts['&'], s.firsts['='] = true, true, true, true
	for _, a := range f.cases(f.text[0]) {
		s.firsts[a] = true
		s.starts[a] = append(slices.Clip(s.starts[a]), len(s.forms)-1) // others may share it
		for _, b := range f.cases(f.text[1]) {
			mark(&s.pairs, uint32(a)<<8|uint32(b))
			for _, c := range f.cases(f.text[2]) {
				mark(&s.triples, hash3(a, b, c))
			}
		}
	}
}

func mark(set *[1 << 10]uint64, i uint32)        { set[i>>6] |= 1 << (i & 63) }
func marked(set *[1 << 10]uint64, i uint32) bool { return set[i>>6]&(1<<(i&63)) != 0 }

func hash3(a, b, c byte) uint32 { return hash(uint32(a)<<16 | uint32(b)<<8 | uint32(c)) }

// cases are the bytes that stand for c.
func (f form) cases(c byte) []byte {
	switch {
	case f.fold && isLetter(c):
		return []byte{c, swapCase(c)}
	case c == ' ':
		return []byte{' ', '+'}
	}
	return []byte{c}
}

func swapCase(c byte) byte {
	if c >= '0' && c <= '9' {
		return c
	}
	return c ^ 0x20
}

// span is how many bytes a form takes up at most.
func (s *spelled) span() int { return expansion * s.longest }

// passable is how many characters of a form may pass before the others are known. The
// next bytes of a stream may take long, and its reader waits for these.
const passable = 3

// maybe returns the forms that may begin where b does, at little cost; more says that b ends
// before that is known.
func (s *spelled) maybe(b []byte) (forms []int, more bool) {
	if leads(b[0]) {
		c, more := next(b)
		if forms = s.starts[b[0]]; c.text[0] != b[0] {
			forms = append(slices.Clip(forms), s.starts[c.text[0]]...)
		}
		return forms, more
	}
	forms = s.starts[b[0]]
	if len(forms) > 0 && !s.begun3(b) {
		return nil, false
	}
	return forms, false
}

// begun3 reports whether a form may begin with the first three characters of b.
func (s *spelled) begun3(b []byte) bool {
	var first [3]byte
	n, at := 0, 0
	for ; n < len(first) && at < min(len(b), len(first)+maxBreak); at++ {
		switch {
		case leads(b[at]):
			return true
		case n == 0 || !isBreak(b[at]):
			first[n] = b[at]
			n++
		case s.blank:
			return true
		}
		if n == 2 && !marked(&s.pairs, uint32(first[0])<<8|uint32(first[1])) {
			return false
		}
	}
	return n < len(first) || marked(&s.triples, hash3(first[0], first[1], first[2]))
}

// find returns the first place where a form stands, how many bytes it takes up there, and
// the one that takes up the most there, or -1, 0, -1.
func (s *spelled) find(b []byte) (at, n, which int) {
	for i := range b {
		if !s.firsts[b[i]] {
			continue
		}
		n, which := 0, -1
		forms, _ := s.maybe(b[i:])
		for _, f := range forms {
			if in, _, whole := s.match(b[i:], s.forms[f]); whole && in > n {
				n, which = in, f
			}
		}
		if which >= 0 {
			return i, n, which
		}
	}
	return -1, 0, -1
}

// match reports whether b begins with a form, how many bytes of b are like it, and how many
// of the form's these spell.
func (s *spelled) match(b []byte, f form) (n, i int, whole bool) {
	broke, most := 0, min(len(b), s.span())
	for i < len(f.text) {
		if n >= most {
			return n, i, false
		}
		c := plainChar(b[n])
		if !f.exact && leads(b[n]) {
			var more bool
			if c, more = next(b[n:]); more {
				return len(b), i, false
			}
		}
		switch {
		case f.has(i, c):
			i, broke = i+c.size, 0
		case i > 0 && broke < maxBreak && c.size == 1 && isBreak(c.text[0]):
			broke++
		default:
			return n, i, false
		}
		n += c.n
	}
	return n, i, true
}

// has reports whether a form goes on with c at i.
func (f form) has(i int, c char) bool {
	switch given := c.text[0]; {
	case c.size > 1:
		return bytes.HasPrefix(f.text[i:], c.text[:c.size])
	case given == f.text[i]:
		return true
	case given == '+':
		return f.text[i] == ' ' // in a query or a form
	default:
		return f.fold && isLetter(given) && swapCase(given) == f.text[i]
	}
}

func isBreak(c byte) bool { return c == '\r' || c == '\n' || c == ' ' || c == '\t' || c == 0 }

// begun returns how many bytes at the end of b may be the beginning of a form, and how
// many belong to one that is too long to pass.
func (s *spelled) begun(b []byte) (some, long int) {
	for n := min(s.span()-1, len(b)); n > 0; n-- {
		end := b[len(b)-n:]
		if !s.firsts[end[0]] {
			continue
		}
		forms, more := s.maybe(end)
		if more {
			return max(some, n), n
		}
		for _, f := range forms {
			in, i, whole := s.match(end, s.forms[f])
			if whole || in < n {
				continue
			}
			if some = max(some, n); i > passable {
				return some, n
			}
		}
	}
	return some, 0
}

func isLetter(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
