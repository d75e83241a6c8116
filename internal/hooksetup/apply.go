package hooksetup

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/bawn-dev/bawn/internal/atomicfile"
)

// ErrMeanwhile says that a file is not what it was when the plan was made.
var ErrMeanwhile = errors.New("it has been changed meanwhile; look at what would be written once more")

// Apply writes what a plan says. Each file is replaced as a whole, and only if
// it still is what the plan has seen; what undoes it is kept before.
func (s Setup) Apply(p Plan) error {
	var made []madeDir
	for _, e := range p.Edits {
		dirs, err := s.apply(e, s.by(p.Agent, p.Level))
		if err != nil {
			return &FileError{e.Path, err}
		}
		for _, dir := range dirs {
			made = append(made, madeDir{e.base, dir})
		}
	}
	for _, m := range made {
		if err := m.remove(); err != nil {
			return err
		}
	}
	return nil
}

// apply returns directories that nobody needs any more.
func (s Setup) apply(e Edit, by string) ([]string, error) {
	switch {
	case e.undo:
		return s.takeBack(e, by)
	case !e.Changes():
		return nil, s.adopt(e, by)
	}
	dirs, err := missing(e.base, filepath.Dir(e.Path))
	if err != nil {
		return nil, err
	}
	if err := s.noteWrite(e, by, dirs); err != nil {
		return nil, err
	}
	return nil, e.write()
}

// adopt notes who else wants a file as it is. What is nobody's in the record
// was not written by bawn, and is left to the user.
func (s Setup) adopt(e Edit, by string) error {
	r, err := s.readRecord()
	if err != nil {
		return err
	}
	if w, known := r.Files[e.Path]; !known || w.only(by) {
		return nil
	}
	return s.noteWrite(e, by, nil)
}

// takeBack writes what was before, and returns directories that were made.
func (s Setup) takeBack(e Edit, by string) ([]string, error) {
	if e.Changes() {
		if err := e.write(); err != nil {
			return nil, err
		}
	}
	r, err := s.readRecord()
	if err != nil {
		return nil, err
	}
	if _, known := r.Files[e.Path]; !known {
		return nil, nil
	}
	dirs, err := s.noteUndo(e, by)
	if e.New != nil {
		return nil, err
	}
	return dirs, err
}

// A madeDir is a directory that was made for a file in base.
type madeDir struct{ base, dir string }

// remove removes it if it is empty.
func (m madeDir) remove() error {
	rel, err := inBase(m.base, m.dir)
	if err != nil || rel == "." {
		return err
	}
	root, err := os.OpenRoot(m.base)
	if err != nil {
		return err
	}
	defer root.Close()
	_ = root.Remove(rel) // what is not empty is in use
	return nil
}

// missing lists the directories that are not there yet, the innermost first.
func missing(base, dir string) ([]string, error) {
	base, err := resolve(base)
	if err != nil {
		return nil, err
	}
	var dirs []string
	for dir != base {
		if _, err := os.Lstat(dir); err == nil {
			break
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		dirs = append(dirs, dir)
		dir = filepath.Dir(dir)
	}
	return dirs, nil
}

// inBase is a path as seen from base.
func inBase(base, path string) (string, error) {
	base, err := resolve(base)
	if err != nil {
		return "", err
	}
	rel, err := filepath.Rel(base, path)
	if err == nil && !filepath.IsLocal(rel) {
		err = fmt.Errorf("%q is not in %q", path, base)
	}
	return rel, err
}

// write replaces, makes or removes the file, through a directory that it can't
// be led out of.
func (e Edit) write() error {
	if err := os.MkdirAll(e.base, 0o700); err != nil {
		return err
	}
	rel, err := inBase(e.base, e.Path)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(e.base)
	if err != nil {
		return err
	}
	defer root.Close()
	if e.New != nil {
		if err := root.MkdirAll(filepath.Dir(rel), dirMode(e.Mode)); err != nil {
			return err
		}
		return e.replace(root, rel)
	}
	if _, err := e.still(root, rel); err != nil {
		return err
	}
	return root.Remove(rel)
}

func dirMode(file fs.FileMode) fs.FileMode {
	if file == own {
		return 0o700
	}
	return 0o755
}

// still returns what is known of the file, if it is what the plan has seen.
func (e Edit) still(root *os.Root, rel string) (fs.FileInfo, error) {
	f, err := root.OpenFile(rel, os.O_RDONLY|atomicfile.NonBlock, 0)
	if errors.Is(err, fs.ErrNotExist) && e.Old == nil {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	now, err := atomicfile.ReadOpen(f, most)
	if err != nil {
		return nil, err
	}
	if e.Old == nil || !bytes.Equal(now, e.Old) {
		return nil, ErrMeanwhile
	}
	return f.Stat()
}

// replace puts a new file in the place of the old, with its mode and owner.
func (e Edit) replace(root *os.Root, rel string) (err error) {
	info, err := e.still(root, rel)
	if err != nil {
		return err
	}
	name := filepath.Join(filepath.Dir(rel), ".tmp-"+rand.Text())
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, own)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = root.Remove(name)
		}
	}()
	if err := errors.Join(e.fill(f, info), f.Close()); err != nil {
		return err
	}
	if _, err := e.still(root, rel); err != nil {
		return err
	}
	if err := root.Rename(name, rel); err != nil {
		return err
	}
	dir, err := root.Open(filepath.Dir(rel))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func (e Edit) fill(f *os.File, was fs.FileInfo) error {
	mode := e.Mode
	if was != nil {
		mode = was.Mode().Perm()
		if err := keepOwner(f, was); err != nil {
			return err
		}
	}
	if _, err := f.Write(e.New); err != nil {
		return err
	}
	if err := f.Chmod(mode); err != nil {
		return err
	}
	return f.Sync()
}

// readFile reads a settings file; it is no link any more.
func readFile(path string) ([]byte, error) {
	text, err := atomicfile.Read(path, most)
	if err == nil && text == nil {
		text = []byte{}
	}
	return text, err
}
