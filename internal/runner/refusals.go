package runner

import (
	"context"
	"strings"
	"sync"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/guard"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// maxShown is how much of a refused command is kept, in runes.
const maxShown = 200

// Refusals are a guard's refusals during a session: commands, and requests of
// the agent's tools and hooks. The guard has recorded them.
type Refusals struct {
	mu     sync.Mutex
	list   []sandbox.Denial
	seen   map[sandbox.Denial]bool
	missed int
	Recent *Recent // gets them, too
}

// Of returns g, whose refusals are kept from now on.
func (r *Refusals) Of(g guard.Guard) guard.Guard {
	if r != nil && g.Recorder != nil {
		g.Recorder = keeping{g.Recorder, r}
	}
	return g
}

// A keeping is a recorder that keeps refusals besides.
type keeping struct {
	bawn.Recorder
	refusals *Refusals
}

// Record records e.
func (k keeping) Record(ctx context.Context, e bawn.Event) error {
	if e.Resolved == bawn.Deny {
		k.refusals.add(e)
	}
	return k.Recorder.Record(ctx, e)
}

func (r *Refusals) add(e bawn.Event) {
	d := sandbox.Denial{Rule: e.Rule, Reason: e.Reason, Resource: e.Resource, Remedy: "\"bawn policy explain\" says what would allow it"}
	if name, ok := strings.CutPrefix(e.Rule, "plugin:"); ok {
		d.Remedy = "that plugin decides, no rule does; see \"bawn plugin show " + name + "\""
	}
	if d.Kind.UnmarshalText([]byte(e.Kind)) != nil || d.Operation.UnmarshalText([]byte(e.Operation)) != nil {
		return // it is of no action
	}
	if text := []rune(d.Resource); len(text) > maxShown {
		d.Resource = string(text[:maxShown]) + " …"
	}
	r.Recent.add(d)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.seen[d]:
	case len(r.list) == maxKept:
		r.missed++
	default:
		if r.seen == nil {
			r.seen = map[sandbox.Denial]bool{}
		}
		r.seen[d] = true
		r.list = append(r.list, d)
	}
}

// kept returns the kept refusals, and the number beyond the limit.
func (r *Refusals) kept() ([]sandbox.Denial, int) {
	if r == nil {
		return nil, 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.list, r.missed
}
