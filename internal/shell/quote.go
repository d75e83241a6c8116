package shell

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// unquoteDouble removes the backslashes that "…" gives a meaning to.
func unquoteDouble(s string) string { return unescape(s, "$`\"\\") }

// unescape removes backslashes in front of special characters. The parser has
// removed those in front of a line feed.
func unescape(s, special string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && strings.IndexByte(special, s[i+1]) >= 0 {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// simpleEscapes are those of $'…' that stand for one character. bash(1),
// QUOTING.
var simpleEscapes = map[byte]byte{
	'a': '\a', 'b': '\b', 'e': 0x1b, 'E': 0x1b, 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v',
	'\\': '\\', '\'': '\'', '"': '"', '?': '?',
}

// ansi decodes $'…'. It refuses NUL, what is not UTF-8, and control escapes.
func ansi(s string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		if c, ok := simpleEscapes[s[i]]; ok {
			b.WriteByte(c)
			continue
		}
		n := ansiNumber(&b, s[i:])
		if n < 0 {
			return "", false
		}
		i += n - 1
	}
	return b.String(), utf8.ValidString(b.String()) && !strings.ContainsRune(b.String(), 0)
}

// ansiNumber decodes a numeric escape at the start of s and returns its
// length, or -1 for one that it does not know.
func ansiNumber(b *strings.Builder, s string) int {
	base, skip, most := 8, 0, 3
	switch s[0] {
	case 'x':
		base, skip, most = 16, 1, 2
	case 'u':
		base, skip, most = 16, 1, 4
	case 'U':
		base, skip, most = 16, 1, 8
	}
	n := skip
	for n < len(s) && n < skip+most {
		if _, err := strconv.ParseUint(s[n:n+1], base, 8); err != nil {
			break
		}
		n++
	}
	v, err := strconv.ParseUint(s[skip:n], base, 32)
	if err != nil || n == skip {
		return -1
	}
	if skip == 0 || s[0] == 'x' {
		b.WriteByte(byte(v))
	} else {
		b.WriteRune(rune(v))
	}
	return n
}

// pureName is the text of a word that is nothing but text, which the name of
// a command has to be.
func pureName(w *syntax.Word) (string, bool) {
	if len(w.Parts) == 1 {
		if lit, ok := w.Parts[0].(*syntax.Lit); ok && !strings.ContainsAny(lit.Value, "\\*?[~{}") {
			return lit.Value, true
		}
	}
	name := ""
	for _, p := range w.Parts {
		text, ok := pureText(p)
		if !ok {
			return "", false
		}
		name += text
	}
	return name, true
}

func pureText(p syntax.WordPart) (string, bool) {
	switch p := p.(type) {
	case *syntax.Lit:
		return unquotedText(p.Value)
	case *syntax.SglQuoted:
		if p.Dollar {
			return ansi(p.Value)
		}
		return p.Value, true
	case *syntax.DblQuoted:
		text := ""
		for _, q := range p.Parts {
			lit, ok := q.(*syntax.Lit)
			if !ok {
				return "", false
			}
			text += unquoteDouble(lit.Value)
		}
		return text, true
	}
	return "", false
}

// unquotedText is unquoted text in which nothing is expanded.
func unquotedText(s string) (string, bool) {
	if s == "[" {
		return s, true
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s):
			if i++; s[i] != '\n' {
				b.WriteByte(s[i])
			}
		case strings.IndexByte("*?[~{}", s[i]) >= 0:
			return "", false
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String(), true
}

// plainName reports whether s can name a variable.
func plainName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !(c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || i > 0 && c >= '0' && c <= '9') {
			return false
		}
	}
	return s != ""
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
