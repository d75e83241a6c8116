package gitstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
)

// worktrees makes, in the repository's private git directory, the own part of the
// host's linked worktrees where the session may write: HEAD, index and open operations. Work in
// them is published too.
func (m *maker) worktrees() error {
	repo := &m.store.Repo
	list, err := os.ReadDir(filepath.Join(repo.Common, "worktrees"))
	if missing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range list {
		rel := path.Join("worktrees", e.Name())
		if tree := repo.worktree(rel, m.beside); tree != "" && rel != repo.rel() {
			if len(m.store.Units) > maxUnits {
				return errTooMuch
			}
			if err := m.worktree(rel, tree); err != nil {
				return err
			}
		}
	}
	return nil
}

// worktree is the directory of a linked worktree, or "" for one that lies neither in the
// workspace nor in a directory beside it, or whose .git does not lead back.
func (r *Repository) worktree(rel string, beside []string) string {
	admin := filepath.Join(r.Common, rel)
	file, err := pointer(filepath.Join(admin, "gitdir"), "", admin)
	dir := filepath.Dir(file)
	if err != nil || !plainName(filepath.Base(rel)) || filepath.Base(file) != ".git" || dir == r.Workspace || !inside(dir, r.Workspace) && !slices.ContainsFunc(beside, func(top string) bool { return inside(dir, top) }) {
		return ""
	}
	real, err := filepath.EvalSymlinks(dir)
	back, err2 := pointer(file, "gitdir: ", dir)
	if err != nil || err2 != nil || real != dir {
		return ""
	}
	if back, err = filepath.EvalSymlinks(back); err != nil || back != admin {
		return ""
	}
	return dir
}

// worktree copies one worktree's own part.
func (m *maker) worktree(rel, tree string) (err error) {
	top := m.store.Units[0]
	u := &unit{Host: top.Host, Private: top.Private, Rel: rel, WorkTree: tree, Tree: true, Size: top.Size, Partial: top.Partial, Fold: top.Fold, n: len(m.store.Units)}
	u.shares(top)
	c := &copier{unit: u, format: m.format}
	if c.from, err = os.OpenRoot(u.Host); err != nil {
		return err
	}
	defer c.from.Close()
	if c.to, err = os.OpenRoot(m.store.guest.at(privateName, u.Private)); err != nil {
		return err
	}
	defer c.to.Close()
	if m.format.perTree {
		err = c.treeConfig()
	}
	u.Sparse = c.format.sparse
	_, err2 := copyFile(c.from, c.to, u.at("logs/HEAD"), maxLog)
	if errors.Is(err2, errTooMuch) {
		err2 = nil
	}
	if err = errors.Join(err, err2, c.files(), c.state()); err != nil {
		return err
	}
	m.store.Units = append(m.store.Units, u)
	return c.base(m.store.basePath(u))
}

// shares makes a worktree's refs those of its repository.
func (u *unit) shares(top *unit) {
	if top.Made == nil {
		top.Made = refs{}
	}
	if top.Beside == nil {
		top.Beside = refs{}
	}
	u.Start, u.Base, u.Made, u.Beside = top.Start, top.Base, top.Made, top.Beside
}

// top is the unit that has the refs of one.
func (s *Store) top(u *unit) *unit {
	if u.Tree {
		return s.Units[0]
	}
	return u
}

// owned says which refs a unit moves: a worktree's the branch that the host has
// checked out there, so that it moves with its index, and the repository's all others.
func (c *changes) owned() func(name string) bool {
	u := c.unit
	if u.Tree {
		branch := branchOf(c.host.head)
		return func(name string) bool { return name == branch }
	}
	var others []string
	for _, o := range c.store.Units {
		if o.Tree && o.Host == u.Host && !o.removed() {
			if head, err := readHead(o.host, o.Rel, o.Size); err == nil {
				others = append(others, branchOf(head))
			}
		}
	}
	return func(name string) bool { return !slices.Contains(others, name) }
}

// looseHeads keeps what HEAD is in worktrees that the guest has added, where no ref leads
// to it: their branches are the repository's, a detached HEAD ends with them.
func (s *Store) looseHeads(ctx context.Context) error {
	if len(s.Units) == 0 {
		return nil
	}
	u := s.Units[0]
	list, err := readDir(u.private, "worktrees")
	if err != nil {
		return nil //nolint:nilerr // there are no worktrees, or none that could be read
	}
	var errs []error
	for _, e := range list[:min(len(list), maxUnits)] {
		at := path.Join("worktrees", e.Name())
		head, err := readHead(u.private, at, u.Size)
		if err != nil || branchOf(head) != "" || exists(u.host, at) || !moduleName(e.Name()) {
			continue
		}
		errs = append(errs, s.looseHead(ctx, u, at, head))
	}
	return errors.Join(errs...)
}

// looseHead keeps one.
func (s *Store) looseHead(ctx context.Context, u *unit, at, id string) error {
	host, err := look(u.host, u.Rel, u.Size)
	if err != nil {
		return err
	}
	args := append([]string{"rev-list", "-n", "1", id, "--not"}, trusted...)
	if out, err := s.git.run(ctx, u, call{args: args}); err == nil && len(out) == 0 {
		return nil // a ref leads to it
	}
	why := fmt.Sprintf("it is HEAD of a worktree, %q, which the session has added", path.Base(at))
	c := &changes{store: s, unit: u, host: host, private: &side{tree: &refTree{refs: refs{}}, head: id}, besideOnly: why}
	if err := c.objects(ctx); err != nil {
		return err
	}
	bad, err := c.why(ctx, id)
	if err != nil {
		return fmt.Errorf("HEAD of the worktree %q: %w", path.Base(at), err)
	}
	return s.beside(ctx, u, at, id, "HEAD", both(why, bad))
}
