package checkpoint

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A Difference is one name that two checkpoints have differently. Old is nil if the
// name is new, and New if it is gone.
type Difference struct {
	Path     string // absolute
	Old, New *Entry
}

// Compare returns what differs between two checkpoints in the roots that both have, by
// path. For a new or removed directory each name is listed. With paths, which are
// absolute, only these and everything below them count. Times do not count.
func (s *Store) Compare(a, b *Checkpoint, paths []string) ([]Difference, error) {
	c := comparing{s: s, paths: paths}
	for _, old := range a.Roots {
		k := slices.IndexFunc(b.Roots, func(r Root) bool { return r.Top() == old.Top() })
		if k < 0 || old.Tree == b.Roots[k].Tree {
			continue
		}
		if err := c.trees(old.Path, &Entry{Kind: Directory, Object: old.Tree}, &Entry{Kind: Directory, Object: b.Roots[k].Tree}); err != nil {
			return nil, err
		}
	}
	return c.list, nil
}

type comparing struct {
	s     *Store
	paths []string
	list  []Difference
}

// wanted reports whether a path counts, or leads to one that does.
func (c *comparing) wanted(at string) (self, within bool) {
	if len(c.paths) == 0 {
		return true, true
	}
	for _, want := range c.paths {
		self = self || at == want || strings.HasPrefix(at, want+"/")
		within = within || self || strings.HasPrefix(want, at+"/")
	}
	return self, within
}

func (c *comparing) trees(at string, a, b *Entry) error {
	old, err := c.s.entries(a)
	if err != nil {
		return err
	}
	now, err := c.s.entries(b)
	if err != nil {
		return err
	}
	var names []string
	for _, l := range []*level{old, now} {
		for i := range l.list {
			names = append(names, l.list[i].Name)
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if err := c.name(filepath.Join(at, name), old.at(name), now.at(name)); err != nil {
			return err
		}
	}
	return nil
}

func (c *comparing) name(at string, a, b *Entry) error {
	self, within := c.wanted(at)
	if !within || a != nil && b != nil && a.Object == b.Object && equal(a, b) {
		return nil
	}
	if self && !equal(a, b) {
		c.list = append(c.list, Difference{at, a, b})
	}
	if a != nil && a.Kind == Directory || b != nil && b.Kind == Directory {
		return c.trees(at, a, b)
	}
	return nil
}

// ErrTooLarge says that a content is larger than was asked for.
var ErrTooLarge = errors.New("it is too large to be shown")

// Content returns a file's content, or a link's target. It is nil for all else.
func (s *Store) Content(e *Entry, most int64) ([]byte, error) {
	switch {
	case e == nil || e.Kind != File && e.Kind != Large && e.Kind != Symlink:
		return nil, nil
	case e.Size > most:
		return nil, ErrTooLarge
	case e.Kind != Large:
		return s.get(e.Object)
	}
	list, err := s.get(e.Object)
	if err != nil {
		return nil, err
	}
	pieces, err := digests(list)
	var all []byte
	for _, d := range pieces {
		b, err := s.get(d)
		if err != nil {
			return nil, err
		}
		if all = append(all, b...); int64(len(all)) > most {
			return nil, ErrTooLarge
		}
	}
	return all, err
}

// Present keeps the contents of the scanned files, and returns a checkpoint that
// no record names: it lasts until Close.
func (t *Taking) Present() (*Checkpoint, error) {
	if err := t.store(); err != nil {
		return nil, err
	}
	c := &Checkpoint{When: t.when, Why: t.o.Why}
	for _, r := range t.roots {
		c.Roots = append(c.Roots, Root{Path: r.path, File: r.file, Mode: r.now.mode, Tree: r.now.object, Uncovered: r.uncovered})
	}
	return c, nil
}

// Forget removes a checkpoint. Its own objects go with the next Prune.
func (s *Store) Forget(id string) error {
	err := os.Remove(recordPath(s.dir, id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Sync has the record of a checkpoint on the disk, for one without Finish that found
// nothing new.
func (s *Store) Sync(id string) error { return syncFile(recordPath(s.dir, id)) }
