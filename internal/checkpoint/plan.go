package checkpoint

import (
	"crypto/rand"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// An Op is an undo's operation at a path.
type Op string

// The operations. Kept ones are told, not done.
const (
	Create  Op = "create"
	Replace Op = "replace"
	Remove  Op = "remove"
	Merged  Op = "merge" // both sides have changed a text, and it gets the changes of both
	Mode    Op = "mode"  // of a directory, with its extended attributes
	Kept    Op = "kept"
	// Aside renames a file that no checkpoint can hold (too large, a socket) and
	// that stands where something is restored. Why is its new name.
	Aside Op = "aside"
)

// A Change is one thing that an undo does, or keeps from doing.
type Change struct {
	Op   Op     `json:"op"`
	Path string `json:"path"` // absolute
	Kind Kind   `json:"-"`
	Why  string `json:"why,omitempty"` // it is kept; the new name of a file that is set aside
	Size int64  `json:"size,omitempty"`

	root  *rooted
	rel   string
	entry *Entry // the wanted state; nil to remove
	now   *item  // as it is; nil where there is nothing
}

// Reasons why an undo leaves a file as it is.
const (
	whyChanged = "you have changed it since the session"
	whyRemoved = "you have removed it since the session"

	// WhyInside is that of a directory which is not empty.
	WhyInside = "it holds what stays"
)

// An Undo leads back to a checkpoint from the changes of a session.
type Undo struct {
	To      *Checkpoint
	After   *Checkpoint // the session's end; nil to undo every difference
	Paths   []string    // absolute: only these and everything below them; nil for all
	Changes []Change
	Kept    []Change
	// Merge is asked for files that both sides have changed: old is how the session has
	// found it, theirs is its own, mine the present. why says what can't be merged. Without
	// Merge the human's stays.
	Merge func(old, theirs, mine []byte) (merged []byte, why string)
	// Theirs replaces what can't be merged.
	Theirs bool

	taking *Taking
	linked map[fileName]string // names that stay of files that have several
}

// Plan compares the present, which t has scanned, and says what there is to do.
func (t *Taking) Plan(u *Undo) error {
	u.taking, u.Changes, u.Kept, u.linked = t, nil, nil, map[fileName]string{}
	for _, root := range u.To.Roots {
		k := slices.IndexFunc(t.roots, func(r *rooted) bool { return r.key() == root.Top() })
		if k < 0 {
			continue
		}
		p := planner{s: t.s, u: u, r: t.roots[k]}
		before, err := t.s.tree(root.Tree)
		if err != nil {
			return err
		}
		var after *level
		if u.After != nil {
			after = &level{}
			for _, r := range u.After.Roots {
				if r.Top() == root.Top() {
					after, err = p.level(r.Tree)
					p.top(root, &r)
				}
			}
			if err != nil {
				return err
			}
		} else {
			p.top(root, nil)
		}
		if err := p.dir("", &level{before}, after, t.roots[k].now); err != nil {
			return err
		}
	}
	return nil
}

// A level is a tree, or nothing; a nil level is one that is not known.
type level struct{ list []Entry }

func (l *level) at(name string) *Entry {
	if l == nil {
		return nil
	}
	i, ok := slices.BinarySearchFunc(l.list, name, func(e Entry, name string) int { return strings.Compare(e.Name, name) })
	if !ok {
		return nil
	}
	return &l.list[i]
}

// top plans for the mode of a root, unless the human has changed it since.
func (p *planner) top(root Root, after *Root) {
	if after != nil && (after.Mode != p.r.now.mode || after.Mode == root.Mode) {
		return
	}
	if self, _ := p.wanted(""); self && p.r.now.mode != root.Mode {
		p.change(Mode, "", &Entry{Kind: Directory, Mode: root.Mode}, &item{Entry: Entry{Kind: Directory, Mode: p.r.now.mode}})
	}
}

type planner struct {
	s *Store
	u *Undo
	r *rooted
}

func (p *planner) level(d Digest) (*level, error) {
	list, err := p.s.tree(d)
	return &level{list}, err
}

// below returns the tree of an entry that is a directory: an empty one for others,
// nil where the level above is not known.
func (p *planner) below(l *level, e *Entry) (*level, error) {
	switch {
	case l == nil:
		return nil, nil
	case e == nil || e.Kind != Directory:
		return &level{}, nil
	}
	return p.level(e.Object)
}

// wanted reports whether a path is one of those to be undone, or leads to one.
func (p *planner) wanted(rel string) (self, within bool) {
	if len(p.u.Paths) == 0 {
		return true, true
	}
	at := filepath.Join(p.r.path, rel)
	for _, want := range p.u.Paths {
		self = self || at == want || strings.HasPrefix(at, want+"/")
		within = within || self || strings.HasPrefix(want, at+"/")
	}
	return self, within
}

// dir plans for all names of a directory.
func (p *planner) dir(rel string, before, after *level, now *node) error {
	names := make([]string, 0, len(before.list)+8)
	for i := range before.list {
		names = append(names, before.list[i].Name)
	}
	if now != nil {
		for i := range now.list() {
			names = append(names, now.items[i].Name)
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		at := path.Join(rel, name)
		if _, within := p.wanted(at); !within {
			continue
		}
		if err := p.name(at, before.at(name), after, after.at(name), now.at(0, name)); err != nil {
			return err
		}
	}
	return nil
}

// name plans for one name: b as it was, a as the session left it, n as it is.
func (p *planner) name(rel string, b *Entry, after *level, a *Entry, n *item) error {
	if a != nil && !a.Kind.covered() {
		after, a = nil, nil // the session's end is unknown
	}
	known := after != nil
	switch {
	case b != nil && !b.Kind.covered():
		return nil // nobody knows what it was
	case b != nil && b.Kind == Directory && (n == nil || n.Kind == Directory):
		return p.both(rel, b, after, a, n)
	case n != nil && n.Kind == Directory:
		return p.removed(rel, b, after, a, n)
	}
	self, _ := p.wanted(rel)
	switch {
	case !self:
	case b == nil && leftover(n):
		p.change(Remove, rel, nil, n)
	case equal(b, n.entry()):
		if b != nil && b.Link != 0 {
			p.u.linked[fileName{p.r, b.Link}] = rel
		}
	case known && equal(b, a): // not the session's doing
	case b == nil && n != nil && !n.Kind.covered(): // it is of no use to remove it
	case known && !equal(a, n.entry()) && p.conflict(rel, b, a, n):
	case b == nil:
		p.change(Remove, rel, nil, n)
	case n != nil && !n.Kind.covered():
		p.aside(rel, n)
		return p.name(rel, b, after, a, nil)
	case b.Kind == Directory:
		p.change(Remove, rel, nil, n)
		return p.both(rel, b, after, a, nil)
	case n == nil:
		p.change(Create, rel, b, nil)
	default:
		p.change(Replace, rel, b, n)
	}
	return nil
}

func (x *item) entry() *Entry {
	if x == nil {
		return nil
	}
	return &x.Entry
}

func equal(a, b *Entry) bool {
	if a == nil || b == nil {
		return a == b
	}
	if a.Kind == Directory && b.Kind == Directory {
		return a.Mode == b.Mode && a.sameOwner(b)
	}
	return a.same(b)
}

// both plans for a directory that is to be there.
func (p *planner) both(rel string, b *Entry, after *level, a *Entry, n *item) error {
	known := after != nil
	if self, _ := p.wanted(rel); self {
		switch {
		case n == nil && known && a != nil && a.Kind == Directory && !(p.u.Theirs && p.sessions(b, a)):
			if p.sessions(b, a) {
				p.keep(rel, b, nil, whyRemoved)
			}
			return nil
		case n == nil:
			p.change(Create, rel, b, nil)
		case equal(b, &n.Entry) || known && a != nil && equal(b, a):
		case known && !equal(a, &n.Entry):
			p.keep(rel, b, n, whyChanged)
		default:
			p.change(Mode, rel, b, n)
		}
	} else if n == nil {
		p.change(Create, rel, b, nil) // it leads to the wanted target
	}
	before, err := p.level(b.Object)
	if err != nil {
		return err
	}
	was, err := p.below(after, a)
	if err != nil {
		return err
	}
	var sub *node
	if n != nil {
		sub = n.sub
	}
	return p.dir(rel, before, was, sub)
}

// sessions reports whether a session has changed anything in a directory.
func (p *planner) sessions(b, a *Entry) bool { return a.Object != b.Object || !equal(a, b) }

// removed plans for a directory that is to be removed or replaced.
func (p *planner) removed(rel string, b *Entry, after *level, a *Entry, n *item) error {
	if self, _ := p.wanted(rel); !self {
		was, err := p.below(after, a)
		if err != nil {
			return err
		}
		return p.dir(rel, &level{}, was, n.sub)
	}
	if after != nil && equal(b, a) {
		return nil // the human has made it since
	}
	kept := len(p.u.Kept)
	was, err := p.below(after, a)
	if err != nil {
		return err
	}
	all, human, err := p.clear(rel, was, n.sub)
	if err != nil {
		return err
	}
	switch {
	case !all && !human && b != nil:
		p.aside(rel, n)
		p.change(Create, rel, b, nil)
	case all:
		p.change(Remove, rel, nil, n)
		if b != nil {
			p.change(Create, rel, b, nil)
		}
	case b != nil || kept == len(p.u.Kept):
		p.keep(rel, b, n, WhyInside)
	}
	return nil
}

// clear plans to remove a session's files from a directory. It reports whether that
// empties it, and otherwise whether some of the rest is the human's.
func (p *planner) clear(rel string, after *level, n *node) (all, human bool, err error) {
	all = true
	for i := range n.list() {
		x := &n.items[i]
		at, a := path.Join(rel, x.Name), after.at(x.Name)
		switch {
		case x.Kind == Directory && (after == nil || a != nil && a.Kind == Directory):
			was, err := p.below(after, a)
			if err != nil {
				return false, false, err
			}
			empty, theirs, err := p.clear(at, was, x.sub)
			if err != nil {
				return false, false, err
			}
			if empty {
				p.change(Remove, at, nil, x)
			}
			all, human = all && empty, human || theirs
		case after != nil && a == nil: // made since
			all, human = false, true
		case !x.Kind.covered() || x.Kind == Directory:
			all = false
		case after != nil && !equal(a, &x.Entry):
			p.keep(at, nil, x, whyChanged)
			all, human = false, true
		default:
			p.change(Remove, at, nil, x)
		}
	}
	return all, human, nil
}

// leftover reports a file that an undo was making when it was killed.
func leftover(n *item) bool {
	return n != nil && strings.HasPrefix(n.Name, tempPrefix) && n.Kind != Directory && n.Kind.covered()
}

// aside plans to rename an existing file.
func (p *planner) aside(rel string, n *item) {
	p.change(Aside, rel, nil, n)
	c := &p.u.Changes[len(p.u.Changes)-1]
	c.Why = fmt.Sprintf("%.200s.aside-%s", n.Name, strings.ToLower(rand.Text()[:8]))
}

func (p *planner) change(op Op, rel string, e *Entry, n *item) {
	p.u.Changes = append(p.u.Changes, p.made(op, rel, e, n))
}

func (p *planner) keep(rel string, e *Entry, n *item, why string) {
	c := p.made(Kept, rel, e, n)
	c.Why = why
	p.u.Kept = append(p.u.Kept, c)
}

func (p *planner) made(op Op, rel string, e *Entry, n *item) Change {
	c := Change{Op: op, Path: filepath.Join(p.r.path, rel), root: p.r, rel: rel, entry: e, now: n}
	switch {
	case e != nil:
		c.Kind, c.Size = e.Kind, e.Size
	case n != nil:
		c.Kind, c.Size = n.Kind, n.Size
	}
	return c
}
