package mitm

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

// maxUnpacked is how much a packed body may hold while it is scanned.
const maxUnpacked = 4 << 30

// A body is a request's, as it goes upstream: byte for byte, and looked through
// on the way. The last bytes of a packed body leave only when all of it has
// been unpacked and inspected.
type body struct {
	guest    io.ReadCloser
	encoding string // of the content: "", "gzip", or an encoding that can't be unpacked
	scan     *scanner
	refuse   func(needle int) error     // called when the scanner has found one
	watch    *watcher                   // nil where nothing is watched for
	leak     func(names []string) error // called with what watch has found
	fields   fieldScanner               // nil where another method would be judged alike
	method   func() error               // called when fields has found one
	end      func() error               // called at the end, before it is passed on
	sent     func(bytes int)            // called before they are passed on

	raw      []byte    // taken from the guest, not yet passed on
	view     io.Reader // raw as it goes by, unpacked; nil until it is needed
	seen     []byte    // of view, by peek
	unpacked int64
	chunk    []byte
	err      error // what Read ends with, once raw has been passed on
	started  bool
}

// contentEncoding returns the request's encodings as one, in lower case.
func contentEncoding(h http.Header) string {
	e := strings.ToLower(strings.TrimSpace(strings.Join(h.Values("Content-Encoding"), ",")))
	if e == "identity" {
		return ""
	}
	if e == "x-gzip" {
		return "gzip"
	}
	return e
}

// peek returns the first n bytes of the view.
func (b *body) peek(n int) ([]byte, error) {
	if b.started {
		return nil, errors.New("the body is on its way already")
	}
	if n > MaxPeek {
		return nil, ErrPeek
	}
	for len(b.seen) < n {
		b.seen = slices.Grow(b.seen, min(max(n-len(b.seen), 512), 32<<10))
		m, err := b.unpack(b.seen[len(b.seen):cap(b.seen)])
		b.seen = b.seen[:len(b.seen)+m]
		if err != nil && len(b.seen) < n {
			return b.seen, err
		}
	}
	return b.seen[:n], nil
}

// unpack reads from the view; bytes taken from the guest go to raw.
func (b *body) unpack(p []byte) (int, error) {
	if b.view == nil {
		b.view = b.newView()
	}
	n, err := b.view.Read(p)
	b.unpacked += int64(n)
	if b.unpacked > maxUnpacked {
		return n, fmt.Errorf("a packed body holds more than %d bytes; send it unpacked", int64(maxUnpacked))
	}
	return n, err
}

func (b *body) newView() io.Reader {
	switch b.encoding {
	case "":
		return (*tee)(b)
	case "gzip":
		unpacked, err := gzip.NewReader((*tee)(b))
		if errors.Is(err, io.EOF) { // nothing at all, which is an end
			return failed{io.EOF}
		}
		if err != nil {
			return failed{fmt.Errorf("a packed body can't be unpacked: %w", err)}
		}
		return unpacked
	}
	return failed{fmt.Errorf("content encoding %q can't be looked into; want gzip or none", b.encoding)}
}

// failed is a reader of nothing.
type failed struct{ err error }

func (f failed) Read([]byte) (int, error) { return 0, f.err }

// A tee reads from the guest and records the bytes.
type tee body

func (t *tee) Read(p []byte) (int, error) {
	n, err := t.guest.Read(p)
	t.raw = append(t.raw, p[:n]...)
	return n, err
}

// Read passes the body on.
func (b *body) Read(p []byte) (n int, err error) {
	if !b.started {
		b.started = true
		b.err = b.look(b.seen)
		b.seen = nil
	}
	if b.err == nil && b.scanned() && b.encoding != "" {
		b.fill()
	}
	switch {
	case len(b.raw) > b.held():
		n = copy(p, b.raw[:len(b.raw)-b.held()])
		b.raw = b.raw[n:]
	case b.err != nil:
		return 0, b.err
	default:
		n, err = b.pass(p)
	}
	b.sent(n)
	return n, err
}

// held is how many bytes of raw have to wait: one while a packed body has not
// ended, so that the host does not have all of it.
func (b *body) held() int {
	switch {
	case b.err != nil && !errors.Is(b.err, io.EOF):
		return len(b.raw)
	case b.scanned() && b.encoding != "" && b.err == nil:
		return 1
	}
	return 0
}

// pass reads directly from the guest.
func (b *body) pass(p []byte) (int, error) {
	n, err := b.guest.Read(p)
	if found := b.look(p[:n]); found != nil {
		b.err = found
		clear(p[:n])
		return 0, found
	}
	return n, b.ended(err)
}

func (b *body) ended(err error) error {
	if errors.Is(err, io.EOF) && b.end != nil {
		if e := b.end(); e != nil {
			err = e
		}
	}
	b.err = err
	return err
}

// fill unpacks and looks through until something may be passed on, or the
// body has ended.
func (b *body) fill() {
	if b.chunk == nil {
		b.chunk = make([]byte, 32<<10)
	}
	for b.err == nil && len(b.raw) <= 1 {
		n, err := b.unpack(b.chunk)
		if found := b.look(b.chunk[:n]); found != nil {
			err = found
		}
		if err != nil {
			b.ended(err)
		}
	}
}

func (b *body) scanned() bool { return b.scan != nil || b.fields != nil || b.watch != nil }

func (b *body) look(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	if b.fields != nil && b.fields.feed(p) {
		return b.method()
	}
	if b.watch != nil {
		if names := b.watch.feed(p); len(names) > 0 {
			if err := b.leak(names); err != nil {
				return err
			}
		}
	}
	if b.scan == nil {
		return nil
	}
	if which := b.scan.feed(p); which >= 0 {
		return b.refuse(which)
	}
	return nil
}

// Close ends the guest's side.
func (b *body) Close() error { return b.guest.Close() }
