package gitstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn/internal/protect"
)

// A guest can put into commits and into the index what it may not put into the
// workspace: the human's checkout would make it there. What is new is looked at
// before it is published; what the host has already passes.

// maxLooked bounds a symbolic link's target and a HEAD that are read.
const maxLooked = 4096

// A planted is one entry of a tree or an index that is new.
type planted struct{ mode, id, path, commit string }

// inspect keeps beside what a checkout of the human's must not meet. What is kept
// beside for another reason gets this one too, for the human who takes it.
func (c *changes) inspect(ctx context.Context) error {
	for i := range c.out {
		m := &c.out[i]
		why, err := c.why(ctx, m.new)
		if err != nil {
			return err
		}
		if why == "" {
			if strings.HasPrefix(m.name, "refs/heads/") {
				c.passed = append(c.passed, m.new)
			}
			continue
		}
		if m.why != "" {
			m.why = both(m.why, why)
			continue
		}
		m.why = why
		c.unit.told["parted "+m.name+m.old+m.new] = true // it is not looked at again
		if branchOf(c.private.head) == m.name {
			c.head, c.index = headStays, nil
		}
	}
	for _, id := range stackIDs(c.stack.pushes) {
		why, err := c.why(ctx, id)
		if err != nil {
			return err
		}
		if why != "" {
			c.stack.beside, c.stack.why = true, why
		}
	}
	if c.besideOnly != "" {
		return nil
	}
	if branchOf(c.private.head) == "" && c.head == headOut {
		if why, err := c.why(ctx, c.private.head); err != nil {
			return err
		} else if why != "" {
			if err := c.store.beside(ctx, c.unit, "HEAD", c.private.head, "HEAD", why); err != nil {
				return err
			}
			c.head, c.index = headStays, nil
		}
	}
	return c.inspectIndex(ctx)
}

// both joins two reasons, of which the second may be "".
func both(a, b string) string { return strings.TrimSuffix(a+"; "+b, "; ") }

// inspectIndex leaves the index as it is where the guest has staged such a thing.
func (c *changes) inspectIndex(ctx context.Context) error {
	if c.index == nil {
		return nil
	}
	var list []planted
	for p, now := range c.index.private {
		for _, e := range now {
			if !slices.Contains(c.index.base[p], e) && !slices.Contains(c.index.host[p], e) {
				list = append(list, planted{e.mode, e.id, p, ""})
			}
		}
	}
	why, err := c.first(ctx, list, func(_, dir string) (map[string]bool, error) {
		names := map[string]bool{}
		for _, name := range namesBelow(c.index.listed[1], dir) {
			names[protect.FoldName(name)] = true
		}
		return names, nil
	})
	if err == nil && why != "" {
		c.bad("index", errors.New(why))
	}
	return err
}

// trusted are the arguments for what the host has but for what lies beside.
var trusted = []string{"--exclude=" + ownRefs + "*", "--all"}

// why says why an object must not be published, or "".
func (c *changes) why(ctx context.Context, id string) (string, error) {
	s, u := c.store, c.unit
	text, some, err := c.fresh(ctx, id)
	if err != nil {
		return "", err
	}
	if !some { // nothing is new, or it is a tree
		if commits, err := s.commits(ctx, u, []string{id}); err != nil || len(commits) > 0 {
			return "", err
		}
		kind, err := s.git.run(ctx, u, call{args: []string{"cat-file", "-t", id + "^{}"}})
		if err != nil || strings.TrimSpace(string(kind)) == "blob" { // which a checkout makes nothing of
			return "", err
		}
		if text, err = s.git.run(ctx, u, call{args: []string{"ls-tree", "-r", "-z", "--full-tree", id}}); err != nil {
			return "", err
		}
	}
	list, err := parseTrees(text, id, u.Size)
	if err != nil {
		return "", err
	}
	return c.first(ctx, list, func(commit, dir string) (map[string]bool, error) {
		text, err := s.git.run(ctx, u, call{args: []string{"ls-tree", "-z", "--name-only", "--full-tree", commit + ":" + dir}})
		names := map[string]bool{}
		for name := range strings.SplitSeq(string(text), "\x00") {
			names[protect.FoldName(name)] = true
		}
		return names, err
	})
}

// newTrees is a git that says what is new in the commits that it reads.
var newTrees = []string{"diff-tree", "--stdin", "-r", "-z", "-c", "--root", "--raw", "--no-abbrev", "--no-renames", "--no-ext-diff"}

// fresh is what newTrees says of the commits that an object reaches and the host does
// not have, and whether there are some.
func (c *changes) fresh(ctx context.Context, id string) (trees []byte, some bool, err error) {
	if c.ahead.id == id {
		return c.ahead.trees, c.ahead.some, nil
	}
	s, u := c.store, c.unit
	args := append(append([]string{"rev-list", id, "--not"}, trusted...), c.passed...)
	if u.Partial {
		args = append(args, "--exclude-promisor-objects")
	}
	commits, err := s.git.run(ctx, u, call{args: args})
	if err != nil || len(commits) == 0 {
		return nil, false, err
	}
	trees, err = s.git.run(ctx, u, call{args: newTrees, in: bytes.NewReader(commits)})
	return trees, true, err
}

// parseTrees reads what diff-tree and ls-tree write with -z: the entries that are
// there afterwards.
func parseTrees(text []byte, commit string, size int) ([]planted, error) {
	var list []planted
	items := strings.Split(string(text), "\x00")
	for i := 0; i < len(items); i++ {
		item := items[i]
		if isID(item, size) || item == "" {
			commit = item
			continue
		}
		if head, p, ok := strings.Cut(item, "\t"); ok { // of ls-tree
			if f := strings.Fields(head); len(f) == 3 {
				list = append(list, planted{f[0], f[2], p, commit})
				continue
			}
		}
		f := strings.Fields(strings.TrimLeft(item, ":"))
		n := len(item) - len(strings.TrimLeft(item, ":")) // parents
		if i++; n == 0 || len(f) != 2*n+3 || i >= len(items) {
			return nil, fmt.Errorf("git diff-tree: %q is no entry", item[:min(len(item), 100)])
		}
		if f[n] != "000000" {
			list = append(list, planted{f[n], f[2*n+1], items[i], commit})
		}
	}
	return list, nil
}

// first is the reason why one of the entries must not be published. holds lists, in
// folded form, what a directory of a commit holds.
func (c *changes) first(ctx context.Context, list []planted, holds func(commit, dir string) (map[string]bool, error)) (string, error) {
	bare := map[string]bool{}
	for _, p := range list {
		parts := strings.Split(protect.Fold(p.path), "/")
		for i, part := range parts {
			parts[i] = c.store.names().Long(part)
		}
		if why := c.entry(ctx, p, parts); why != "" && !c.has(ctx, p) && !c.had(ctx, p) {
			return why, ctx.Err() // of a context that has ended, nothing was looked at
		}
		if why := c.part(ctx, p); why != "" && !c.had(ctx, p) {
			return why, ctx.Err()
		}
		raw := strings.Split(p.path, "/")
		for i := 1; i < len(raw); i++ { // the top is a repository anyway
			dir := strings.Join(raw[:i], "/")
			if !slices.Contains(gitNames, protect.FoldName(raw[i])) || bare[p.commit+":"+dir] {
				continue
			}
			bare[p.commit+":"+dir] = true
			there, err := holds(p.commit, dir)
			if err != nil {
				return "", err
			}
			whole := there["objects"] && there["refs"]
			c.beneath(dir, there)
			if there["head"] && (there["commondir"] || there["objects"] && there["refs"]) {
				return fmt.Sprintf("git takes %q for a repository", dir), nil
			}
			if whole && !c.hadBoth(ctx, dir) {
				return fmt.Sprintf("git takes %q for a repository once there is a HEAD", dir), nil
			}
		}
	}
	return "", nil
}

// part says why an entry must not be published that makes a repository of what a
// guest may leave beside it later, or "".
func (c *changes) part(ctx context.Context, p planted) string {
	dir, name := path.Split(p.path)
	if dir == "" || p.mode == "160000" {
		return ""
	}
	switch protect.FoldName(name) {
	case "commondir":
	case "head":
		text, err := c.store.git.run(ctx, c.unit, call{args: []string{"cat-file", "blob", p.id}, limit: maxLooked})
		if line := strings.TrimSpace(string(text)); err == nil && p.mode != "120000" && !strings.HasPrefix(line, "ref:") && !isID(line, 40) && !isID(line, 64) {
			return ""
		}
	default:
		return ""
	}
	return fmt.Sprintf("git would take %q for a repository, if the rest of one were beside %q", path.Clean(dir), name)
}

// hadBoth reports whether the host's HEAD has both directories of a repository in dir.
func (c *changes) hadBoth(ctx context.Context, dir string) bool {
	id := c.host.value(c.host.head)
	if id == "" {
		return false
	}
	text, err := c.store.git.run(ctx, c.unit, call{args: []string{"ls-tree", "-z", "--name-only", "--full-tree", id + ":" + dir}})
	names := strings.Split(protect.Fold(string(text)), "\x00")
	return err == nil && slices.Contains(names, "objects") && slices.Contains(names, "refs")
}

// gitNames are the names, folded, by which git knows a repository.
var gitNames = []string{"head", "objects", "refs", "commondir"}

// names are those that the guest may not write in the workspace.
func (s *Store) names() *protect.Set {
	if s.set == nil {
		s.set = protect.NewSet(s.Names.Extra, s.Names.Opened)
	}
	return s.set
}

// entry says why one must not be published, or "".
func (c *changes) entry(ctx context.Context, p planted, parts []string) string {
	for i := range parts {
		if m, rule := c.store.names().At(parts[i:], i == 0 || !c.store.Names.Project); m >= protect.Pointer && !c.store.Names.None {
			return fmt.Sprintf("it has %q, which is protected (%s)", p.path, rule)
		}
	}
	if p.mode != "160000" && c.covers(p.path) {
		return fmt.Sprintf("its %q would replace a directory with a repository of yours", p.path)
	}
	if p.mode != "120000" {
		return ""
	}
	text, err := c.store.git.run(ctx, c.unit, call{args: []string{"cat-file", "blob", p.id}, limit: maxLooked})
	if err != nil {
		return fmt.Sprintf("its symbolic link %q can't be read", p.path)
	}
	if climbs(p.path, string(text)) {
		return fmt.Sprintf("its symbolic link %q leads to %q", p.path, message(text))
	}
	return ""
}

// covers reports whether the workspace has a directory in the place of a file that
// holds a repository, which a checkout would remove with all else if it is ignored.
func (c *changes) covers(p string) bool {
	if c.unit.WorkTree == "" {
		return false
	}
	root, err := os.OpenRoot(c.unit.WorkTree)
	if err != nil {
		return true
	}
	defer root.Close()
	for at := p; at != "."; at = path.Dir(at) {
		if fi, err := root.Lstat(at); err != nil || !fi.IsDir() {
			return false
		}
	}
	left := maxCovered
	return holdsRepository(root, p, &left)
}

// maxCovered bounds a look for repositories, in entries.
const maxCovered = 100_000

// holdsRepository also says so of a directory that can't be looked through.
func holdsRepository(root *os.Root, dir string, left *int) bool {
	list, err := readDir(root, dir)
	if *left -= len(list); err != nil || *left < 0 {
		return true
	}
	for _, e := range list {
		if likeGit(e.Name()) || e.IsDir() && holdsRepository(root, path.Join(dir, e.Name()), left) {
			return true
		}
	}
	return false
}

// beneath adds what the workspace holds in a directory.
func (c *changes) beneath(dir string, names map[string]bool) {
	if c.unit.WorkTree == "" {
		return
	}
	root, err := os.OpenRoot(c.unit.WorkTree)
	if err != nil {
		return
	}
	defer root.Close()
	list, _ := readDir(root, dir)
	for _, e := range list {
		names[protect.FoldName(e.Name())] = true
	}
}

// climbs reports whether the target of a link leads out of the work tree, into a
// git directory, or up again out of a directory that could be exchanged.
func climbs(at, target string) bool {
	if target == "" || target[0] == '/' || strings.ContainsAny(target, "\x00\\") {
		return true
	}
	left, down := strings.Count(at, "/"), false
	for part := range strings.SplitSeq(target, "/") {
		switch {
		case part == "" || part == ".":
		case part == "..":
			if left--; left < 0 || down {
				return true
			}
		case likeGit(part):
			return true
		default:
			down = true
		}
	}
	return false
}

// has reports whether the workspace has the same: the guest could make it there, or
// the human has.
func (c *changes) has(ctx context.Context, p planted) bool {
	if c.unit.WorkTree == "" {
		return false
	}
	root, err := os.OpenRoot(c.unit.WorkTree)
	if err != nil {
		return false
	}
	defer root.Close()
	for dir := path.Dir(p.path); dir != "."; dir = path.Dir(dir) {
		if fi, err := root.Lstat(dir); err != nil || !fi.IsDir() {
			return false
		}
	}
	fi, err := root.Lstat(p.path)
	if err != nil {
		return false
	}
	var text []byte
	switch {
	case p.mode == "120000" && fi.Mode().Type() == fs.ModeSymlink:
		target, err := root.Readlink(p.path)
		if err != nil {
			return false
		}
		text = []byte(target)
	case p.mode != "120000" && fi.Mode().IsRegular():
		if text, err = readFile(root, p.path, maxSmall); err != nil {
			return false
		}
	default:
		return false
	}
	id, err := c.store.git.run(ctx, c.unit, call{args: []string{"hash-object", "--stdin", "--no-filters"}, in: bytes.NewReader(text)})
	return err == nil && strings.TrimSpace(string(id)) == p.id
}

// had reports whether a commit of the host's has, or had, the same at this path.
func (c *changes) had(ctx context.Context, p planted) bool {
	args := append([]string{"log", "--format=", "--no-show-signature", "--full-history", "--raw", "--no-abbrev", "--no-renames", "-z", "-m", "--root", "--find-object=" + p.id}, trusted...)
	text, err := c.store.git.run(ctx, c.unit, call{args: append(args, "--", ":(top,literal)"+p.path)})
	for item := range strings.SplitSeq(string(text), "\x00") {
		f := strings.Fields(strings.TrimPrefix(strings.TrimSpace(item), ":"))
		if len(f) == 5 && (f[0] == p.mode && f[2] == p.id || f[1] == p.mode && f[3] == p.id) {
			return err == nil
		}
	}
	return false
}
