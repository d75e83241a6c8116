package mitm

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/bawn-dev/bawn"
)

// A Watched value may leave only where it was decided on. The guest has it.
type Watched struct {
	Name  string // what a question calls it
	Value []byte
}

// A WatchSet is ready to be looked for. It is not changed once it is made.
type WatchSet struct {
	needles
	names  []string
	starts map[uint32][]int // texts by their first four bytes
	maybe  [1 << 10]uint64  // one bit for each hash of such a beginning
}

// beginning is the first four bytes of a text; each has more (shortest).
func beginning(t []byte) uint32 {
	return uint32(t[0])<<24 | uint32(t[1])<<16 | uint32(t[2])<<8 | uint32(t[3])
}

// hash spreads a beginning over the bits of maybe.
func hash(b uint32) uint32 { return b * 0x9E3779B1 >> 16 }

// NewWatchSet makes values ready, as they are and in base64; nil where there is no
// value that could be told from other text.
func NewWatchSet(values []Watched) *WatchSet {
	s := &WatchSet{starts: map[uint32][]int{}}
	for i, v := range values {
		s.names = append(s.names, v.Name)
		s.add(i, bytes.Clone(v.Value))
		s.add(i, base64Forms(v.Value)...)
	}
	for i, t := range s.texts {
		b := beginning(t)
		s.starts[b] = append(s.starts[b], i)
		s.maybe[hash(b)>>6] |= 1 << (hash(b) & 63)
	}
	if len(s.texts) == 0 {
		return nil
	}
	return s
}

// all adds the names of the values in a text.
func (s *WatchSet) all(text []byte, found map[string]bool) {
	var last uint32 // the four bytes that end at i
	for i, c := range text {
		last = last<<8 | uint32(c)
		if h := hash(last); i < 3 || s.maybe[h>>6]&(1<<(h&63)) == 0 {
			continue
		}
		for _, n := range s.starts[last] {
			if bytes.HasPrefix(text[i-3:], s.texts[n]) {
				found[s.names[s.owner[n]]] = true
			}
		}
	}
}

// A watcher looks through a stream, as it is and with its percent escapes undone.
type watcher struct {
	set     *WatchSet
	escapes unescaper
	escaped bool   // an escape was seen: the two views differ
	raw     []byte // the last bytes that went by, one fewer than the longest text
	plain   []byte // and without escapes
}

// feed returns the names of the values that end in b.
func (w *watcher) feed(b []byte) []string {
	found := map[string]bool{}
	if !w.escaped && bytes.IndexByte(b, '%') >= 0 {
		w.escaped, w.plain = true, bytes.Clone(w.raw)
	}
	w.raw = w.look(w.raw, b, found)
	if w.escaped {
		w.plain = w.look(w.plain, w.escapes.append(nil, b), found)
	}
	return slices.Sorted(maps.Keys(found))
}

// look searches tail and the bytes after it, and returns the new tail.
func (w *watcher) look(tail, next []byte, found map[string]bool) []byte {
	keep := w.set.longest - 1
	seam := append(tail, next[:min(len(next), keep)]...)
	w.set.all(seam, found)
	if len(next) > keep {
		w.set.all(next, found)
		seam = append(seam[:0], next[len(next)-keep:]...)
	}
	if over := len(seam) - keep; over > 0 {
		seam = append(seam[:0], seam[over:]...)
	}
	return seam
}

// watch looks for watched values in the parts before the body.
func (x *exchange) watch() {
	if x.Server.Watched == nil {
		return
	}
	if x.watched = x.Server.Watched(); x.watched == nil {
		return
	}
	text := append(append([]byte(x.request.Path), '\n'), x.request.Query...)
	for name, lines := range x.in.Header {
		text = append(append(text, '\n'), name...)
		for _, l := range lines {
			text = append(append(text, '\n'), l...)
		}
	}
	w := watcher{set: x.watched}
	x.request.Found = w.feed(text)
}

// watchBody has the body looked through. One that can't be unpacked is reported
// as a finding.
func (x *exchange) watchBody(b *body) {
	switch {
	case x.watched == nil:
	case b.encoding != "" && b.encoding != "gzip":
		x.request.Found = append(x.request.Found, fmt.Sprintf("a body packed as %.20q", b.encoding))
	default:
		b.watch, b.leak = &watcher{set: x.watched}, x.leak
		x.watchAhead(b)
	}
}

// maxAhead is how long a body is at most that is looked through before anything of
// the request is sent.
const maxAhead = 256 << 10

// watchAhead looks through a short body of a known length, so that one decision is
// about all of the request.
func (x *exchange) watchAhead(b *body) {
	n := x.in.ContentLength
	if n <= 0 || n > maxAhead {
		return
	}
	if b.encoding != "" {
		n = MaxPeek
	}
	seen, _ := b.peek(int(n)) // an error comes again when the body is sent
	w := watcher{set: x.watched}
	for _, name := range w.feed(seen) {
		if !slices.Contains(x.request.Found, name) {
			x.request.Found = append(x.request.Found, name)
		}
	}
}

// leak asks about values in the body, before any byte of theirs that ends them has
// left.
func (x *exchange) leak(names []string) error {
	names = slices.DeleteFunc(names, func(n string) bool { return slices.Contains(x.request.Found, n) })
	if len(names) == 0 {
		return nil
	}
	req := x.request
	req.Found = names
	d := bawn.Denied("a secret of the workspace stands in the body", "secret")
	if x.Leak != nil {
		d = x.Leak(x.in.Context(), req)
	}
	if d.Verdict == bawn.Allow {
		x.request.Found = append(slices.Clip(x.request.Found), names...)
		return nil
	}
	remedy := "leave the secret out"
	if x.Remedy != nil {
		remedy = x.Remedy(req, d)
	}
	refusal := denied(d, remedy)
	refusal.close, refusal.Status = true, http.StatusForbidden
	x.refused.Store(refusal)
	return refusal
}
