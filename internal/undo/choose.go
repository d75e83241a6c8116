package undo

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn/internal/checkpoint"
)

// A Target is where an undo leads.
type Target struct {
	To    *checkpoint.Checkpoint
	After *checkpoint.Checkpoint // the session's result; nil if unknown
	// Session is the one that is undone; "" where a checkpoint of no session is
	// gone back to.
	Session string
	Killed  bool // it has not ended yet
}

// ErrNothing says that a workspace has no session to undo.
var ErrNothing = errors.New("no session has changed anything here")

// minShort is how much of an ID is written at least: of less, the name of a file that is
// gone could be one.
const minShort = 4

// Whole reports whether a name is the ID of a session or checkpoint, not only its begin.
func Whole(list []checkpoint.Checkpoint, name string) bool {
	return name != "" && slices.ContainsFunc(list, func(c checkpoint.Checkpoint) bool { return name == c.ID || name == c.Session })
}

// Choose returns the meaning of a name: a session, a checkpoint, or a unique beginning of
// its ID, of at least four characters. "" stands for the last session or apply that has
// changed anything. list are all checkpoints of the workspace, the oldest first.
func Choose(list []checkpoint.Checkpoint, name string) (*Target, error) {
	if name == "" {
		return lastChange(list)
	}
	var ids []string
	for i := range list {
		for _, id := range []string{list[i].ID, list[i].Session} {
			if abbreviates(name, id) && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	if slices.Contains(ids, name) {
		ids = []string{name}
	}
	switch len(ids) {
	case 0:
		return nil, fmt.Errorf("%q is neither a session nor a checkpoint of this workspace", name)
	case 1:
	default:
		return nil, fmt.Errorf("%q begins the IDs of %d sessions and checkpoints", name, len(ids))
	}
	if t := ofSession(list, ids[0]); t != nil {
		return t, nil
	}
	k := slices.IndexFunc(list, func(c checkpoint.Checkpoint) bool { return c.ID == ids[0] })
	t := &Target{To: &list[k]}
	if s := ofSession(list, list[k].Session); s != nil {
		t.After, t.Session, t.Killed = s.After, s.Session, s.Killed
	}
	return t, nil
}

// begins reports whether a checkpoint was taken before the changes of a session, or before
// those of an apply.
func begins(w checkpoint.Why) bool { return w == checkpoint.AtStart || w == checkpoint.BeforeApply }

func abbreviates(name, id string) bool {
	return id != "" && strings.HasPrefix(id, name) && (len(name) >= minShort || name == id)
}

// lastChange is the last session or apply whose end differs from its begin.
func lastChange(list []checkpoint.Checkpoint) (*Target, error) {
	for i := range slices.Backward(list) {
		if !begins(list[i].Why) {
			continue
		}
		t := ofSession(list, list[i].Session)
		if t != nil && (t.After == nil || changed(t.To, t.After)) {
			return t, nil
		}
	}
	return nil, ErrNothing
}

// ofSession returns how a session began and ended, or nil. A killed session's end is
// the state that the next checkpoint of another one has found.
func ofSession(list []checkpoint.Checkpoint, id string) *Target {
	if id == "" {
		return nil
	}
	var t *Target
	last := 0
	for i := range list {
		c := &list[i]
		if c.Session != id {
			continue
		}
		if t == nil {
			t = &Target{To: c, Session: id, Killed: true}
		}
		last = i
		if c.Why == checkpoint.AtEnd {
			t.After, t.Killed = c, false
		}
	}
	if t != nil && t.Killed && last+1 < len(list) && hasRoots(&list[last+1], t.To) {
		t.After = &list[last+1]
	}
	return t
}

// hasRoots reports whether a checkpoint has all roots of another one.
func hasRoots(c, of *checkpoint.Checkpoint) bool {
	return !slices.ContainsFunc(of.Roots, func(r checkpoint.Root) bool {
		return !slices.ContainsFunc(c.Roots, func(o checkpoint.Root) bool { return o.Top() == r.Top() })
	})
}
