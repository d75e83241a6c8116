package gitstore

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bawn-dev/bawn/internal/sandbox"
)

// Bounds of what a repository is made of.
const (
	maxUnits      = 64
	maxAlternates = 32
)

// objectsInside is where the guest finds the host's objects.
const objectsInside = "/run/bawn/git"

// Prepare makes a session's place, and in it the private git directory of a
// repository, without running git. What a guest gets of the configuration is
// cleaned. Where r has the workspace alone there is room for the repositories only
// that the guest makes. On an error nothing is left.
func Prepare(r *Repository, o Options) (_ *Store, err error) {
	if !plainName(o.Session) {
		return nil, fmt.Errorf("session %q can't name a directory", o.Session)
	}
	s := &Store{dir: Place(o.State, o.Session), idle: idleTime}
	s.record = record{Session: o.Session, Repo: *r, Started: time.Now()}
	if err := os.MkdirAll(Places(o.State), 0o700); err != nil {
		return nil, err
	}
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the private git directory: %w", err)
	}
	defer func() {
		if err != nil {
			s.shut()
			err = errors.Join(err, removeAll(s.dir))
		}
	}()
	if s.lock, err = take(s.dir); err != nil {
		return nil, err
	}
	if err := os.Mkdir(s.MadePool(), 0o700); err != nil {
		return nil, err
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
	m := &maker{store: s}
	if err := m.unit(s.Repo.Common, ".", s.Repo.rel(), s.Repo.Workspace, false); err != nil {
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
	objects int // object directories so far
}

// unit makes one private git directory.
func (m *maker) unit(host, private, rel, tree string, module bool) error {
	to := filepath.Join(m.store.dir, privateName, private)
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	u := &unit{Host: host, Private: private, Rel: rel, WorkTree: tree, Beside: refs{}, n: len(m.store.Units)}
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
	for _, step := range []func() error{c.config, c.refs, c.files, c.trees, c.logs, c.state} {
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
	m.store.Units = append(m.store.Units, u)
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
		c.unit.Objects = append(c.unit.Objects, sandbox.Object{Source: dir, Target: at + "objects"})
		text.WriteString(at + "objects\n")
		if lfs, err := filepath.EvalSymlinks(filepath.Join(filepath.Dir(dir), "lfs")); err == nil && lfs == filepath.Join(filepath.Dir(dir), "lfs") {
			c.unit.Objects = append(c.unit.Objects, sandbox.Object{Source: lfs, Target: at + "lfs"}) // git-lfs looks beside alternates
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

// copier copies one git directory.
type copier struct {
	unit     *unit
	module   bool
	from, to *os.Root
	format   format
}

// config writes the cleaned configuration, and learns the format.
func (c *copier) config() error {
	text, err := readFile(c.from, "config", maxConfig)
	if err != nil && !missing(err) {
		return err
	}
	list, err := parseConfig(string(text))
	if err != nil {
		return err
	}
	if c.format, err = formatOf(list); err != nil {
		return &UnsupportedError{c.unit.Host, err.Error() + ", which bawn does not know"}
	}
	if err := c.to.WriteFile("config", []byte(cleanConfig(list, c.module)), 0o644); err != nil {
		return err
	}
	if c.format.perTree {
		if err := c.treeConfig(); err != nil {
			return err
		}
	}
	c.unit.Size, c.unit.Partial, c.unit.Fold, c.unit.Sparse = c.format.size, c.format.partial, c.format.fold, c.format.sparse
	return nil
}

// treeConfig cleans the configuration of the worktree, which is beside.
func (c *copier) treeConfig() error {
	for _, name := range slices.Compact([]string{"config.worktree", path.Join(c.unit.Rel, "config.worktree")}) {
		text, err := readFile(c.from, name, maxConfig)
		if missing(err) {
			continue
		}
		if err != nil {
			return err
		}
		list, err := parseConfig(string(text))
		if err != nil {
			return err
		}
		own, err := formatOf(list)
		if err != nil {
			return err
		}
		c.format.sparse = c.format.sparse || own.sparse
		if err := c.to.MkdirAll(path.Dir(name), 0o755); err != nil {
			return err
		}
		if err := c.to.WriteFile(name, []byte(cleanConfig(list, false)), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// refs writes every ref into one packed-refs.
func (c *copier) refs() error {
	tree, err := readRefs(c.from, c.format.size)
	if err != nil {
		return err
	}
	maps.DeleteFunc(tree.refs, func(name, _ string) bool { return strings.HasPrefix(name, ownRefs) })
	c.unit.Start, c.unit.Base = tree.refs, maps.Clone(tree.refs)
	for _, d := range []string{"refs/heads", "refs/tags"} {
		if err := c.to.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	for name := range tree.links {
		if _, err := copyFile(c.from, c.to, name, 4096); err != nil {
			return err
		}
	}
	return c.to.WriteFile("packed-refs", packedRefs(tree.refs), 0o644)
}

// packedRefs is the file that holds refs.
func packedRefs(all refs) []byte {
	text := []byte("# pack-refs with: sorted \n")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		text = append(append(append(append(text, all[name]...), ' '), name...), '\n')
	}
	return text
}

// files copies what lies at the top.
func (c *copier) files() error {
	for _, f := range []struct {
		name  string
		limit int64
	}{
		{"HEAD", 4096}, {"ORIG_HEAD", 4096}, {"shallow", maxSmall}, {"description", maxSmall}, {"info/exclude", maxSmall}, {"info/attributes", maxSmall},
		{path.Join(c.unit.Rel, "info/sparse-checkout"), maxSmall}, {path.Join(c.unit.Rel, "HEAD"), 4096}, {path.Join(c.unit.Rel, "ORIG_HEAD"), 4096},
		{path.Join(c.unit.Rel, "commondir"), 4096}, {path.Join(c.unit.Rel, "gitdir"), 4096}, {path.Join(c.unit.Rel, "index"), maxIndex},
	} {
		if _, err := copyFile(c.from, c.to, f.name, f.limit); err != nil {
			return err
		}
	}
	list, err := readDir(c.from, c.unit.Rel)
	if err != nil {
		return err
	}
	for _, e := range list {
		if strings.HasPrefix(e.Name(), "sharedindex.") {
			if _, err := copyFile(c.from, c.to, path.Join(c.unit.Rel, e.Name()), maxIndex); err != nil {
				return err
			}
		}
	}
	if c.unit.Head, err = readHead(c.to, c.unit.Rel, c.format.size); err != nil {
		return err
	}
	return c.to.MkdirAll("info", 0o755)
}

// trees copies of the other worktrees what tells git which branches they have.
func (c *copier) trees() error {
	list, err := readDir(c.from, "worktrees")
	if missing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range list {
		at := path.Join("worktrees", e.Name())
		if !e.IsDir() || at == c.unit.Rel {
			continue
		}
		for _, name := range []string{"HEAD", "commondir", "gitdir", "locked"} {
			if _, err := copyFile(c.from, c.to, path.Join(at, name), 4096); err != nil {
				return err
			}
		}
	}
	return nil
}

// logs copies the reflogs of HEAD, of branches and of the stash, as far as the
// bounds go.
func (c *copier) logs() error {
	left := &budget{files: maxFiles, bytes: maxLogs}
	for _, name := range slices.Compact([]string{path.Join(c.unit.Rel, "logs/HEAD"), "logs/HEAD", "logs/" + stashRef}) {
		n, err := copyFile(c.from, c.to, name, maxLog)
		if err != nil && !errors.Is(err, errTooMuch) {
			return err
		}
		left.bytes -= n
	}
	c.unit.Stash = stackOf(c.to, &refTree{refs: c.unit.Base}, c.format.size)
	c.unit.Stashed = stackIDs(c.unit.Stash)
	if err := copyTree(c.from, c.to, "logs/refs/heads", left, 0); err != nil && !errors.Is(err, errTooMuch) {
		return err
	}
	return nil
}

// Of what git has open.
var (
	stateFiles = []string{
		"MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "MERGE_RR", "AUTO_MERGE", "SQUASH_MSG", "CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD",
		"BISECT_START", "BISECT_LOG", "BISECT_NAMES", "BISECT_TERMS", "BISECT_EXPECTED_REV", "BISECT_ANCESTORS_OK", "BISECT_FIRST_PARENT",
	}
	stateDirs = []string{"rebase-merge", "rebase-apply", "sequencer", "refs/bisect", "refs/worktree", "refs/rewritten"}
)

// state copies what git has open, so that the guest can go on with it.
func (c *copier) state() error {
	for _, name := range stateFiles {
		if _, err := copyFile(c.from, c.to, path.Join(c.unit.Rel, name), maxSmall); err != nil {
			return err
		}
	}
	left := &budget{files: maxFiles, bytes: maxStateSize}
	for _, name := range stateDirs {
		if c.unit.Rel == "." && strings.HasPrefix(name, "refs/") {
			continue // among the refs
		}
		if err := copyTree(c.from, c.to, path.Join(c.unit.Rel, name), left, 0); err != nil {
			return err
		}
	}
	return nil
}

// base keeps the index as both sides have it now.
func (c *copier) base(at string) error {
	dir, err := os.OpenRoot(filepath.Dir(at))
	if err != nil {
		return err
	}
	defer dir.Close()
	return copyAs(c.to, path.Join(c.unit.Rel, "index"), dir, filepath.Base(at))
}

// copyAs copies a file under another name; where there is none, there is none
// then.
func copyAs(from *os.Root, name string, to *os.Root, as string) error {
	text, err := readFile(from, name, maxIndex)
	if missing(err) {
		if err := to.Remove(as); err != nil && !missing(err) {
			return err
		}
		return nil
	}
	if err != nil {
		return err
	}
	return to.WriteFile(as, text, 0o600)
}
