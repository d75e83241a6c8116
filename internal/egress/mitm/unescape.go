package mitm

import (
	"bytes"
	"html"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// A char is a character of a text once its escapes are undone.
type char struct {
	text [utf8.UTFMax]byte
	size int // bytes of text
	n    int // bytes that spell it
}

// longestEscape is how many bytes an escape has at most, such as &#x0000002b; or \ud83d\udd11.
const longestEscape = 12

// depth is how often a text may have been escaped: JSON within JSON within HTML.
const depth = 4

// leads reports whether c begins an escape: of URLs, of JSON and programming languages, of
// HTML, or of quoted-printable (RFC 2045 section 6.7).
func leads(c byte) bool { return c == '%' || c == '\\' || c == '&' || c == '=' }

func plainChar(c byte) char { return char{text: [utf8.UTFMax]byte{c}, size: 1, n: 1} }

func runeChar(r rune, n int) char {
	c := char{n: n}
	c.size = utf8.EncodeRune(c.text[:], r)
	return c
}

// next returns the first character of b with every escape undone, also those within
// others; more says that b ends before that is known.
func next(b []byte) (c char, more bool) {
	if !leads(b[0]) {
		return plainChar(b[0]), false
	}
	c, ok, more := unescape(b)
	if !ok {
		c = plainChar(b[0])
	}
	if more || ok && (c.size > 1 || !leads(c.text[0])) || !ok && !nested(b[1:]) {
		return c, more
	}
	v := newView(b)
	for range depth {
		if c, more = v.unescape(len(b) == v.raw); more || c.size > 1 || !leads(c.text[0]) {
			break
		}
	}
	return c, more
}

// nested reports whether there is an escape near enough to be a part of another one.
func nested(b []byte) bool {
	for _, c := range b[:min(len(b), longestEscape)] {
		if leads(c) {
			return true
		}
	}
	return false
}

// A view is the beginning of a text, unescaped some times.
type view struct {
	raw  int // bytes of the text that were looked at
	text [64]byte
	ends [64]int // in the raw text, of each byte
	n    int
}

func newView(b []byte) *view {
	v := &view{}
	v.raw = copy(v.text[:], b)
	v.n = v.raw
	for i := range v.n {
		v.ends[i] = i + 1
	}
	return v
}

// unescape undoes the escapes of v once more and returns its first character. Where the text
// ends with v, its last escape may not be whole.
func (v *view) unescape(ends bool) (first char, more bool) {
	n := 0
	for at := 0; at < v.n; {
		c, ok, more := unescape(v.text[at:v.n])
		switch {
		case more && at == 0 && ends:
			return plainChar(v.text[0]), true
		case more && ends:
			v.n = n
			return first, false
		case !ok:
			c = plainChar(v.text[at])
		}
		end := v.ends[at+c.n-1]
		if at == 0 {
			first = c
			first.n = end
		}
		at += c.n
		for _, t := range c.text[:c.size] { // never more than were read
			v.text[n], v.ends[n] = t, end
			n++
		}
	}
	v.n = n
	return first, false
}

// unescape undoes the escape at the beginning of b, once.
func unescape(b []byte) (c char, ok, more bool) {
	if len(b) < 2 {
		return c, false, leads(b[0])
	}
	switch b[0] {
	case '%':
		if b[1] == 'u' || b[1] == 'U' {
			return byNumber(b, 2, 4, utf8.UTFMax)
		}
		return byNumber(b, 1, 2, 1)
	case '=':
		if end := lineEnd(b[1:]); end > 0 {
			return runeChar('\n', 1+end), true, false
		}
		return byNumber(b, 1, 2, 1)
	case '&':
		return reference(b)
	case '\\':
		return backslash(b)
	}
	return c, false, false
}

// lineEnd is how many bytes at the beginning of b end a line, or 0.
func lineEnd(b []byte) int {
	switch {
	case bytes.HasPrefix(b, []byte("\r\n")):
		return 2
	case b[0] == '\n', b[0] == '\r':
		return 1
	}
	return 0
}

// byNumber reads a number of digits in hexadecimal from b, after skip bytes. Size 1 makes a
// byte of it, otherwise it is a character.
func byNumber(b []byte, skip, digits, size int) (c char, ok, more bool) {
	end := skip + digits
	for i := skip; i < end; i++ {
		if i == len(b) {
			return c, false, true
		}
		if !isHex(b[i]) {
			return c, false, false
		}
	}
	n, _ := strconv.ParseUint(string(b[skip:end]), 16, 32) // digits they are
	if size == 1 {
		c = plainChar(byte(n))
		c.n = end
		return c, true, false
	}
	return runeChar(rune(n), end), true, false
}

// backslash undoes an escape of JSON, JavaScript, C, Go, Python or a shell.
func backslash(b []byte) (c char, ok, more bool) {
	control := bytes.IndexByte([]byte("abtnvfr"), b[1])
	switch {
	case b[1] == 'u' && len(b) > 2 && b[2] == '{':
		return braced(b)
	case b[1] == 'u':
		return surrogates(b)
	case b[1] == 'U':
		return byNumber(b, 2, 8, utf8.UTFMax)
	case b[1] == 'x':
		return byNumber(b, 2, 2, 1)
	case b[1] >= '0' && b[1] <= '3':
		return octal(b)
	case control >= 0:
		return runeChar(rune(7+control), 2), true, false
	case lineEnd(b[1:]) > 0:
		return runeChar('\n', 1+lineEnd(b[1:])), true, false
	case b[1] >= ' ' && b[1] < 0x7f && !isLetter(b[1]):
		return runeChar(rune(b[1]), 2), true, false
	}
	return c, false, false
}

// braced undoes \u{2b}.
func braced(b []byte) (c char, ok, more bool) {
	b = b[:min(len(b), longestEscape)]
	end := bytes.IndexByte(b, '}')
	if end < 0 {
		return c, false, len(b) < longestEscape
	}
	n, err := strconv.ParseUint(string(b[3:end]), 16, 32)
	return runeChar(rune(n), end+1), err == nil, false
}

// surrogates undoes \u002b, and two of them where a character takes two (RFC 8259 section 7).
func surrogates(b []byte) (c char, ok, more bool) {
	c, ok, more = byNumber(b, 2, 4, utf8.UTFMax)
	if !ok || more {
		return c, ok, more
	}
	n, _ := strconv.ParseUint(string(b[2:6]), 16, 32)
	if !utf16.IsSurrogate(rune(n)) {
		return c, true, false
	}
	switch {
	case len(b) < 12 && bytes.HasPrefix([]byte(`\u`), b[6:min(len(b), 8)]):
		return c, false, true
	case len(b) < 12 || b[6] != '\\' || b[7] != 'u':
		return c, true, false
	}
	low, err := strconv.ParseUint(string(b[8:12]), 16, 32)
	if err != nil {
		return c, true, false
	}
	return runeChar(utf16.DecodeRune(rune(n), rune(low)), 12), true, false
}

// octal undoes \053; fewer digits are a NUL in JavaScript alone.
func octal(b []byte) (c char, ok, more bool) {
	if len(b) < 4 {
		return c, false, true
	}
	n, err := strconv.ParseUint(string(b[1:4]), 8, 8)
	c = plainChar(byte(n))
	c.n = 4
	return c, err == nil, false
}

// reference undoes a character reference of HTML (its section 13.2.5.72), by number also
// without its semicolon.
func reference(b []byte) (c char, ok, more bool) {
	window := b[:min(len(b), longestEscape)]
	end := 1
	if len(window) > 1 && window[1] == '#' {
		end = 2
	}
	for end < len(window) && isLetter(window[end]) {
		end++
	}
	if end == len(window) {
		return c, false, len(b) < longestEscape
	}
	numbered := window[1] == '#' && end > 2
	if window[end] == ';' {
		end++
	} else if !numbered {
		return c, false, false
	}
	text := html.UnescapeString(string(window[:end]))
	r, n := utf8.DecodeRuneInString(text)
	return runeChar(r, end), n == len(text) && n < end, false
}
