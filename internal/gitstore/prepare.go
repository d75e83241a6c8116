package gitstore

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bawn-dev/bawn"
)

// Limits of a new private repository.
const (
	maxUnits      = 64
	maxAlternates = 32
)

// objectsInside is where the guest finds the host's objects.
const objectsInside = "/run/bawn/git"

// Prepare makes a session's place, and in it the private git directory of a
// repository, without running git. The guest's part of the configuration is
// cleaned. Where r has the workspace alone there is room for the repositories only
// that the guest makes. On an error nothing is left.
func Prepare(r *Repository, o Options) (_ *Store, err error) {
	if !plainName(o.Session) {
		return nil, fmt.Errorf("session %q can't name a directory", o.Session)
	}
	s := &Store{dir: Place(o.State, o.Session), idle: idleTime}
	s.record = record{Session: o.Session, Repo: *r, Started: time.Now(), Names: o.Names, Copy: o.Copy}
	if err := os.MkdirAll(Places(o.State), 0o700); err != nil {
		return nil, err
	}
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the private git directory: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, removePlace(s.dir, s.guest))
			s.shut()
		}
	}()
	if s.lock, err = takeSoon(s.dir); err != nil {
		return nil, err
	}
	if s.guest, err = newGuestDir(s.dir); err != nil {
		return nil, fmt.Errorf("make the private git directory: %w", err)
	}
	if r.Common != "" {
		if err := s.copies(o); err != nil {
			return nil, err
		}
	}
	s.untrusted = func() (Untrusted, error) { return o.Untrusted(s.View()) }
	return s, s.save()
}

// copies makes the private git directories.
func (s *Store) copies(o Options) (err error) {
	if s.git, err = findGit(o.Path, s.Repo.Workspace); err != nil {
		return err
	}
	s.Git = s.git.program
	m := &maker{store: s, beside: o.Beside}
	if err := m.unit(s.Repo.Common, ".", s.Repo.rel(), s.Repo.Workspace, false); err != nil {
		return err
	}
	if err := m.worktrees(); err != nil {
		return err
	}
	if err := m.modules("modules", 0); err != nil {
		return err
	}
	if err := s.open(); err != nil {
		return err
	}
	for _, u := range s.Units {
		u.stamps()
	}
	return nil
}

// maker makes the private directories of units.
type maker struct {
	store   *Store
	format  format // of the repository
	objects int    // object directories so far
	beside  []string
}

// unit makes one private git directory.
func (m *maker) unit(host, private, rel, tree string, module bool) error {
	to := m.store.guest.at(privateName, private)
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	u := &unit{Host: host, Private: private, Rel: rel, WorkTree: tree, Beside: refs{}, Made: refs{}, n: len(m.store.Units)}
	c := &copier{unit: u, module: module}
	var err error
	if c.from, err = os.OpenRoot(host); err != nil {
		return err
	}
	defer c.from.Close()
	if c.to, err = os.OpenRoot(to); err != nil {
		return err
	}
	defer c.to.Close()
	for _, step := range []func() error{c.config, c.refs, c.files, c.hooks, c.trees, c.logs, c.state} {
		if err := step(); err != nil {
			return fmt.Errorf("copy %q: %w", host, err)
		}
	}
	if err := m.alternates(c); err != nil {
		return err
	}
	if err := c.base(m.store.basePath(u)); err != nil {
		return err
	}
	if m.store.Units = append(m.store.Units, u); u.n == 0 {
		m.format = c.format
	}
	return nil
}

// modules makes those of submodules that the host has git directories of.
func (m *maker) modules(dir string, depth int) error {
	list, err := os.ReadDir(filepath.Join(m.store.Repo.Common, dir))
	if missing(err) || depth > maxDepth {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range list {
		at := path.Join(dir, e.Name())
		if !e.IsDir() {
			continue
		}
		below := at
		if host := filepath.Join(m.store.Repo.Common, at); isGitDir(host) {
			if len(m.store.Units) > maxUnits {
				return errTooMuch
			}
			if err := m.unit(host, at, ".", "", true); err != nil {
				return err
			}
			below = path.Join(at, "modules")
		}
		if err := m.modules(below, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// alternates says where the private directory borrows objects: at the host's, and
// where those borrow.
func (m *maker) alternates(c *copier) error {
	dirs, err := objectDirs(filepath.Join(c.unit.Host, "objects"))
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, dir := range dirs {
		at := fmt.Sprintf("%s/%d/", objectsInside, m.objects)
		m.objects++
		c.unit.Objects = append(c.unit.Objects, bawn.GitObjects{Source: dir, Target: at + "objects"})
		text.WriteString(at + "objects\n")
		if lfs, err := filepath.EvalSymlinks(filepath.Join(filepath.Dir(dir), "lfs")); err == nil && lfs == filepath.Join(filepath.Dir(dir), "lfs") {
			c.unit.Objects = append(c.unit.Objects, bawn.GitObjects{Source: lfs, Target: at + "lfs"}) // git-lfs looks beside alternates
		}
	}
	for _, d := range []string{"objects/info", "objects/pack"} {
		if err := c.to.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	return c.to.WriteFile("objects/info/alternates", []byte(text.String()), 0o644)
}

// objectDirs lists a directory of objects and those that it borrows from, in full.
func objectDirs(first string) ([]string, error) {
	var list []string
	todo := []string{first}
	for len(todo) > 0 {
		real, err := filepath.EvalSymlinks(todo[0])
		asked := todo[0]
		todo = todo[1:]
		if err != nil && asked == first {
			return nil, fmt.Errorf("find the objects: %w", err)
		}
		if err != nil || slices.Contains(list, real) {
			continue
		}
		if list = append(list, real); len(list) > maxAlternates {
			return nil, fmt.Errorf("find the objects: %w", errTooMuch)
		}
		root, err := os.OpenRoot(real)
		if err != nil {
			return nil, fmt.Errorf("find the objects: %w", err)
		}
		text, err := readFile(root, "info/alternates", maxSmall)
		root.Close()
		if err != nil && !missing(err) {
			return nil, fmt.Errorf("find the objects: %w", err)
		}
		for line := range bytes.Lines(text) {
			p := string(bytes.TrimRight(line, "\n"))
			if p == "" || p[0] == '#' || p[0] == '"' {
				continue
			}
			if !filepath.IsAbs(p) {
				p = filepath.Join(real, p)
			}
			todo = append(todo, p)
		}
	}
	return list, nil
}
