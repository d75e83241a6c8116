package runner

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bawn-dev/bawn/internal/intent"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sessionsocket"
)

// Bounds of what is kept for a guest that asks why.
const (
	maxRecent = 50
	maxWords  = 500 // of each text, in characters
)

// A Recent keeps what a session has refused last, for a guest that asks why. It may be
// nil, and keeps nothing then.
type Recent struct {
	mu   sync.Mutex
	list []intent.Reason // the newest last
}

// add keeps a refusal. One that is there already becomes the newest.
func (r *Recent) add(d sandbox.Denial) {
	if r == nil {
		return
	}
	n := reasonOf(d)
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := r.find(&n); i >= 0 {
		n.Times, n.Remedy = r.list[i].Times+1, r.list[i].Remedy
		r.list = slices.Delete(r.list, i, i+1)
	}
	r.list = append(r.list, n)
	if len(r.list) > maxRecent {
		r.list = slices.Delete(r.list, 0, 1)
	}
}

// remedy replaces what helps against a refusal that was added.
func (r *Recent) remedy(d sandbox.Denial) {
	if r == nil {
		return
	}
	n := reasonOf(d)
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := r.find(&n); i >= 0 {
		r.list[i].Remedy = n.Remedy
	}
}

func (r *Recent) find(n *intent.Reason) int {
	return slices.IndexFunc(r.list, func(o intent.Reason) bool {
		return o.Kind == n.Kind && o.Operation == n.Operation && o.Resource == n.Resource && o.Rule == n.Rule && o.Reason == n.Reason
	})
}

// last returns the n refusals that are newest, all for n = 0.
func (r *Recent) last(n int) []intent.Reason {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n <= 0 || n > len(r.list) {
		n = len(r.list)
	}
	return slices.Clone(r.list[len(r.list)-n:])
}

// Serve answers `bawn why`: a handler of a session socket.
func (r *Recent) Serve(_ context.Context, c *sessionsocket.Conn, w intent.Why) {
	_ = c.Send(intent.Reply{Why: &intent.Reasons{List: r.last(w.Last)}}) // a guest that is gone needs no answer
}

func reasonOf(d sandbox.Denial) intent.Reason {
	return intent.Reason{
		At: time.Now().UTC().Truncate(time.Second), Times: 1, Kind: d.Kind.String(), Operation: d.Operation.String(), Resource: short(d.Resource), Rule: short(d.Rule),
		Reason: short(d.Reason), Remedy: short(d.Remedy),
	}
}

// short cuts a text that a guest may have made long.
func short(s string) string {
	if len(s) <= maxWords {
		return s
	}
	return strings.ToValidUTF8(s[:maxWords], "") + " …"
}
