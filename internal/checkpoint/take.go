package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// Options say what a checkpoint is taken of, and on which occasion.
type Options struct {
	Session, Agent string
	Why            Why
	Roots          []string // absolute, without links; the workspace first
	// Tracked reports whether git's index lists files below a directory. It may be
	// nil, and is called from several goroutines.
	Tracked func(dir string) bool
	// Running says that a guest runs meanwhile: what has changed is written to the
	// disk before it is read, so that the next change by a mapping gives a new ctime.
	Running bool
	// Progress is told how many bytes of how many have been read. It may be nil.
	Progress func(done, all int64)
}

// A Taking is a checkpoint that is being taken: everything was looked at, nothing
// was read.
type Taking struct {
	s     *Store
	o     Options
	when  time.Time
	roots []*rooted
	pack  *pack
	id    string
}

type rooted struct {
	path      string
	top       int
	old, now  *node
	uncovered []Uncovering
}

// Scan looks at every file below the roots.
func (s *Store) Scan(o Options) (_ *Taking, err error) {
	t := &Taking{s: s, o: o, when: time.Now()}
	defer func() {
		if err != nil {
			t.Close()
		}
	}()
	for _, root := range o.Roots {
		if !utf8.ValidString(root) {
			return nil, fmt.Errorf("%q is not UTF-8", root)
		}
		r := &rooted{path: root, top: -1}
		t.roots = append(t.roots, r)
		if r.top, err = unix.Open(root, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0); err != nil {
			return nil, fmt.Errorf("open %q: %w", root, err)
		}
		r.old = s.readIndex(root)
		var tracked func(string) bool
		if o.Tracked != nil {
			tracked = func(rel string) bool { return o.Tracked(filepath.Join(root, rel)) }
		}
		if r.now, err = scanRoot(r.top, r.old, tracked); err != nil {
			return nil, fmt.Errorf("look at %q: %w", root, err)
		}
		limit(r.now, r.old, MaxTotal)
		r.uncovered = r.now.uncovered(root, nil)
	}
	return t, nil
}

// Uncovered are the places that the checkpoint will not have.
func (t *Taking) Uncovered() []Uncovering {
	var list []Uncovering
	for _, r := range t.roots {
		list = append(list, r.uncovered...)
	}
	return list
}

// Changed reports whether anything differs from what the last checkpoint of the
// roots has.
func (t *Taking) Changed() bool {
	return slices.ContainsFunc(t.roots, func(r *rooted) bool { return r.old == nil || r.now.changed(r.old) })
}

// changed reports whether a tree is not the one that the index has.
func (n *node) changed(old *node) bool {
	if old == nil || len(n.items) != len(old.items) {
		return true
	}
	for i := range n.items {
		x, o := &n.items[i], &old.items[i]
		if x.fresh && !o.racy || x.Name != o.Name || x.Kind != o.Kind || x.Mode != o.Mode || x.Size != o.Size || x.sub == nil && x.MTime != o.MTime || x.sub != nil && x.sub.changed(o.sub) {
			return true
		}
	}
	return false
}

// Keep stores what the store doesn't have and writes the record. git goes into it
// as it is. The checkpoint is there when Keep returns, though perhaps not yet on
// the disk: Finish has it there.
func (t *Taking) Keep(git json.RawMessage) (*Checkpoint, error) {
	if err := t.store(); err != nil {
		return nil, err
	}
	c := &Checkpoint{ID: newID(t.when), Session: t.o.Session, Agent: t.o.Agent, When: t.when, Why: t.o.Why, Git: git}
	for _, r := range t.roots {
		root := Root{Path: r.path, Mode: r.now.mode, Tree: r.now.object, Uncovered: r.uncovered}
		r.now.count(&root)
		c.Roots = append(c.Roots, root)
	}
	if err := t.s.writeRecord(c); err != nil {
		return nil, fmt.Errorf("write the record of a checkpoint: %w", err)
	}
	t.id = c.ID
	return c, nil
}

// Finish has the checkpoint on the disk and leaves an index for the next one.
func (t *Taking) Finish() error {
	if t.id == "" {
		return nil
	}
	if err := errors.Join(t.pack.sync(), syncFile(recordPath(t.s.dir, t.id))); err != nil {
		return err
	}
	for _, r := range t.roots {
		if err := t.s.writeIndex(r.path, r.now); err != nil {
			return fmt.Errorf("write the index of a checkpoint: %w", err)
		}
	}
	return nil
}

// Close ends the taking. It may be called for nil.
func (t *Taking) Close() {
	if t == nil {
		return
	}
	for _, r := range t.roots {
		if r.top >= 0 {
			_ = unix.Close(r.top)
			r.top = -1
		}
	}
}

// count adds up what the node covers.
func (n *node) count(r *Root) {
	for i := range n.items {
		switch x := &n.items[i]; {
		case x.sub != nil:
			x.sub.count(r)
		case x.Kind.covered():
			r.Files++
			r.Bytes += x.Size
		}
	}
}

// uncovered lists what is not covered below a directory.
func (n *node) uncovered(at string, list []Uncovering) []Uncovering {
	for i := range n.items {
		x := &n.items[i]
		switch {
		case x.sub != nil:
			list = x.sub.uncovered(path.Join(at, x.Name), list)
		case x.Kind == Uncovered:
			list = append(list, Uncovering{Path: path.Join(at, x.Name), Size: x.Size, Why: x.why.String()})
		}
	}
	return list
}
