package secrets

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
}

// elsewhere are directories whose files are not the project's own.
var elsewhere = []string{".git", "node_modules", "vendor", "target", "dist", "build", ".venv", "venv", "__pycache__"}

func (w *walk) directory(name string, depth int) {
	d, err := w.root.OpenFile(name, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return
	}
	list, _ := d.ReadDir(max(1, maxKeptEntries-w.entries)) // as much as could be read
	_ = d.Close()
	w.entries += len(list)
	for _, e := range list {
		if isDotenv(e.Name()) && plainName(path.Join(name, e.Name())) && e.Type().IsRegular() && w.files < maxKeptFiles {
			w.files++
			w.file(path.Join(name, e.Name()))
		}
	}
	for _, e := range list {
		if e.IsDir() && depth < maxKeptDepth && w.entries < maxKeptEntries && !slices.Contains(elsewhere, e.Name()) {
			w.directory(path.Join(name, e.Name()), depth+1)
		}
	}
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
		return
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return
	}
	text, err := io.ReadAll(io.LimitReader(f, maxKeptSize))
	if err != nil && !errors.Is(err, fs.ErrClosed) {
		return
	}
	defer clear(text)
	for key, value := range assignments(string(text)) {
		if len(w.found) >= maxKeptValues {
			return
		}
		if v := secretIn(key, value); v != "" {
			w.found = append(w.found, Kept{Name: name + ":" + key, Value: []byte(v)})
		}
	}
}

// assignments yields NAME=value lines as dotenv files have them: with or without
// "export", quotes and comments. Of a value over several lines it yields each.
func assignments(text string) func(func(key, value string) bool) {
	return func(yield func(string, string) bool) {
		key, quote := "", byte(0)
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			value := line
			if quote == 0 {
				var ok bool
				key, value, ok = strings.Cut(strings.TrimPrefix(line, "export "), "=")
				if key = strings.TrimSpace(key); !ok || !plainName(key) {
					continue
				}
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
			if !yield(key, value) {
				return
			}
		}
	}
}

// plainName reports whether a text can be the name of a variable, or of a file that
// a question names.
func plainName(s string) bool {
	odd := func(c rune) bool { return !alnum(c) && !strings.ContainsRune("_.-/", c) }
	return s != "" && len(s) <= 200 && !strings.ContainsFunc(s, odd)
}

// secretWords are in the names of variables whose values are secret.
var secretWords = []string{"KEY", "TOKEN", "SECRET", "PASS", "PWD", "CREDENTIAL", "AUTH", "PRIVATE", "SALT", "SIGNATURE", "WEBHOOK", "DSN"}

// secretIn returns the part of a value that is secret, "" where no part is: the
// password of an address, a value whose name says so, or one that looks random.
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
