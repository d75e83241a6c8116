package mitm

import (
	"bytes"
	"encoding/base64"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func placeholders() *needles {
	s := &needles{}
	for i, p := range []string{placeholder, other} {
		s.add(i, []byte(p))
		s.add(i, base64Forms([]byte(p))...)
	}
	return s
}

var escape = regexp.MustCompile(`%[0-9a-fA-F]{2}`)

// holds says by plain means what the scanner has to say.
func holds(s *needles, text string) bool {
	unescaped := escape.ReplaceAllStringFunc(text, func(e string) string {
		return string([]byte{unhex(e[1])<<4 | unhex(e[2])})
	})
	for _, n := range s.texts {
		if strings.Contains(text, string(n)) || strings.Contains(unescaped, string(n)) {
			return true
		}
	}
	return false
}

// texts are made of what matters: whole and broken placeholders in their
// forms, percent signs, other bytes.
func texts(secret string) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		var b strings.Builder
		for range rapid.IntRange(0, 8).Draw(t, "parts") {
			cut := rapid.IntRange(0, len(secret)).Draw(t, "cut")
			packed := base64.StdEncoding.EncodeToString([]byte("xyz"[:cut%3] + secret))
			b.WriteString(rapid.SampledFrom([]string{
				secret, secret[:cut], secret[cut:], packed, packed[:cut], packed[cut:], "%", "%4", "%%41", "x", "=",
				strings.ReplaceAll(secret, secret[cut/2:cut/2+1], "%"+hexOf(secret[cut/2])),
			}).Draw(t, "part"))
			b.WriteString(rapid.StringMatching(`[a-c%\n]{0,3}`).Draw(t, "filling"))
		}
		return b.String()
	})
}

func hexOf(c byte) string { return string([]byte{"0123456789abcdef"[c>>4], "0123456789ABCDEF"[c&15]}) }

// split cuts a text anywhere, with empty pieces among them.
func split(t *rapid.T, text string) (out []string) {
	for len(text) > 0 {
		n := rapid.IntRange(0, len(text)).Draw(t, "piece")
		out, text = append(out, text[:n]), text[n:]
		if n == 0 {
			n = 1
			out, text = append(out, text[:n]), text[n:]
		}
	}
	return out
}

func TestScannerSeesWhatStandsThere(t *testing.T) {
	set := placeholders()
	rapid.Check(t, func(t *rapid.T) {
		text := texts(placeholder).Draw(t, "text")
		s, got := newScanner(set), false
		for _, piece := range split(t, text) {
			got = got || s.feed([]byte(piece)) >= 0
		}
		if want := holds(set, text); got != want {
			t.Fatalf("%q: got %v, want %v", text, got, want)
		}
	})
}

// Every form is seen wherever it is cut.
func TestScannerSeesEveryCut(t *testing.T) {
	set := placeholders()
	for _, n := range set.texts {
		for cut := range len(n) {
			s := newScanner(set)
			s.feed([]byte("before "))
			if s.feed(n[:cut]) >= 0 || s.feed(n[cut:]) < 0 {
				t.Errorf("%q, cut at %d, is not seen, or too early", n, cut)
			}
		}
		s, found := newScanner(set), false
		for i := range n {
			found = s.feed(n[i:i+1]) >= 0
		}
		if !found {
			t.Errorf("%q, byte by byte, is not seen", n)
		}
	}
}

func FuzzScanner(f *testing.F) {
	f.Add([]byte("x"+placeholder), 3)
	f.Add([]byte("%62"+placeholder[1:]), 1)
	f.Add([]byte(base64At(2)), 5)
	set := placeholders()
	f.Fuzz(func(t *testing.T, text []byte, size int) {
		s, got := newScanner(set), false
		for piece := range chunks(string(text), max(size, 1)) {
			got = got || s.feed([]byte(piece)) >= 0
		}
		if want := holds(set, string(text)); got != want {
			t.Fatalf("%q in pieces of %d: got %v, want %v", text, size, got, want)
		}
	})
}

// flow is a guest that sends pieces.
type flow struct {
	pieces []string
	closed bool
}

func (f *flow) Read(p []byte) (int, error) {
	for len(f.pieces) > 0 && f.pieces[0] == "" {
		f.pieces = f.pieces[1:]
	}
	if len(f.pieces) == 0 {
		return 0, io.EOF
	}
	n := copy(p, f.pieces[0])
	f.pieces[0] = f.pieces[0][n:]
	return n, nil
}

func (f *flow) Close() error { f.closed = true; return nil }

// A body passes byte for byte, or not to its end; looked at first or not,
// packed or not.
func TestBodyPassesWholeOrNot(t *testing.T) {
	set := placeholders()
	rapid.Check(t, func(t *rapid.T) {
		text := texts(placeholder).Draw(t, "text")
		sent, encoding := text, ""
		if rapid.Bool().Draw(t, "packed") {
			sent, encoding = gzipped(text), "gzip"
		}
		out := 0
		b := &body{
			guest: &flow{pieces: split(t, sent)}, encoding: encoding, scan: newScanner(set), sent: func(n int) { out += n },
			refuse: func(int) error { return &Refusal{Reason: "found"} },
		}
		if n := rapid.IntRange(0, 2*len(text)+1).Draw(t, "peek"); n > 0 {
			if seen, err := b.peek(n); string(seen) != text[:min(n, len(text))] || (err != nil) != (n > len(text)) {
				t.Fatalf("peek(%d) = %q, %v", n, seen, err)
			}
		}
		got, err := io.ReadAll(pieces{b, rapid.IntRange(1, 70).Draw(t, "size")})
		if holds(set, text) {
			if err == nil || len(got) >= len(sent) || holds(set, string(got)) {
				t.Fatalf("%q: passed %q, %v", text, got, err)
			}
		} else if err != nil || string(got) != sent || int64(out) != int64(len(sent)) {
			t.Fatalf("%q: passed %q, %v", sent, got, err)
		}
	})
}

// replaced says by plain means what the redactor has to give of a text without escapes: at
// each place the value that takes up most of it.
func replaced(e *echo, forms []*regexp.Regexp, text string) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		best, length := -1, 0
		for n, form := range forms {
			if found := form.FindStringIndex(text[i:]); found != nil && (best < 0 || found[1] > length) {
				best, length = n, found[1]
			}
		}
		if best < 0 {
			b.WriteByte(text[i])
			i++
			continue
		}
		b.WriteString(e.known[e.values.forms[best].owner].stand)
		i += length
	}
	return b.String()
}

// alike compares what was replaced in pieces with what was as a whole: the first characters
// of a value may stand before its placeholder.
func alike(got, want string) bool {
	var parts []string
	for part := range strings.SplitSeq(want, placeholder) {
		parts = append(parts, regexp.QuoteMeta(strings.ToValidUTF8(part, "?")))
	}
	form := "^(?s:" + strings.Join(parts, ".{0,60}?"+placeholder) + ")$"
	return regexp.MustCompile(form).MatchString(strings.ToValidUTF8(got, "?"))
}

// formsOf is each form that is sought, broken anywhere, as an expression.
func formsOf(e *echo) (forms []*regexp.Regexp) {
	for _, v := range e.values.forms {
		var b strings.Builder
		b.WriteString("^")
		for i := range v.text {
			if i > 0 {
				b.WriteString(`[\r\n\t \x00]{0,16}`)
			}
			if v.fold {
				b.WriteString("(?i:" + regexp.QuoteMeta(string(v.text[i:i+1])) + ")")
			} else {
				b.WriteString(regexp.QuoteMeta(string(v.text[i : i+1])))
			}
		}
		forms = append(forms, regexp.MustCompile(b.String()))
	}
	return forms
}

func TestRedactorReplacesEverything(t *testing.T) {
	u := use{value: []byte(value)}
	u.binding.Placeholder = placeholder
	e := newEcho([]use{u})
	forms := formsOf(e)
	rapid.Check(t, func(t *rapid.T) {
		text := texts(value).Draw(t, "text")
		text = strings.NewReplacer("%", ".", "=", ".", "&", ".", `\`, ".").Replace(text)
		if every := rapid.IntRange(0, 30).Draw(t, "line"); every > 0 {
			text = wrapped(text, every, rapid.SampledFrom([]string{"\n", "\r\n", "\r\n ", " "}).Draw(t, "end"))
		}
		r := &redactor{known: func() *echo { return e }, from: &flow{pieces: split(t, text)}, src: io.NopCloser(nil), res: &http.Response{}}
		got, err := io.ReadAll(pieces{r, rapid.IntRange(1, 70).Draw(t, "size")})
		if want := replaced(e, forms, text); err != nil || !alike(string(got), want) {
			t.Fatalf("%q: got %q, want %q, %v", text, got, want, err)
		}
		chunk := r.chunk
		if r.Close(); bytes.Contains(chunk, []byte(value[4:])) {
			t.Fatal("the value is still in memory")
		}
	})
}

// wrapped breaks a text into lines.
func wrapped(text string, every int, end string) string {
	var b strings.Builder
	for i := range text {
		if i > 0 && i%every == 0 {
			b.WriteString(end)
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

func FuzzRedactor(f *testing.F) {
	f.Add([]byte("a"+value+"b"), 3)
	f.Add([]byte(value[:9]+value), 1)
	for _, write := range disguises {
		f.Add([]byte(write(value)), 2)
	}
	u := use{value: []byte(value)}
	u.binding.Placeholder = placeholder
	e := newEcho([]use{u})
	f.Fuzz(func(t *testing.T, text []byte, size int) {
		r := &redactor{known: func() *echo { return e }, from: pieces{bytes.NewReader(text), max(size, 1)}}
		got, err := io.ReadAll(r)
		want, _ := e.replace(nil, seam{text: text}, true)
		if err != nil || !alike(string(got), string(want)) {
			t.Fatalf("%q: in pieces %q, as a whole %q, %v", text, got, want, err)
		}
		if at, _, _ := e.values.find(got); at >= 0 && !bytes.Contains(got, []byte(placeholder)) {
			t.Fatalf("%q: %q is left", text, got)
		}
	})
}
