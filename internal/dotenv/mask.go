package dotenv

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Bounds of what is looked through to mask it. Beyond them nothing is masked in part:
// MaskAll errs.
const (
	maxMaskEntries = 500_000 // names
	maxMaskDepth   = 64      // directories below the workspace
)

// others are directories of which no file is the project's own.
var others = []string{".git", "node_modules"}

// A Masked file is shown with a placeholder in place of each secret.
type Masked struct {
	Path  string // in the workspace
	Text  []byte
	Masks []Mask
}

// A Mask is one placeholder.
type Mask struct{ Name, Placeholder string }

// ErrTooMuch says that a workspace has more than is looked at.
var ErrTooMuch = fmt.Errorf("the workspace has more than %d files of variables, one above %d KiB, more than %d names, or more than %d directories within each other", maxKeptFiles, maxKeptSize>>10, maxMaskEntries, maxMaskDepth)

// MaskAll reads the files that Workspace reads, wherever they lie in the workspace but in
// .git and node_modules, each as it is to be shown. It errs where one can't be read as a
// whole, or is a link to a file that is not masked.
func MaskAll(dir string) ([]Masked, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	w := walk{root: root, mask: &masking{}}
	w.directory(".", 0)
	return w.mask.masked, w.mask.failed
}

// masking is what becomes of the files of a walk. On nil its methods do nothing: who only
// looks for values leaves out what can't be read.
type masking struct {
	masked []Masked
	failed error
}

func (m *masking) fail(err error) {
	if m != nil && !errors.Is(m.failed, err) {
		m.failed = errors.Join(m.failed, err)
	}
}

// unread tells that something can't be read. What belongs to another user the guest can't
// read either; what is its own user's it could open by chmod.
func (m *masking) unread(root *os.Root, name string, err error) {
	if m == nil || errors.Is(err, fs.ErrNotExist) {
		return
	}
	info, failed := root.Lstat(name)
	if st, ok := sys(info); errors.Is(err, fs.ErrPermission) && failed == nil && ok && int(st.Uid) != os.Geteuid() {
		return
	}
	m.fail(err)
}

func sys(info fs.FileInfo) (*syscall.Stat_t, bool) {
	if info == nil {
		return nil, false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return st, ok
}

// link fails unless what a link leads to is masked itself, a directory, or not there.
func (m *masking) link(root *os.Root, name string) {
	if m == nil {
		return
	}
	to, err := filepath.EvalSymlinks(filepath.Join(root.Name(), name))
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	top, failed := filepath.EvalSymlinks(root.Name())
	if err = errors.Join(err, failed); err != nil {
		m.fail(err)
		return
	}
	rel, err := filepath.Rel(top, to)
	parts := strings.Split(filepath.ToSlash(rel), "/")
	hidden := slices.ContainsFunc(parts, func(p string) bool { return slices.Contains(others, p) })
	if err != nil || parts[0] == ".." || hidden || !isDotenv(path.Base(to)) && !isDir(to) {
		m.fail(fmt.Errorf("%q is a link to %q, which is not masked", name, to))
	}
}

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// file keeps a file with placeholders, where it has a secret.
func (m *masking) file(name, text string) {
	one := Masked{Path: name}
	done := 0
	for a := range assignments(text) {
		v := secretIn(a.key, a.value)
		if v == "" {
			continue
		}
		if !strings.Contains(a.value, v) { // it is written with escapes: then the whole value is masked
			v = a.value
		}
		stand := "masked-by-bawn-" + strings.ToLower(rand.Text()[:16])
		one.Text = append(append(one.Text, text[done:a.at]...), strings.ReplaceAll(a.value, v, stand)...)
		one.Masks = append(one.Masks, Mask{Name: name + ":" + a.key, Placeholder: stand})
		done = a.at + len(a.value)
	}
	if one.Masks == nil {
		return
	}
	one.Text = append(one.Text, text[done:]...)
	m.masked = append(m.masked, one)
}
