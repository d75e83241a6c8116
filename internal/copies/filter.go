package copies

import (
	"errors"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn/internal/checkpoint"
	"github.com/bawn-dev/bawn/internal/fspath"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
	"github.com/bawn-dev/bawn/internal/sandbox/supervise"
)

// A Filter says what a session like the copy's, but without a copy, could not have
// written: it is held back.
type Filter struct {
	Protected []string `json:"protected_below"` // as of a layout.Plan
	Extra     []string `json:"protected_names,omitempty"`
	Open      []string `json:"unprotected_names,omitempty"`
	Projects  []string `json:"without_homes,omitempty"`
	InHome    []string `json:"protected_places,omitempty"`
	Absent    []string `json:"hidden_and_absent,omitempty"`
	Targets   []string `json:"protected_targets,omitempty"`
	Guarded   []string `json:"guarded,omitempty"`
	Owned     []string `json:"owned,omitempty"`
	Denied    []string `json:"denied_patterns,omitempty"`
	NoNames   bool     `json:"unprotected,omitempty"`
	Closed    []string `json:"closed,omitempty"` // places in the workspace that are hidden or only read
}

// FilterOf is that of a plan of the same session without a copy.
func FilterOf(p *layout.Plan, workspace string) Filter {
	f := Filter{
		Protected: p.Protected, Extra: p.ExtraNames, Open: p.OpenNames, Projects: p.Projects, InHome: p.InHome, Absent: p.Absent, Targets: p.Targets,
		Guarded: p.Guarded, Owned: p.Owned, Denied: p.Denied, NoNames: p.Unprotected,
	}
	for _, m := range p.Mounts {
		if layout.Below(m.Target, workspace) && m.Kind != layout.KindBind {
			f.Closed = append(f.Closed, m.Target)
		}
	}
	return f
}

// rules are the filter's. Without a place below which names are protected nothing would
// be held back: that is a record of no session.
func (f *Filter) rules(workspace string) (*supervise.ApplyFilter, error) {
	if !slices.Contains(f.Protected, workspace) {
		return nil, errors.New("its record does not say what is held back")
	}
	return supervise.NewApplyFilter(&layout.Plan{
		Protected: f.Protected, ExtraNames: f.Extra, OpenNames: f.Open, Projects: f.Projects, InHome: f.InHome, Absent: f.Absent, Targets: f.Targets,
		Guarded: f.Guarded, Owned: f.Owned, Denied: f.Denied, Unprotected: f.NoNames,
	}), nil
}

// A holder decides about one layer.
type holder struct {
	workspace string
	root      *os.Root // the workspace
	closed    []string
	rules     *supervise.ApplyFilter
	layer     *checkpoint.Layer
	opened    []string // absolute: what a human has opened
	looked    map[string]bool
}

// gitNames are those by which a directory becomes git's, and what git obeys there.
var gitNames = []string{"HEAD", "objects", "refs", "commondir", "config", "config.worktree", "modules", "worktrees", "hooks", "info"}

// look tells the rules of a name that is there or comes. Of git's names it also counts
// what stands beside one in the workspace now.
func (h *holder) look(rel string, isDir bool) {
	h.rules.Holds(path.Join(h.workspace, rel), isDir)
	dir := path.Dir(rel)
	if h.looked[dir] || !slices.ContainsFunc(gitNames, func(n string) bool { return strings.EqualFold(n, path.Base(rel)) }) {
		return
	}
	h.looked[dir] = true
	for _, name := range gitNames {
		if info, err := h.root.Lstat(path.Join(dir, name)); err == nil {
			h.rules.Holds(path.Join(h.workspace, dir, name), info.IsDir())
		}
	}
}

// opens reports whether a human has opened a change, or one below it, for which a
// directory has to be made.
func (h *holder) opens(c *checkpoint.LayerChange, abs string) bool {
	isDir := c.New != nil && c.New.Kind == checkpoint.Directory
	return slices.ContainsFunc(h.opened, func(o string) bool { return o == abs || isDir && strings.HasPrefix(o, abs+"/") })
}

// hold says why a change is held back, or "".
func (h *holder) hold(c *checkpoint.LayerChange) string {
	abs := path.Join(h.workspace, c.Path)
	if h.opens(c, abs) {
		return ""
	}
	for _, p := range h.closed {
		if p == abs || layout.Below(abs, p) {
			return "the session may not write it"
		}
	}
	if c.Old != nil && (c.New == nil || c.Old.Kind == checkpoint.Directory != (c.New.Kind == checkpoint.Directory)) {
		if why := h.rule(supervise.ChangeRemove, abs, c.Old.Kind == checkpoint.Directory); why != "" || c.New == nil {
			return why
		}
	}
	return h.comes(c, abs)
}

// comes says why something that comes is held back, or "".
func (h *holder) comes(c *checkpoint.LayerChange, abs string) string {
	bits := c.New.Mode & setID
	if c.Old != nil {
		bits &^= c.Old.Mode
	}
	switch c.New.Kind {
	case checkpoint.Directory:
		switch {
		case bits&^setGroup != 0: // a directory has that of the one in which it is made
			return "it has the set-user-ID bit"
		case c.Old != nil && c.Old.Kind == checkpoint.Directory:
			return ""
		}
		return h.rule(supervise.ChangeMake, abs, true)
	case checkpoint.Symlink:
		if why := h.rule(supervise.ChangeLink, abs, false); why != "" {
			return why
		}
		return h.leads(c.Path, c.Link)
	case checkpoint.Pipe:
		return "it is a named pipe"
	}
	if bits != 0 {
		return "it runs as another user or group (set-user-ID, set-group-ID)"
	}
	return h.rule(supervise.ChangePut, abs, false)
}

const (
	setID    = 0o6000
	setGroup = 0o2000
)

// rule says which rule refuses a change, or "".
func (h *holder) rule(c supervise.Change, abs string, isDir bool) string {
	if rule := h.rules.Refuses(c, abs, isDir); rule != "" {
		return "the host would execute or obey it (" + rule + ")"
	}
	return ""
}

// leads says why a link is held back, or "": one that leads out of the workspace, or
// through another link.
func (h *holder) leads(rel, to string) string {
	at, inside := fspath.LinkInside(rel, to)
	if !inside {
		return "it is a link out of the workspace"
	}
	for p := at; p != "."; p = path.Dir(p) {
		if h.layer.Links(p) {
			return "it is a link that leads through another one"
		}
	}
	if at == "." {
		return ""
	}
	if why := h.rule(supervise.ChangePut, path.Join(h.workspace, at), false); why != "" {
		return "it is a link to such a place: " + why
	}
	return ""
}

// Merge returns what the workspace was when the session began with what the session has
// changed, for as long as the store is open. What is held back is left out, but for
// opened, and listed with what nothing can take over.
func (c *Copy) Merge(s *checkpoint.Store, base *checkpoint.Checkpoint, opened []string) (*checkpoint.Checkpoint, []checkpoint.Leaving, error) {
	rules, err := c.Filter.rules(c.Workspace)
	if err != nil {
		return nil, nil, err
	}
	top, err := c.upper()
	if err != nil {
		return nil, nil, err
	}
	defer top.Close()
	root, err := os.OpenRoot(c.Workspace)
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()
	h := &holder{workspace: c.Workspace, root: root, closed: c.Filter.Closed, rules: rules, opened: opened, looked: map[string]bool{}}
	h.layer = &checkpoint.Layer{Base: base, Top: top, Unlock: c.lock != nil, Look: h.look, Hold: h.hold}
	merged, err := s.Merge(h.layer)
	return merged, h.layer.Left, err
}

// MergeAll is Merge with nothing held back, to be shown.
func (c *Copy) MergeAll(s *checkpoint.Store, base *checkpoint.Checkpoint) (*checkpoint.Checkpoint, error) {
	top, err := c.upper()
	if err != nil {
		return nil, err
	}
	defer top.Close()
	return s.Merge(&checkpoint.Layer{Base: base, Top: top, Unlock: c.lock != nil, Hold: func(*checkpoint.LayerChange) string { return "" }})
}

// BaseOf returns the checkpoint that the copy was begun from.
func (r *Record) BaseOf(state string) (*checkpoint.Checkpoint, error) {
	list, err := checkpoint.List(checkpoint.Place(state, r.Workspace))
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(list, func(c checkpoint.Checkpoint) bool { return c.ID == r.Base && r.Base != "" })
	if i < 0 {
		return nil, errors.New("the checkpoint that the session began from is gone or damaged, so that nothing can be compared")
	}
	return &list[i], nil
}
