// Package head reads the head of an HTTP/1 request the strict way. A head that
// two servers could read differently (RFC 9112 leaves them room) is refused
// here, so that the host which was checked is the host that every server sees.
package head

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// A Field is one header line, its value without the blanks around it.
type Field struct{ Name, Value string }

// A Head is a request line with its header lines.
type Head struct {
	Method string // a token (RFC 9110 section 5.6.2)
	Target string // as it was sent
	Minor  int    // of the version: 0 or 1
	Fields []Field
}

// End returns how many bytes of b the head takes, with its empty line, or -1
// while that line is missing. An earlier call has seen the first seen bytes.
// A line may end in LF alone here, as many servers have it.
func End(b []byte, seen int) int {
	for i := max(0, seen-2); ; { // "\n\r" may have been the end of the bytes so far
		n := bytes.IndexByte(b[i:], '\n')
		if n < 0 {
			return -1
		}
		i += n + 1
		rest := b[i:]
		switch {
		case len(rest) > 0 && rest[0] == '\n':
			return i + 1
		case len(rest) > 1 && rest[0] == '\r' && rest[1] == '\n':
			return i + 2
		}
	}
}

// Parse reads a whole head, up to and with its empty line. Its errors say what
// in the head is not accepted; the head itself is not in them, as far as it
// may hold credentials.
func Parse(b []byte) (Head, error) {
	rows, err := lines(string(b))
	if err != nil {
		return Head{}, err
	}
	h, err := requestLine(rows[0])
	if err != nil {
		return Head{}, err
	}
	h.Fields = make([]Field, 0, len(rows)-1)
	for _, row := range rows[1:] {
		f, err := field(row)
		if err != nil {
			return Head{}, err
		}
		h.Fields = append(h.Fields, f)
	}
	return h, nil
}

// lines takes a head apart. Every line ends in CR LF, and no other control
// character but the tab stands in it.
func lines(s string) ([]string, error) {
	text, ok := strings.CutSuffix(s, "\r\n\r\n")
	if !ok {
		return nil, errors.New("the head does not end in CR LF CR LF")
	}
	rows := strings.Split(text, "\r\n")
	for _, row := range rows {
		if i := strings.IndexFunc(row, control); i >= 0 {
			return nil, fmt.Errorf("the head has the character %q within a line", row[i])
		}
	}
	return rows, nil
}

func control(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }

func requestLine(s string) (Head, error) {
	words := strings.Split(s, " ")
	if len(words) != 3 || strings.Contains(s, "\t") {
		return Head{}, errors.New("the request line is not METHOD TARGET HTTP/1.x with one space between them")
	}
	h := Head{Method: words[0], Target: words[1]}
	if !token(h.Method) || h.Target == "" {
		return Head{}, errors.New("the request line has no proper method and target")
	}
	switch words[2] {
	case "HTTP/1.0":
	case "HTTP/1.1":
		h.Minor = 1
	default:
		return Head{}, fmt.Errorf("the version is %.16q; want HTTP/1.0 or HTTP/1.1", words[2])
	}
	return h, nil
}

func field(row string) (Field, error) {
	name, value, ok := strings.Cut(row, ":")
	switch {
	case row == "":
		return Field{}, errors.New("the head goes on after an empty line")
	case row[0] == ' ' || row[0] == '\t':
		return Field{}, errors.New("a header line is continued on the next line (obs-fold)")
	case !ok:
		return Field{}, errors.New("a header line has no colon")
	case !token(name):
		return Field{}, fmt.Errorf("the header name %.64q is not accepted", name)
	}
	return Field{name, strings.Trim(value, " \t")}, nil
}

// token reports whether s is a token of RFC 9110 section 5.6.2.
func token(s string) bool {
	for i := range len(s) {
		if !TokenByte(s[i]) {
			return false
		}
	}
	return s != ""
}

// TokenByte reports whether c may stand in a method or in the name of a field
// (tchar, RFC 9110 section 5.6.2).
func TokenByte(c byte) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	}
	return c != 0 && strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}

// Values returns the values of every field of this name, in any case.
func (h Head) Values(name string) []string {
	var out []string
	for _, f := range h.Fields {
		if strings.EqualFold(f.Name, name) {
			out = append(out, f.Value)
		}
	}
	return out
}

// Value returns the values of every field of this name, joined with commas
// (RFC 9110 section 5.3), or "".
func (h Head) Value(name string) string { return strings.Join(h.Values(name), ", ") }
