package gitstore

import (
	"errors"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

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

// files copies the files at the top.
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

// hooks copies the human's, so that the guest's commits are checked as the human's
// are: they run inside. Examples stay behind.
func (c *copier) hooks() error {
	if err := c.to.MkdirAll("hooks", 0o755); err != nil {
		return err
	}
	list, err := readDir(c.from, "hooks")
	if missing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range list[:min(len(list), maxFiles)] {
		name := path.Join("hooks", e.Name())
		if !e.Type().IsRegular() || strings.HasSuffix(name, ".sample") {
			continue
		}
		if _, err := copyFile(c.from, c.to, name, maxSmall); err != nil && !errors.Is(err, errTooMuch) {
			return err
		}
		if fi, err := c.from.Lstat(name); err == nil && fi.Mode()&0o100 != 0 {
			if err := c.to.Chmod(name, 0o755); err != nil && !missing(err) {
				return err
			}
		}
	}
	return nil
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

// state copies git's open operation, so that the guest can continue it.
func (c *copier) state() error {
	for _, name := range stateFiles {
		if _, err := copyFile(c.from, c.to, path.Join(c.unit.Rel, name), maxSmall); err != nil {
			return err
		}
	}
	if open, err := c.unit.openState(c.from); err == nil { // else it stays the human's alone
		c.unit.Open = digestOf(open)
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

// copyAs copies a file under another name. If the source is missing, it removes the
// copy.
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
