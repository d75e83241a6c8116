package mitm

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

// An echo knows the forms in which a host may send values back, and the guest's
// replacement for each.
//
// It knows a value as it is and, from 8 bytes on, in other letter case; in hexadecimal,
// as a list of bytes, in UTF-16 and UTF-32, in base64 (twice, and of UTF-16); with
// characters escaped for URLs, JSON, languages, shells, HTML or quoted-printable, four
// levels deep; with line ends, blanks and NULs in it, 16 bytes each time, also as escapes.
// Headers, trailers and bodies are searched, in answers without a secret or TLS too.
//
// Where a stream pauses within a value, its first three characters have passed. A stream
// that began before the session was first offered a secret for its host is not searched.
// Answers of bound hosts come unpacked and without a length.
//
// A nil echo knows none. A value that others may have is not changed.
type echo struct {
	values spelled
	known  []pair // the value of each owner, and the placeholder
}

// newEcho copies the values.
func newEcho(uses []use) *echo {
	e := &echo{}
	for _, u := range uses {
		for _, p := range u.pairs() {
			e.add(p)
		}
	}
	return e
}

// also returns an echo that knows more values; e itself stays as it is.
func (e *echo) also(pairs ...pair) *echo {
	with := &echo{}
	if e != nil {
		with.known, with.values = slices.Clone(e.known), e.values
		with.values.forms = slices.Clone(e.values.forms)
	}
	for _, p := range pairs {
		with.add(p)
	}
	return with
}

// knows reports whether a value is replaced by its placeholder.
func (e *echo) knows(p pair) bool {
	return e != nil && slices.ContainsFunc(e.known, func(o pair) bool { return bytes.Equal(o.value, p.value) && o.stand == p.stand })
}

// add has a value replaced by its placeholder.
func (e *echo) add(p pair) {
	e.values.addValue(len(e.known), p.value)
	e.known = append(e.known, pair{bytes.Clone(p.value), p.stand})
}

// A seam is the end of a text that may begin a value; its first passed bytes were passed on
// already, since nothing may follow.
type seam struct {
	text   []byte
	passed int
}

// replace appends to dst the text after the passed bytes, with every value replaced. It
// stops where a value may have begun but not ended, and returns the rest. Final says that
// nothing follows.
func (e *echo) replace(dst []byte, text seam, final bool) (out []byte, rest seam) {
	if e == nil {
		return append(dst, text.text[text.passed:]...), seam{}
	}
	b, passed := text.text, text.passed
	for {
		at, n, which := e.values.find(b)
		if which < 0 {
			break
		}
		dst = append(append(dst, b[min(passed, at):at]...), e.known[e.values.forms[which].owner].stand...)
		b, passed = b[at+n:], max(0, passed-at-n)
	}
	begun, keep := 0, 0
	if !final {
		begun, keep = e.values.begun(b)
	}
	until := max(passed, len(b)-keep)
	from := len(b) - begun
	return append(dst, b[passed:until]...), seam{b[from:], max(0, until-from)}
}

// text returns a text with every value replaced, also where it was quoted.
func (e *echo) text(s string) string {
	out, _ := e.replace(nil, seam{text: []byte(s)}, true)
	return string(out)
}

// header replaces values in place, in names as well.
func (e *echo) header(h http.Header) {
	if e == nil {
		return
	}
	for name, lines := range h {
		for i, l := range lines {
			lines[i] = e.text(l)
		}
		if e.named(name) {
			delete(h, name)
		}
	}
}

// named reports whether a value stands in a field's name, which has lost its
// case on the way here.
func (e *echo) named(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(e.values.forms, func(f form) bool {
		return len(f.text) <= len(name) && bytes.Contains([]byte(name), bytes.ToLower(f.text))
	})
}

// redacted replaces values in a response: header, body, trailer. The known values may
// grow while the body arrives. A body whose encoding can't be undone is an error.
func redacted(res *http.Response, known func() *echo) error {
	known().header(res.Header)
	r := &redactor{known: known, res: res, src: res.Body, from: res.Body}
	res.Body = r
	if res.Request.Method == http.MethodHead || res.ContentLength == 0 {
		return nil // but a trailer may follow
	}
	switch encoding := contentEncoding(res.Header); encoding {
	case "":
	case "gzip":
		r.from = &gunzip{src: r.src}
		res.Header.Del("Content-Encoding")
	default:
		return fmt.Errorf("the host packed its answer as %q although it was asked not to; it can't be looked through for secrets that the host got", encoding)
	}
	res.ContentLength = -1
	res.Header.Del("Content-Length")
	return nil
}

// A gunzip unpacks from the first read on, so that a response's header need
// not wait for its body.
type gunzip struct {
	src io.Reader
	out io.Reader
}

func (g *gunzip) Read(p []byte) (int, error) {
	if g.out == nil {
		out, err := gzip.NewReader(g.src)
		if err != nil {
			return 0, err
		}
		g.out = out
	}
	return g.out.Read(p)
}

// A redactor is a response's body with every value replaced.
type redactor struct {
	known func() *echo
	res   *http.Response // its trailer comes with the body's end
	src   io.ReadCloser
	from  io.Reader

	chunk   []byte
	rest    seam
	out     []byte // judged, not yet passed on
	pending []byte // of out
	err     error
}

func (r *redactor) Read(p []byte) (int, error) {
	for len(r.pending) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		r.more()
	}
	n := copy(p, r.pending)
	r.pending = r.pending[n:]
	return n, nil
}

func (r *redactor) more() {
	if r.chunk == nil {
		r.chunk = buffers.Get()
	}
	if known := r.known(); known != nil && len(r.chunk) < 2*known.values.span() { // what is kept leaves room for more
		r.chunk = make([]byte, 2*known.values.span())
	}
	kept := copy(r.chunk, r.rest.text)
	n, err := r.from.Read(r.chunk[kept:])
	r.out, r.rest = r.known().replace(r.out[:0], seam{r.chunk[:kept+n], r.rest.passed}, err != nil)
	r.pending, r.err = r.out, err
}

// Close ends the host's side and overwrites buffers that may hold a value.
func (r *redactor) Close() error {
	if r.chunk != nil {
		clear(r.chunk)
		if len(r.chunk) == bufferSize {
			buffers.Put(r.chunk)
		}
		r.chunk, r.rest, r.err = nil, seam{}, http.ErrBodyReadAfterClose
	}
	err := r.src.Close()
	r.known().header(r.res.Trailer)
	return err
}
