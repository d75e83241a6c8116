package mitm

import (
	"bytes"
	"encoding/base64"
	"slices"
)

// needles are texts that are sought together: each form of each secret.
type needles struct {
	texts   [][]byte
	owner   []int // of which secret texts[i] is a form
	longest int
	pairs   [1 << 10]uint64 // the first two bytes of every text
	firsts  [1 << 2]uint64  // the first byte
}

// shortest is the length below which a text can't be told from others.
const shortest = 6

func (s *needles) add(owner int, texts ...[]byte) {
	for _, t := range texts {
		if len(t) < shortest || slices.ContainsFunc(s.texts, func(o []byte) bool { return bytes.Equal(o, t) }) {
			continue
		}
		s.texts, s.owner = append(s.texts, t), append(s.owner, owner)
		s.longest = max(s.longest, len(t))
		pair := uint(t[0])<<8 | uint(t[1])
		s.pairs[pair>>6] |= 1 << (pair & 63)
		s.firsts[t[0]>>6] |= 1 << (t[0] & 63)
	}
}

// span is how many bytes a text takes up at most.
func (s *needles) span() int { return s.longest }

// find returns the first place where a text stands, its length, and the longest text there,
// or -1, 0, -1.
func (s *needles) find(b []byte) (at, n, which int) {
	for i := 0; i+1 < len(b); i++ {
		if s.firsts[b[i]>>6]&(1<<(b[i]&63)) == 0 {
			continue
		}
		pair := uint(b[i])<<8 | uint(b[i+1])
		if s.pairs[pair>>6]&(1<<(pair&63)) == 0 {
			continue
		}
		if which := s.prefixOf(b[i:]); which >= 0 {
			return i, len(s.texts[which]), which
		}
	}
	return -1, 0, -1
}

// prefixOf returns the longest text that b begins with, or -1.
func (s *needles) prefixOf(b []byte) int {
	which := -1
	for i, t := range s.texts {
		if (which < 0 || len(t) > len(s.texts[which])) && bytes.HasPrefix(b, t) {
			which = i
		}
	}
	return which
}

// base64Forms returns the characters that a text becomes in base64 whatever
// stands around it: for each of three alignments, in both alphabets (RFC 4648
// sections 4 and 5).
func base64Forms(text []byte) [][]byte {
	var out [][]byte
	padded := make([]byte, 2+len(text))
	copy(padded[2:], text)
	defer clear(padded)
	for offset := range 3 {
		if len(text) < shortest {
			break
		}
		from := padded[2-offset:]
		first, last := (offset*8+5)/6, (offset+len(text))*8/6 // characters of which every bit is the text's
		for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			whole := make([]byte, e.EncodedLen(len(from)))
			e.Encode(whole, from)
			out = append(out, bytes.Clone(whole[first:last]))
			clear(whole)
		}
	}
	return out
}

// A finder knows the texts sought in a stream.
type finder interface {
	find(b []byte) (at, n, which int)
	span() int // how many bytes a text takes up at most
}

// A window looks for texts in a stream that comes in pieces.
type window struct {
	set  finder
	tail []byte // the last bytes that went by, one fewer than a text takes up
}

// feed returns the text that ends in b, or -1.
func (w *window) feed(b []byte) int {
	keep := w.set.span() - 1
	seam := append(w.tail, b[:min(len(b), keep)]...)
	_, _, which := w.set.find(seam)
	if which < 0 && len(b) > keep {
		_, _, which = w.set.find(b)
		seam = append(seam[:0], b[len(b)-keep:]...)
	}
	if over := len(seam) - keep; over > 0 {
		seam = append(seam[:0], seam[over:]...)
	}
	w.tail = seam
	return which
}

// A scanner looks for needles in a stream as it is and with its percent
// escapes undone.
type scanner struct {
	raw, unescaped window
	escapes        unescaper
	escaped        bool // an escape was seen: the two views differ
	scratch        []byte
}

func newScanner(set *needles) *scanner {
	return &scanner{raw: window{set: set}, unescaped: window{set: set}}
}

// feed returns the text that ends in b, or -1.
func (s *scanner) feed(b []byte) int {
	if !s.escaped && bytes.IndexByte(b, '%') >= 0 {
		s.escaped = true
		s.unescaped.tail = bytes.Clone(s.raw.tail)
	}
	if which := s.raw.feed(b); which >= 0 || !s.escaped {
		return which
	}
	s.scratch = s.escapes.append(s.scratch[:0], b)
	return s.unescaped.feed(s.scratch)
}

// An unescaper undoes %XX in a stream (RFC 3986 section 2.1) and leaves
// everything else unchanged.
type unescaper struct {
	pending [2]byte // a % and perhaps one digit
	n       int
}

func (u *unescaper) append(dst, b []byte) []byte {
	for i := 0; i < len(b); i++ {
		if u.n == 0 { // everything up to the next escape
			next := bytes.IndexByte(b[i:], '%')
			if next < 0 {
				return append(dst, b[i:]...)
			}
			dst = append(dst, b[i:i+next]...)
			i += next
		}
		c := b[i]
		if u.n > 0 && !isHex(c) {
			dst = append(dst, u.pending[:u.n]...)
			u.n = 0
		}
		switch {
		case u.n == 2:
			dst = append(dst, unhex(u.pending[1])<<4|unhex(c))
			u.n = 0
		case u.n == 1 || c == '%':
			u.pending[u.n] = c
			u.n++
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func unhex(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c&^0x20 - 'A' + 10
}
