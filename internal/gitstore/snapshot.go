package gitstore

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/bawn-dev/bawn/internal/strictjson"
)

// Bounds of a snapshot. Its text becomes part of a checkpoint's record.
const (
	maxKeptIndex = 32 << 20 // of one index, as it is
	maxKeptState = 4 << 20  // of an open rebase, merge or bisect
	maxSnapshot  = 48 << 20 // of the text
)

// A snapshot is the state of a repository at a moment: everything that a session can
// change, but for objects.
type snapshot struct {
	Units     []*unitState `json:"units"`
	Uncovered []string     `json:"uncovered,omitempty"` // parts without a state here, and why
}

// A unitState is that of one git directory.
type unitState struct {
	Dir       string             `json:"dir"`                 // "." for the repository's, or a submodule's below the common git directory
	Rel       string             `json:"rel"`                 // "." or the worktree's below Dir
	Tree      bool               `json:"tree,omitempty"`      // a linked worktree in the workspace: it has no refs of its own
	WorkTree  string             `json:"work_tree,omitempty"` // of a linked worktree: its directory
	Size      int                `json:"size"`
	Head      string             `json:"head"` // as readHead returns it
	Refs      refs               `json:"refs"` // object IDs, or "ref: " and a name; without names that JSON can't hold
	Stash     string             `json:"stash,omitempty"`
	IndexTime int64              `json:"index_time,omitempty"` // modification time, in ns: git compares files with it
	Large     bool               `json:"large,omitempty"`      // the index is too large to be kept
	Index     map[string]content `json:"index,omitempty"`      // the index and the parts of a split one, by name
	State     map[string]content `json:"state,omitempty"`      // git's open operation: files by name
}

// content is that of a file, compressed in JSON.
type content []byte

// compressors are kept for the next content: each takes 700 KiB.
var compressors = sync.Pool{New: func() any {
	w, err := flate.NewWriter(nil, flate.BestSpeed)
	if err != nil {
		panic("BUG(bawn): flate: " + err.Error())
	}
	return w
}}

func (k content) MarshalText() ([]byte, error) {
	var b bytes.Buffer
	w, _ := compressors.Get().(*flate.Writer) // by New
	defer compressors.Put(w)
	w.Reset(&b)
	_, err := w.Write(k)
	if err == nil {
		err = w.Close()
	}
	return base64.StdEncoding.AppendEncode(nil, b.Bytes()), err
}

func (k *content) UnmarshalText(text []byte) error {
	raw, err := base64.StdEncoding.Strict().AppendDecode(nil, text)
	if err != nil {
		return err
	}
	*k, err = io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(raw)), maxKeptIndex+1))
	if err == nil && len(*k) > maxKeptIndex {
		return errTooMuch
	}
	return err
}

// Snapshot returns the refs, HEAD, index, stashes and the open rebase, merge or
// bisect of a repository and its submodules, for PlanRestore. gitDir is the
// repository's git directory, or that of a linked worktree. Snapshot reads files
// only, and needs no git. Worktrees other than gitDir's are not part of it.
func Snapshot(gitDir string) (json.RawMessage, error) {
	sn, err := takeSnapshot(gitDir)
	if err != nil {
		return nil, fmt.Errorf("keep the state of %q: %w", gitDir, err)
	}
	text, err := json.Marshal(sn)
	if err == nil && len(text) > maxSnapshot {
		err = errTooMuch
	}
	if err != nil {
		return nil, fmt.Errorf("keep the state of %q: %w", gitDir, err)
	}
	return text, nil
}

func takeSnapshot(gitDir string) (*snapshot, error) {
	common, rel, err := commonOf(gitDir)
	if err != nil {
		return nil, err
	}
	sn := &snapshot{}
	if err := sn.unit(common, ".", rel, false); err != nil {
		return nil, err
	}
	if err := sn.worktrees(common, rel); err != nil {
		return nil, err
	}
	return sn, sn.modules(common, "modules", 0)
}

// commonOf finds the common git directory of one, and where it lies below that.
func commonOf(gitDir string) (common, rel string, err error) {
	fi, err := os.Lstat(gitDir)
	if err != nil {
		return "", "", err
	}
	if !fi.IsDir() {
		return "", "", errors.New("it is no directory")
	}
	common, rel = filepath.Clean(gitDir), "."
	if _, err := os.Lstat(filepath.Join(common, "commondir")); err == nil {
		rel = filepath.Join("worktrees", filepath.Base(common))
		common = filepath.Dir(filepath.Dir(common))
		if !strings.HasSuffix(filepath.Clean(gitDir), "/"+rel) {
			return "", "", errors.New("it is neither a repository's git directory nor one below worktrees/")
		}
	}
	if !isGitDir(common) {
		return "", "", errors.New("it is no git directory")
	}
	return common, rel, nil
}

// modules adds the submodules whose git directories lie in the repository's.
func (sn *snapshot) modules(common, dir string, depth int) error {
	list, err := os.ReadDir(filepath.Join(common, dir))
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
		if isGitDir(filepath.Join(common, at)) {
			if len(sn.Units) > maxUnits {
				return errTooMuch
			}
			if err := sn.unit(filepath.Join(common, at), at, ".", false); err != nil {
				return err
			}
			below = path.Join(at, "modules")
		}
		if err := sn.modules(common, below, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// worktrees adds the linked worktrees that lie in the workspace: work in them is
// published too.
func (sn *snapshot) worktrees(common, rel string) error {
	r := &Repository{Workspace: filepath.Dir(common), Common: common}
	if rel != "." {
		file, err := pointer(filepath.Join(common, rel, "gitdir"), "", filepath.Join(common, rel))
		if err != nil {
			return err
		}
		r.Workspace = filepath.Dir(file)
	} else if filepath.Base(common) != ".git" {
		return nil
	}
	list, err := os.ReadDir(filepath.Join(common, "worktrees"))
	if missing(err) {
		return nil
	}
	for _, e := range list {
		if at := path.Join("worktrees", e.Name()); at != rel && r.worktree(at, nil) != "" {
			if len(sn.Units) > maxUnits {
				return errTooMuch
			}
			if err := sn.unit(common, ".", at, true); err != nil {
				return err
			}
			if u := sn.Units[len(sn.Units)-1]; u.Rel == at { // else its format is not covered
				u.WorkTree = r.worktree(at, nil)
			}
		}
	}
	return err
}

// unit adds one git directory, or one worktree's part.
func (sn *snapshot) unit(host, dir, rel string, tree bool) error {
	root, err := os.OpenRoot(host)
	if err != nil {
		return err
	}
	defer root.Close()
	f, err := formatAt(root)
	if err != nil {
		sn.Uncovered = append(sn.Uncovered, fmt.Sprintf("%s: %v", dir, err))
		return nil
	}
	u := &unitState{Dir: dir, Rel: rel, Tree: tree, Size: f.size, Index: map[string]content{}, State: map[string]content{}}
	if u.Head, err = readHead(root, rel, f.size); err != nil {
		return err
	}
	if !tree {
		if err := u.readRefs(root); err != nil {
			return err
		}
	}
	if err := u.readState(root); err != nil {
		return err
	}
	if err := u.readIndex(root); errors.Is(err, errTooMuch) {
		u.Large = true
		sn.Uncovered = append(sn.Uncovered, fmt.Sprintf("%s: the index: %v", dir, err))
	} else if err != nil {
		return err
	}
	sn.Units = append(sn.Units, u)
	return nil
}

// formatAt reads the format of a git directory.
func formatAt(root *os.Root) (format, error) {
	text, err := plainFile(root, "config", maxConfig)
	if err != nil && !missing(err) {
		return format{}, err
	}
	list, err := parseConfig(string(text))
	if err != nil {
		return format{}, err
	}
	return formatOf(list)
}

// plainFile is readFile for a name no part of which may be a symbolic link.
func plainFile(root *os.Root, name string, limit int64) ([]byte, error) {
	for at := name; at != "."; at = path.Dir(at) {
		if fi, err := root.Lstat(at); err != nil {
			return nil, err
		} else if fi.Mode()&os.ModeSymlink != 0 {
			return nil, fmt.Errorf("%q is a symbolic link", at)
		}
	}
	return readFile(root, name, limit)
}

// readRefs reads the refs and the stack of stashes.
func (u *unitState) readRefs(root *os.Root) error {
	t, err := readRefs(root, u.Size)
	if err != nil {
		return err
	}
	u.Refs = t.refs
	for name := range t.links {
		text, err := plainFile(root, name, 4096)
		if err != nil {
			continue // gone meanwhile
		}
		if to, err := parseHead(string(text), u.Size); err == nil {
			u.Refs[name] = to
		}
	}
	maps.DeleteFunc(u.Refs, func(name, _ string) bool { return strings.HasPrefix(name, ownRefs) || !utf8.ValidString(name) })
	text, err := plainFile(root, "logs/"+stashRef, maxLog)
	if err != nil && !missing(err) {
		return err
	}
	if u.Refs[stashRef] != "" {
		u.Stash = strings.ToValidUTF8(string(text), "?")
	}
	return nil
}

// readIndex reads the index, and the parts that a split one shares.
func (u *unitState) readIndex(root *os.Root) error {
	name := path.Join(u.Rel, "index")
	u.IndexTime = stampOf(root, name).Mtime
	list, err := readDir(root, u.Rel)
	if err != nil {
		return err
	}
	left := int64(maxKeptIndex)
	for _, e := range list {
		if !indexFile(e.Name()) {
			continue
		}
		text, err := plainFile(root, path.Join(u.Rel, e.Name()), left)
		if missing(err) {
			continue
		}
		if err != nil {
			return err
		}
		left -= int64(len(text))
		u.Index[e.Name()] = text
	}
	return nil
}

// indexFile accepts the names of an index and of the shared part of a split
// one.
func indexFile(name string) bool {
	id, shared := strings.CutPrefix(name, "sharedindex.")
	return name == "index" || shared && (isID(id, 40) || isID(id, 64))
}

// readState reads what git has open.
func (u *unitState) readState(root *os.Root) error {
	left := int64(maxKeptState)
	add := func(name string) error {
		text, err := plainFile(root, path.Join(u.Rel, name), left)
		if err == nil {
			left -= int64(len(text))
			u.State[name] = text
		}
		if missing(err) {
			return nil
		}
		return err
	}
	for _, name := range stateFiles {
		if err := add(name); err != nil {
			return err
		}
	}
	for _, dir := range openDirs {
		if err := u.walkState(root, dir, add, 0); err != nil {
			return err
		}
	}
	return nil
}

// openDirs are those of stateDirs that hold no refs.
var openDirs = slices.DeleteFunc(slices.Clone(stateDirs), func(dir string) bool { return strings.HasPrefix(dir, "refs/") })

func (u *unitState) walkState(root *os.Root, dir string, add func(string) error, depth int) error {
	list, err := readDir(root, path.Join(u.Rel, dir))
	if missing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if depth > maxDepth || len(u.State) > maxFiles {
		return errTooMuch
	}
	for _, e := range list {
		name := path.Join(dir, e.Name())
		switch {
		case e.IsDir():
			err = u.walkState(root, name, add, depth+1)
		case e.Type().IsRegular():
			err = add(name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readSnapshot reads what Snapshot has written.
func readSnapshot(text json.RawMessage) (*snapshot, error) {
	if len(text) > maxSnapshot {
		return nil, errTooMuch
	}
	var sn snapshot
	if err := strictjson.Decode(text, &sn); err != nil {
		return nil, err
	}
	if len(sn.Units) > maxUnits+1 {
		return nil, errTooMuch
	}
	if len(sn.Units) > 0 && sn.Units[0] != nil && (sn.Units[0].Dir != "." || sn.Units[0].Tree) {
		return nil, errors.New("the repository's own state is not the first")
	}
	dirs := map[string]bool{}
	for _, u := range sn.Units {
		if u == nil || dirs[path.Join(u.Dir, u.Rel)] {
			return nil, errors.New("a git directory has no state, or has it twice")
		}
		dirs[path.Join(u.Dir, u.Rel)] = true
		if err := u.check(); err != nil {
			return nil, fmt.Errorf("%q: %w", u.Dir, err)
		}
	}
	return &sn, nil
}

// check refuses what Snapshot does not write: each name becomes a path, and each
// value the argument of a git.
func (u *unitState) check() error {
	if !filepath.IsLocal(u.Dir) || path.Clean(u.Dir) != u.Dir || u.Dir != "." && !strings.HasPrefix(u.Dir, "modules/") {
		return errors.New("it is no git directory of the repository")
	}
	if tree, ok := strings.CutPrefix(u.Rel, "worktrees/"); u.Rel != "." && (!ok || !plainName(tree)) {
		return fmt.Errorf("%q is no worktree", u.Rel)
	}
	if u.Tree && (u.Dir != "." || u.Rel == "." || len(u.Refs) > 0) {
		return errors.New("it is no worktree of the repository")
	}
	if u.WorkTree != "" && (!u.Tree || !filepath.IsAbs(u.WorkTree) || filepath.Clean(u.WorkTree) != u.WorkTree) {
		return errors.New("its worktree has no directory")
	}
	if u.Size != 40 && u.Size != 64 {
		return fmt.Errorf("object IDs of %d digits", u.Size)
	}
	if head, err := parseHead(u.Head, u.Size); err != nil || head != u.Head {
		return errors.New("HEAD leads nowhere")
	}
	for name, to := range u.Refs {
		if v, err := parseHead(to, u.Size); err != nil || v != to || !formatOK(name) || !strings.HasPrefix(name, "refs/") || strings.HasPrefix(name, ownRefs) {
			return fmt.Errorf("%q is no ref", name)
		}
	}
	for name := range u.Index {
		if !indexFile(name) {
			return fmt.Errorf("%q is no index", name)
		}
	}
	for name := range u.State {
		first, _, below := strings.Cut(name, "/")
		if !filepath.IsLocal(name) || path.Clean(name) != name || strings.ContainsRune(name, 0) || below != slices.Contains(openDirs, first) || !below && !slices.Contains(stateFiles, name) {
			return fmt.Errorf("%q is no file of a rebase, merge or bisect", name)
		}
	}
	return nil
}
