// Package dotenv finds the secrets that files of a workspace keep for its programs: .env
// and its kin.
package dotenv

import (
	"errors"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// A Kept value is one that a file of a workspace keeps for its programs.
type Kept struct {
	Name  string // ".env:STRIPE_KEY"
	Value []byte
}

// Bounds of what is read of a workspace, in which a guest may write what it likes.
const (
	maxKeptFiles   = 64
	maxKeptSize    = 256 << 10
	maxKeptValues  = 128
	maxKeptEntries = 4096 // names that are looked at
	maxKeptDepth   = 3    // directories below the workspace
	minKept        = 10   // bytes of a value that is called secret
	minRandom      = 20   // and of one that only looks like it
	maxKeptValue   = 4 << 10
)

// Workspace reads the values of the secrets in the files of a workspace that are
// made for them: .env and its kin, but no examples. It follows no links, opens
// regular files only, and leaves out what is beyond its bounds or can't be read.
func Workspace(dir string) []Kept {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil
	}
	defer root.Close()
	w := walk{root: root}
	w.directory(".", 0)
	return w.found
}

// A walk is through one workspace.
type walk struct {
	root           *os.Root
	entries, files int
	found          []Kept
	mask           *masking // nil where values are only looked for
}

// elsewhere are directories whose files are not the project's own.
var elsewhere = []string{".git", "node_modules", "vendor", "target", "dist", "build", ".venv", "venv", "__pycache__"}

func (w *walk) directory(name string, depth int) {
	d, err := w.root.OpenFile(name, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		w.mask.unread(w.root, name, err)
		return
	}
	most, deepest, skipped := w.bounds()
	list, err := readDir(d, max(1, most-w.entries)) // as much as could be read
	_ = d.Close()
	if err != nil && !errors.Is(err, io.EOF) {
		w.mask.unread(w.root, name, err)
	}
	if w.entries += len(list); w.entries >= most {
		w.mask.fail(ErrTooMuch)
	}
	for _, e := range list {
		if isDotenv(e.Name()) && !w.entry(path.Join(name, e.Name()), e.Type()) {
			break
		}
	}
	for _, e := range list {
		switch {
		case !e.IsDir() || w.entries >= most || slices.Contains(skipped, e.Name()):
		case depth >= deepest:
			w.mask.fail(ErrTooMuch)
		default:
			w.directory(path.Join(name, e.Name()), depth+1)
		}
	}
}

// readDir is d.ReadDir without a stat of each name, which that of a Root's directory makes.
func readDir(d *os.File, most int) ([]fs.DirEntry, error) {
	fd, err := unix.FcntlInt(d.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	plain := os.NewFile(uintptr(fd), d.Name())
	defer plain.Close()
	return plain.ReadDir(most)
}

// bounds are how many names are looked at, how deep, and in which directories none.
func (w *walk) bounds() (most, deepest int, skipped []string) {
	if w.mask != nil {
		return maxMaskEntries, maxMaskDepth, others
	}
	return maxKeptEntries, maxKeptDepth, elsewhere
}

// entry looks at something that has the name of such a file, and reports whether there may
// be more of them.
func (w *walk) entry(name string, t fs.FileMode) bool {
	switch {
	case t&fs.ModeSymlink != 0:
		w.mask.link(w.root, name)
	case t.IsRegular() && (w.mask != nil || plainName(name)):
		if w.files++; w.files > maxKeptFiles {
			w.mask.fail(ErrTooMuch)
			return false
		}
		w.file(name)
	}
	return true
}

// isDotenv reports whether a file of this name holds variables of a project, and
// not examples of them.
func isDotenv(name string) bool {
	rest, ok := strings.CutPrefix(name, ".env")
	if !ok || rest != "" && rest[0] != '.' {
		return false
	}
	for _, end := range []string{".example", ".sample", ".template", ".dist", ".defaults"} {
		if strings.HasSuffix(rest, end) {
			return false
		}
	}
	return true
}

func (w *walk) file(name string) {
	f, err := w.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		w.mask.unread(w.root, name, err)
		return
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return
	}
	text, err := io.ReadAll(io.LimitReader(f, maxKeptSize+1))
	if err != nil {
		w.mask.unread(w.root, name, err)
		return
	}
	if len(text) > maxKeptSize {
		w.mask.fail(ErrTooMuch)
	}
	defer clear(text)
	if w.mask != nil {
		w.mask.file(name, string(text))
		return
	}
	for a := range assignments(string(text)) {
		if len(w.found) >= maxKeptValues {
			return
		}
		if v := secretIn(a.key, a.value); v != "" {
			w.found = append(w.found, Kept{Name: name + ":" + a.key, Value: []byte(v)})
		}
	}
}

// An assignment is one value, or a line of one, and where it stands in the text.
type assignment struct {
	key, value string
	at         int
}

// assignments yields NAME=value lines as dotenv files have them: with or without
// "export", quotes and comments. Of a value over several lines it yields each.
func assignments(text string) func(func(assignment) bool) {
	return func(yield func(assignment) bool) {
		key, quote, at := "", byte(0), 0
		for whole := range strings.Lines(text) {
			begins := at
			at += len(whole)
			line := strings.TrimSpace(whole)
			value, from := line, 0
			if quote == 0 {
				var ok bool
				key, value, ok = strings.Cut(strings.TrimPrefix(line, "export "), "=")
				if key = strings.TrimSpace(key); !ok || !plainName(key) {
					continue
				}
				from = strings.IndexByte(whole, '=') + 1
				if value = strings.TrimSpace(value); value != "" && strings.IndexByte("\"'`", value[0]) >= 0 {
					quote, value = value[0], value[1:]
				} else if bare, _, comment := strings.Cut(value, " #"); comment {
					value = strings.TrimSpace(bare)
				}
			}
			if quote != 0 {
				if end := strings.IndexByte(value, quote); end >= 0 {
					value, quote = value[:end], 0
				}
			}
			if !yield(assignment{key, value, begins + from + strings.Index(whole[from:], value)}) {
				return
			}
		}
	}
}

func alnum(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// plainName reports whether a text can be the name of a variable, or of a file that
// a question names.
func plainName(s string) bool {
	odd := func(c rune) bool { return !alnum(c) && !strings.ContainsRune("_.-/", c) }
	return s != "" && len(s) <= 200 && !strings.ContainsFunc(s, odd)
}

// secretWords are in the names of variables whose values are secret.
var secretWords = []string{"KEY", "TOKEN", "SECRET", "PASS", "PWD", "CREDENTIAL", "AUTH", "PRIVATE", "SALT", "SIGNATURE", "WEBHOOK", "DSN"}

// secretIn returns the secret part of a value, or "": the password of an
// address, a value whose name says so, or a value that looks random.
func secretIn(key, value string) string {
	if u, err := url.Parse(value); err == nil && u.Host != "" {
		if password, ok := u.User.Password(); ok && len(password) >= minKept {
			return password
		}
	}
	upper := strings.ToUpper(key)
	called := slices.ContainsFunc(secretWords, func(w string) bool { return strings.Contains(upper, w) })
	switch {
	case len(value) < minKept, len(value) > maxKeptValue, strings.Contains(value, "${"), strings.HasPrefix(value, "<"):
		return ""
	case called && mixed(value, minKept):
		return value
	case !called && mixed(value, minRandom) && !strings.ContainsAny(value, " /:,"):
		return value
	}
	return ""
}

// mixed reports whether a value is long enough and of more than words: letters and
// digits, or upper and lower case.
func mixed(s string, least int) bool {
	digit := strings.ContainsAny(s, "0123456789")
	lower, upper := strings.ToUpper(s) != s, strings.ToLower(s) != s
	return len(s) >= least && (digit && (lower || upper) || lower && upper)
}
