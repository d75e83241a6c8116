package undo

import (
	"errors"
	"iter"

	"github.com/bawn-dev/bawn/internal/checkpoint"
	"github.com/bawn-dev/bawn/internal/gitstore"
)

// maxShown is how large a file may be whose lines are compared.
const maxShown = 16 << 20

// A Change is one name that differs.
type Change struct {
	checkpoint.Difference
	Binary         bool
	Hunks          []Hunk
	Added, Deleted int   // lines
	Missing        error // why the lines are not there
}

// A Diff is what differs between two moments.
type Diff struct {
	store  *checkpoint.Store
	taking *checkpoint.Taking
	list   []checkpoint.Difference
	git    []gitstore.RefChange
}

// CompareCopy compares a checkpoint with what makes another one.
func CompareCopy(dir string, base *checkpoint.Checkpoint, source Source, paths []string) (_ *Diff, err error) {
	d := &Diff{}
	defer func() {
		if err != nil {
			d.Close()
		}
	}()
	if d.store, err = checkpoint.Open(dir, patience); err != nil {
		return nil, err
	}
	now, err := source(d.store)
	if err != nil {
		return nil, err
	}
	d.list, err = d.store.Compare(base, now, paths)
	return d, err
}

// Compare compares how a session began with how it ended. If it has not ended, or if
// the target is a checkpoint of its own, the end is the present. own are Bawn's own
// directories, which no checkpoint has. With paths, nothing of git is compared.
func Compare(dir string, t *Target, paths, own []string) (_ *Diff, err error) {
	d := &Diff{}
	defer func() {
		if err != nil {
			d.Close()
		}
	}()
	if d.store, err = checkpoint.Open(dir, patience); err != nil {
		return nil, err
	}
	after := t.After
	if after == nil || !begins(t.To.Why) {
		if after, err = d.present(t.To, own); err != nil {
			return nil, err
		}
	}
	if d.list, err = d.store.Compare(t.To, after, paths); err != nil || len(paths) > 0 {
		return d, err
	}
	d.git, err = compareGit(t.To, t.After)
	return d, err
}

// compareGit compares the refs, where both moments have a state of git. The end is the
// present if the session has not ended, or if the first moment is a checkpoint of its own.
func compareGit(to, after *checkpoint.Checkpoint) ([]gitstore.RefChange, error) {
	dir := gitDirOf(to.Workspace)
	if to.Git == nil || dir == "" {
		return nil, nil
	}
	if after == nil || !begins(to.Why) {
		return gitstore.Differences(dir, to.Git, nil)
	}
	if after.Git == nil {
		return nil, nil
	}
	return gitstore.Differences(dir, to.Git, after.Git)
}

// Refs returns what differs in git.
func (d *Diff) Refs() []gitstore.RefChange { return d.git }

// Git returns the same in words.
func (d *Diff) Git() []Step {
	var list []Step
	for _, c := range d.git {
		list = append(list, gitStep(c))
	}
	return list
}

// present looks at the roots of a checkpoint as they are now.
func (d *Diff) present(c *checkpoint.Checkpoint, own []string) (_ *checkpoint.Checkpoint, err error) {
	dirs, files := roots(c)
	if d.taking, err = d.store.Scan(checkpoint.Options{Why: checkpoint.AtTime, Roots: dirs, Files: files, Without: own, Running: true}); err != nil {
		return nil, err
	}
	return d.taking.Present()
}

// Close lets others have the checkpoints.
func (d *Diff) Close() {
	d.taking.Close()
	if d.store != nil {
		_ = d.store.Close()
	}
}

// List returns what differs, by path, without a look at the contents.
func (d *Diff) List() []checkpoint.Difference { return d.list }

// All returns the changes by path.
func (d *Diff) All() iter.Seq[*Change] {
	return func(yield func(*Change) bool) {
		for _, x := range d.list {
			if !yield(d.Change(x)) {
				return
			}
		}
	}
}

// Contents returns both sides of a file, or where a link leads; nil for all else.
func (d *Diff) Contents(x checkpoint.Difference) (old, now []byte, err error) {
	old, err = d.store.Content(x.Old, maxShown)
	now, err2 := d.store.Content(x.New, maxShown)
	return old, now, errors.Join(err, err2)
}

// Change compares the lines of a file.
func (d *Diff) Change(x checkpoint.Difference) *Change {
	c := &Change{Difference: x}
	if x.Old != nil && x.New != nil && x.Old.Object == x.New.Object && x.Old.Kind == x.New.Kind {
		return c // only the mode differs
	}
	old, now, err := d.Contents(x)
	if err != nil {
		c.Missing = err
		return c
	}
	if c.Binary = Binary(old) || Binary(now); c.Binary {
		return c
	}
	c.Hunks = Hunks(old, now)
	for _, h := range c.Hunks {
		for _, e := range h.Edits {
			switch e.Op {
			case '+':
				c.Added++
			case '-':
				c.Deleted++
			}
		}
	}
	return c
}
