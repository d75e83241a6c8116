package mitm

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"mime/quotedprintable"
	"net/url"
	"strconv"
	"strings"
	"testing"
)

// disguises are ways in which programs write a text down that they were given, each at
// most a few encodings deep.
var disguises = map[string]func(string) string{
	"lower case": strings.ToLower,
	"upper case": strings.ToUpper,
	"mixed hex":  func(s string) string { return mixed(hex.EncodeToString([]byte(s))) },
	"spaced hex": func(s string) string { return fmt.Sprintf("% x", s) },
	"folded header": func(s string) string {
		return s[:5] + "\r\n\t        " + s[5:]
	},
	"base64, indented":        func(s string) string { return wrapped(b64(s), 11, "\n            ") },
	"base64, lines in JSON":   func(s string) string { return quoted(wrapped(b64("x"+s), 20, "\n")) },
	"base64, CRLF in JSON":    func(s string) string { return quoted(wrapped(b64(s), 20, "\r\n")) },
	"base64, slashes of PHP":  func(s string) string { return strings.ReplaceAll(b64("ab"+s), "/", `\/`) },
	"base64 in a query":       func(s string) string { return url.QueryEscape(b64(s)) },
	"base64, plus in HTML":    func(s string) string { return strings.ReplaceAll(b64(s), "+", "&#43;") },
	"base64 twice":            func(s string) string { return b64("{\"auth\":\"" + b64("user:"+s) + "\"}") },
	"base64 of UTF-16":        func(s string) string { return b64(wide(s)) },
	"base64 in UTF-16":        func(s string) string { return wide(b64(s)) },
	"UTF-32":                  func(s string) string { return strings.Join(strings.Split(s, ""), "\x00\x00\x00") },
	"UTF-16, folded":          func(s string) string { return wide(s[:7] + "\r\n " + s[7:]) },
	"percent, all":            func(s string) string { return each(s, "%%%02x") },
	"percent, some":           func(s string) string { return s[:3] + each(s[3:4], "%%%02X") + s[4:9] + each(s[9:], "%%%02x") },
	"percent twice":           func(s string) string { return url.QueryEscape(url.QueryEscape(s)) },
	"percent in UTF-16 units": func(s string) string { return each(s, "%%u%04X") },
	"JSON, all":               func(s string) string { return each(s, `\u%04x`) },
	"JSON in JSON":            func(s string) string { return quoted(quoted(s)) },
	"JSON in JSON in JSON":    func(s string) string { return quoted(quoted(quoted(s))) },
	"JSON in HTML":            func(s string) string { return html.EscapeString(quoted(s)) },
	"JSON in a query":         func(s string) string { return url.QueryEscape(quoted(s)) },
	"HTML twice":              func(s string) string { return html.EscapeString(html.EscapeString(s)) },
	"HTML, leading zeros":     func(s string) string { return each(s, "&#x000%x;") },
	"HTML, no semicolons":     func(s string) string { return each(s, "&#%d") + " " },
	"HTML, by name":           func(s string) string { return strings.NewReplacer("/", "&sol;", "+", "&plus;", "<", "&LT;").Replace(s) },
	"C, octal":                func(s string) string { return each(s, `\%03o`) },
	"C, hex":                  func(s string) string { return each(s, `\x%02X`) },
	"Go":                      strconv.QuoteToASCII,
	"JavaScript":              func(s string) string { return each(s, `\u{%x}`) },
	"shell":                   func(s string) string { return shellQuoted(s) },
	"quoted-printable":        quotedPrintable,
	"quoted-printable, all":   func(s string) string { return each(s, "=%02X") },
	"a list of bytes":         func(s string) string { return string(listed([]byte(s))) },
	"a list of bytes, in lines": func(s string) string {
		return strings.ReplaceAll(string(listed([]byte(s))), ",", ",\n    ")
	},
}

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

func wide(s string) string { return strings.Join(strings.Split(s, ""), "\x00") + "\x00" }

func quoted(s string) string { out, _ := json.Marshal(s); return string(out) }

func each(s, form string) (out string) {
	for _, c := range []byte(s) {
		out += fmt.Sprintf(form, c)
	}
	return out
}

func mixed(s string) string {
	out := []byte(s)
	for i := range out {
		if i%3 == 0 {
			out[i] = bytes.ToUpper(out[i : i+1])[0]
		}
	}
	return string(out)
}

func quotedPrintable(s string) string {
	var b bytes.Buffer
	w := quotedprintable.NewWriter(&b)
	io.WriteString(w, strings.Repeat("x", 60)+s)
	w.Close()
	return b.String()
}

// TestDisguises: what a host sends of a value is replaced however a program wrote it, cut
// anywhere, and what only resembles it is not.
func TestDisguises(t *testing.T) {
	for _, secret := range []string{value, "ghp_0a1B2c3D4e5F6g7H8i9J", "p@ss%41 w&lt;rd=\\x20+", "8f14e45fceea167a5a36dedd4bea2543"} {
		u := use{value: []byte(secret)}
		u.binding.Placeholder = placeholder
		e := newEcho([]use{u})
		for name, form := range disguises {
			text := "< \"" + form(secret) + "\" >"
			for _, size := range []int{1, 7, 1 << 20} {
				if got := redactedText(t, e, text, size); !strings.Contains(got, placeholder) || rest(got) > 2*len(text)/3 {
					t.Errorf("%s of %q in pieces of %d: %q", name, secret, size, got)
				}
			}
			other := form(strings.Map(func(c rune) rune { return c ^ 1 }, secret))
			if got := redactedText(t, e, other, 5); got != other {
				t.Errorf("control: %s of another text became %q", name, got)
			}
		}
	}
}

func redactedText(t *testing.T, e *echo, text string, size int) string {
	t.Helper()
	r := &redactor{known: func() *echo { return e }, from: pieces{strings.NewReader(text), size}}
	got, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(got)
}

// rest is how much is left of a text beside what it began and ended with.
func rest(got string) int {
	return len(strings.Join(strings.Split(got, placeholder)[1:], ""))
}

func shellQuoted(s string) (out string) {
	for _, c := range s {
		if !isLetter(byte(c)) {
			out += `\`
		}
		out += string(c)
	}
	return out
}
