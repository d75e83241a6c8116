package runner

import (
	"context"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/intent"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sessionsocket"
)

// Limits of the refusals kept for a guest that asks why.
const (
	maxRecent = 50
	maxWords  = 500 // of each text, in characters
)

// A Recent keeps a session's last refusals, for a guest that asks why. It may be nil,
// and keeps nothing then.
type Recent struct {
	// Hides says which rule hides a place, if one does. It goes by rules only: its
	// answer is the same whether the host has the place or not. It is set once.
	Hides func(path string) (intent.Reason, bool)

	mu   sync.Mutex
	list []intent.Reason // the newest last
}

// add keeps a refusal. An existing entry becomes the newest.
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
	list := []intent.Reason{}
	if w.Path == "" {
		list = r.last(w.Last)
	} else if why, ok := r.place(w.Path); ok {
		list = append(list, why)
	}
	_ = c.Send(intent.Reply{Why: &intent.Reasons{List: list}}) // a guest that is gone needs no answer
}

// place is Hides for a guest's text.
func (r *Recent) place(at string) (why intent.Reason, ok bool) {
	if r.Hides == nil || len(at) > unix.PathMax || !path.IsAbs(at) || path.Clean(at) != at {
		return why, false
	}
	if why, ok = r.Hides(at); ok {
		why.At, why.Times, why.Kind, why.Operation, why.Resource = time.Now().UTC().Truncate(time.Second), 1, bawn.Filesystem.String(), bawn.Read.String(), short(at)
	}
	return why, ok
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
