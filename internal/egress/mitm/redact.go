package mitm

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

// errEcho ends a WebSocket whose host sent a secret back: its frames can't be
// rewritten.
var errEcho = errors.New("the host sent a secret back on a connection that can't be rewritten")

// An echo knows how values look when a host sends them back, and what the
// guest reads in their place.
//
// A nil echo knows none. One that others may have is not changed.
type echo struct {
	values needles
	with   []string // the placeholder of each owner
}

// newEcho copies the values.
func newEcho(uses []use) *echo {
	e := &echo{values: needles{broken: true}}
	for _, u := range uses {
		for _, p := range u.pairs() {
			e.add(p.value, p.stand)
		}
	}
	return e
}

// also returns an echo that knows more values; e itself stays as it is.
func (e *echo) also(pairs ...pair) *echo {
	with := newEcho(nil)
	if e != nil {
		with.with = slices.Clone(e.with)
		with.values = e.values
		with.values.texts, with.values.owner = slices.Clone(e.values.texts), slices.Clone(e.values.owner)
	}
	for _, p := range pairs {
		with.add(p.value, p.stand)
	}
	return with
}

// knows reports whether a value is replaced by what stands for it.
func (e *echo) knows(p pair) bool {
	if e == nil {
		return false
	}
	i := slices.IndexFunc(e.values.texts, func(t []byte) bool { return bytes.Equal(t, p.value) })
	return i >= 0 && e.with[e.values.owner[i]] == p.stand
}

// add has a value replaced by what stands for it.
func (e *echo) add(value []byte, stand string) {
	i := len(e.with)
	e.with = append(e.with, stand)
	e.values.add(i, bytes.Clone(value))
	e.values.add(i, base64Forms(value)...)
	e.values.add(i, percentForms(value)...)
	e.values.add(i, jsonForms(value)...)
	e.values.add(i, markupForms(value)...)
	e.values.add(i, unicodeForms(value)...)
	e.values.add(i, numberForms(value)...)
	e.values.add(i, wideForms(value)...)
}

// percentForms returns a value with every byte escaped that may be: what
// encoders leave alone differs, and so does the case of their digits.
func percentForms(value []byte) [][]byte {
	var out [][]byte
	for _, digits := range []string{"0123456789ABCDEF", "0123456789abcdef"} {
		for _, plain := range []string{"-_.~", "-_.~!*'()", "-_.~$&+:=@", "-_.~$&+,/:;=@!*'()", ""} {
			form := make([]byte, 0, 3*len(value))
			for _, c := range value {
				if isLetter(c) || bytes.IndexByte([]byte(plain), c) >= 0 {
					form = append(form, c)
				} else {
					form = append(form, '%', digits[c>>4], digits[c&15])
				}
			}
			out = append(out, form)
			if bytes.IndexByte(value, ' ') >= 0 { // in a query or a form
				out = append(out, bytes.ReplaceAll(form, []byte("%20"), []byte("+")))
			}
		}
	}
	return out
}

func isLetter(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// jsonForms returns a value as the inside of a JSON string (RFC 8259 section
// 7), with and without the escapes that protect HTML, and with escaped slashes.
func jsonForms(value []byte) [][]byte {
	var out [][]byte
	for _, escaped := range []string{`"\`, `"\/`, `"\<>&`, `"\/<>&`, `"\<>&'`} {
		form := make([]byte, 0, 6*len(value))
		for _, c := range value {
			switch {
			case c == '\n':
				form = append(form, `\n`...)
			case c == '\t':
				form = append(form, `\t`...)
			case c == '\r':
				form = append(form, `\r`...)
			case bytes.IndexByte([]byte(escaped), c) < 0 && c >= ' ':
				form = append(form, c)
			case c == '"' || c == '\\' || c == '/':
				form = append(form, '\\', c)
			default:
				form = fmt.Appendf(form, `\u%04x`, c)
			}
		}
		out = append(out, form)
	}
	return out
}

// replace appends text to dst with every value replaced, up to where a value
// may begin that has not come to its end, and returns the rest. Final says
// that nothing follows.
func (e *echo) replace(dst, text []byte, final bool) (out, rest []byte) {
	if e == nil {
		return append(dst, text...), nil
	}
	for {
		at, n, which := e.values.find(text)
		if which < 0 {
			break
		}
		dst = append(append(dst, text[:at]...), e.with[e.values.owner[which]]...)
		text = text[at+n:]
	}
	keep := 0
	if !final {
		keep = e.values.begun(text)
	}
	return append(dst, text[:len(text)-keep]...), text[len(text)-keep:]
}

// text returns a text with every value replaced, also where it was quoted.
func (e *echo) text(s string) string {
	out, _ := e.replace(nil, []byte(s), true)
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
	return slices.ContainsFunc(e.values.texts, func(t []byte) bool {
		return len(t) <= len(name) && bytes.Contains([]byte(name), bytes.ToLower(t))
	})
}

// redacted replaces values in a response: header, body, trailer. What is known may grow
// while the body comes. A body whose encoding can't be undone is an error.
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
	rest    []byte // may begin a value
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
	kept := copy(r.chunk, r.rest)
	n, err := r.from.Read(r.chunk[kept:])
	r.out, r.rest = r.known().replace(r.out[:0], r.chunk[:kept+n], err != nil)
	r.pending, r.err = r.out, err
}

// Close ends the host's side and overwrites what may hold a value.
func (r *redactor) Close() error {
	if r.chunk != nil {
		clear(r.chunk)
		if len(r.chunk) == bufferSize {
			buffers.Put(r.chunk)
		}
		r.chunk, r.rest, r.err = nil, nil, http.ErrBodyReadAfterClose
	}
	err := r.src.Close()
	r.known().header(r.res.Trailer)
	return err
}

// A tripwire is the host's side of a WebSocket: it breaks when a value comes
// back.
type tripwire struct {
	io.ReadWriteCloser
	known func() *echo
	now   *echo
	scan  window
}

func (t *tripwire) Read(p []byte) (int, error) {
	n, err := t.ReadWriteCloser.Read(p)
	if e := t.known(); e != t.now {
		t.now, t.scan.set = e, &e.values
	}
	if t.now != nil && t.scan.feed(p[:n]) >= 0 {
		clear(p[:n])
		return 0, errEcho
	}
	return n, err
}
