package skill

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

var errNotDir error = syscall.ENOTDIR

// A File is one file of an item.
type File struct {
	Name       string // below the item, with slashes; the file's own where the item is one
	Alone      bool   // the item is this file
	Executable bool
	Content    []byte
}

// Walk calls f with every file of the item at a path, sorted by name, and stops
// at its first error. It errs with a *Fault for a link, for what is no file,
// and for what exceeds a limit; links are never followed.
func Walk(at string, f func(File) error) error {
	dir, only := at, ""
	if info, err := os.Lstat(at); err != nil {
		return err
	} else if !info.IsDir() {
		dir, only = filepath.Split(at)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	w := &walk{root: root, visit: f}
	if only != "" {
		w.alone = true
		return w.file(only)
	}
	return w.dir(".", 0)
}

type walk struct {
	root  *os.Root
	alone bool
	visit func(File) error
	files int
	total int64
}

func (w *walk) dir(name string, depth int) error {
	if depth > MaxDepth {
		return &Fault{File: name, Problem: fmt.Sprintf("more than %d directories deep", MaxDepth)}
	}
	d, err := w.root.Open(name)
	if err != nil {
		return err
	}
	entries, err := d.ReadDir(MaxFiles + 1)
	d.Close()
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return err
	case len(entries) > MaxFiles:
		return &Fault{File: name, Problem: fmt.Sprintf("more than %d entries", MaxFiles)}
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, e := range entries {
		below := path.Join(name, e.Name())
		if e.IsDir() {
			err = w.dir(below, depth+1)
		} else {
			err = w.file(below)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) file(name string) error {
	if w.files++; w.files > MaxFiles {
		return &Fault{File: name, Problem: fmt.Sprintf("more than %d files", MaxFiles)}
	}
	before, err := w.root.Lstat(name)
	switch {
	case err != nil:
		return err
	case before.Mode()&fs.ModeSymlink != 0:
		return &Fault{File: name, Problem: errLink.Error()}
	case !before.Mode().IsRegular():
		return &Fault{File: name, Problem: fmt.Sprintf("it is %s; want a file", describe(before.Mode()))}
	}
	content, err := w.read(name, before)
	if err != nil {
		return err
	}
	return w.visit(File{Name: name, Alone: w.alone, Executable: before.Mode()&0o111 != 0, Content: content})
}

// read reads the file that was looked at, and no other that has taken its name.
func (w *walk) read(name string, before fs.FileInfo) ([]byte, error) {
	f, err := w.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !os.SameFile(info, before) || !info.Mode().IsRegular() {
		return nil, &Fault{File: name, Problem: "it has changed while it was read; try again"}
	}
	content, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return nil, err
	}
	if w.total += int64(len(content)); len(content) > MaxFile || w.total > MaxTotal {
		return nil, &Fault{File: name, Problem: fmt.Sprintf("too large; want at most %d MiB a file and %d MiB in all", MaxFile>>20, MaxTotal>>20)}
	}
	return content, nil
}

// A digest collects what an item is: its kind, its name, and of each file the
// name, whether it can be executed, and the content.
type digest struct {
	hash  hash.Hash
	files int
}

func newDigest(k Kind, name string) *digest {
	d := &digest{hash: sha256.New()}
	fmt.Fprintf(d.hash, "bawn skill 1\n%s %q\n", k, name)
	return d
}

func (d *digest) add(f File) {
	d.files++
	mode := "-"
	if f.Executable {
		mode = "x"
	}
	fmt.Fprintf(d.hash, "%s %x %q\n", mode, sha256.Sum256(f.Content), f.Name)
}

func (d *digest) sum() string { return "sha256:" + hex.EncodeToString(d.hash.Sum(nil)) }
