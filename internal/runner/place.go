//go:build linux || darwin

package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// placeMark is a file in every place. The process that made the place holds the
// file's lock as long as it lives.
const placeMark = ".bawn-split"

// halfPlace begins the names of places that are being made or removed, and may
// have no mark. A place is made under the lock of its base.
const halfPlace = ".half-"

// A Place is a directory of the host that lives as long as a split session: in
// it lie the /tmp that its zones share and the session socket.
type Place struct {
	dir  string
	mark *os.File
}

// MakePlace makes the place of a session below base, which no guest may see,
// and removes those that sessions left behind which were killed. The caller
// closes it.
func MakePlace(base, session string) (*Place, error) {
	if err := os.MkdirAll(base, 0o700); err != nil {
		return nil, fmt.Errorf("make a place for the session: %w", err)
	}
	sweep(base)
	p, err := makePlaceIn(base, session)
	if err != nil {
		return nil, fmt.Errorf("make a place for the session: %w", err)
	}
	return p, nil
}

// makePlaceIn makes a place under the lock of its base, so that a half-made one
// found under that lock is a killed process's.
func makePlaceIn(base, session string) (*Place, error) {
	held, err := os.Open(base)
	if err != nil {
		return nil, err
	}
	defer held.Close()
	if err := unix.Flock(int(held.Fd()), unix.LOCK_EX); err != nil {
		return nil, fmt.Errorf("lock %q: %w", base, err)
	}
	sweepHalf(base)
	p := &Place{dir: filepath.Join(base, halfPlace+session)}
	if err := os.Mkdir(p.dir, 0o700); err != nil {
		return nil, err
	}
	if err := p.furnish(); err != nil {
		return nil, errors.Join(err, p.mark.Close(), removeHalf(p.dir))
	}
	dir := filepath.Join(base, session)
	if err := renameNew(p.dir, dir); err != nil { // from now on sweep finds it, and finds it locked
		return nil, errors.Join(err, p.mark.Close(), removeHalf(p.dir))
	}
	p.dir = dir
	return p, nil
}

// renameNew renames a directory to a name that nothing has.
func renameNew(from, to string) error {
	if _, err := os.Lstat(to); err == nil {
		return &fs.PathError{Op: "make", Path: to, Err: fs.ErrExist}
	}
	return os.Rename(from, to)
}

func (p *Place) furnish() (err error) {
	if p.mark, err = os.OpenFile(filepath.Join(p.dir, placeMark), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600); err != nil {
		return err
	}
	if err := unix.Flock(int(p.mark.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return err
	}
	if err := os.Mkdir(p.Tmp(), 0o700); err != nil {
		return err
	}
	return os.Chmod(p.Tmp(), 0o777|fs.ModeSticky)
}

// Tmp is the directory that both zones have as /tmp.
func (p *Place) Tmp() string { return filepath.Join(p.dir, "tmp") }

// Socket is where the session socket goes.
func (p *Place) Socket() string { return filepath.Join(p.dir, "socket") }

// Close removes the place with its contents.
func (p *Place) Close() error {
	return errors.Join(remove(p.dir), p.mark.Close())
}

// remove removes a place. os.RemoveAll follows no link, wherever a guest has
// left one.
func remove(dir string) error {
	if info, err := os.Lstat(filepath.Join(dir, placeMark)); err != nil || !info.Mode().IsRegular() {
		return fmt.Errorf("%q is no place of a session; nothing was removed", dir)
	}
	tmp := filepath.Join(dir, "tmp")
	if os.RemoveAll(tmp) != nil {
		if err := errors.Join(unlock(tmp), os.RemoveAll(tmp)); err != nil {
			return err // the mark stays, so that it is tried again
		}
	}
	half := filepath.Join(filepath.Dir(dir), halfPlace+filepath.Base(dir))
	if err := os.Rename(dir, half); err != nil {
		return err
	}
	return removeHalf(half)
}

// removeHalf removes a place with what Bawn itself makes in one, and no more.
func removeHalf(dir string) error {
	for _, name := range []string{"socket", "tmp", placeMark} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return os.Remove(dir)
}

// sweepHalf removes half-made or half-removed places, of a killed process or of
// one that is just removing it. The caller has locked base.
func sweepHalf(base string) {
	entries, err := os.ReadDir(base)
	if err != nil {
		return // then nothing is known to be left
	}
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), halfPlace) {
			_ = removeHalf(filepath.Join(base, e.Name())) // what could not be removed is tried again
		}
	}
}

// unlock lets its owner into every directory below dir: a guest may have closed
// some.
func unlock(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return root.Chmod(path, 0o700) // before it is read
	})
}

// sweep removes places whose holder is gone.
func sweep(base string) {
	entries, err := os.ReadDir(base)
	if err != nil {
		return // then nothing is known to be left
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), halfPlace) {
			continue
		}
		dir := filepath.Join(base, e.Name())
		mark, err := os.OpenFile(filepath.Join(dir, placeMark), os.O_RDWR|unix.O_NOFOLLOW, 0)
		if err != nil {
			continue
		}
		if e.IsDir() && unix.Flock(int(mark.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			_ = remove(dir) // what could not be removed is tried again
		}
		_ = mark.Close() // nothing was written
	}
}
