// Package sealed keeps directories that guests write where no program of the
// host comes across them. A sealed directory has mode 0000 and holds one entry,
// the guest's directory. The user's programs can't pass it: a link that a guest
// has made, or a path that a guest has learned from /proc, leads them to EACCES.
// A process of Bawn's passes it with CAP_DAC_OVERRIDE in a user namespace of its
// own, which counts for the user's files, and which no ordinary program has.
//
// Modes do not stop root, nor does this package: for a human who is root only
// the sandbox's rule about links is in the way.
package sealed

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// entry is the name of the guest's directory in a sealed one.
const entry = "inside"

// Inside is the guest's directory in the sealed directory dir: what is mounted.
func Inside(dir string) string { return filepath.Join(dir, entry) }

// Split returns the sealed directory in which p would lie, and the rest of p
// below the guest's directory in it. It looks at names only.
func Split(p string) (seal, rest string, ok bool) {
	p = filepath.Clean(p)
	i := strings.LastIndex(p+"/", "/"+entry+"/")
	if i <= 0 {
		return "", "", false
	}
	return p[:i], strings.TrimPrefix(p[i+len("/"+entry):], "/"), true
}

// Path is where this process, and no other, finds names below an open directory,
// whatever is in the way to that by its own path.
func Path(dir *os.File, names ...string) string {
	return filepath.Join(append([]string{"/proc/self/fd", strconv.Itoa(int(dir.Fd()))}, names...)...)
}

// Create makes dir, which must not exist, a sealed directory, and opens the
// guest's directory in it as Open does. It needs no user namespace.
func Create(dir string) (_ *os.File, err error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, Remove(dir))
		}
	}()
	if err := os.Chown(dir, -1, os.Getegid()); err != nil { // as in wrap
		return nil, err
	}
	if err := os.Mkdir(Inside(dir), 0o700); err != nil {
		return nil, err
	}
	f, err := Open(dir)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	made.Store(dir, f)
	return f, nil
}

// made has the guests' directories that this process has created or opened ahead, by their sealed
// directories. As long as one is open, Open needs no process of its own for it.
var made sync.Map

// Make makes dir a sealed directory, with its parents, and returns Inside(dir).
// A directory that is there and not sealed is moved in as the guest's. Nothing
// can be reached by way of dir at any moment. Several processes may call it at
// a time.
func Make(dir string) (string, error) {
	fi, err := os.Lstat(dir)
	switch {
	case err == nil && !fi.IsDir():
		return "", fmt.Errorf("seal %q: want a directory, and it is something else; move it away", dir)
	case err == nil && fi.Mode().Perm() == 0:
		return Inside(dir), nil
	case err == nil && opened(dir):
		return Inside(dir), os.Chmod(dir, 0)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return "", err
	}
	return Inside(dir), wrap(dir, err == nil)
}

// opened reports whether somebody has changed the mode of a sealed directory.
func opened(dir string) bool {
	list, err := os.ReadDir(dir)
	return err == nil && len(list) == 1 && list[0].Name() == entry && list[0].IsDir()
}

// wrap makes the sealed directory under another name and puts it at dir.
func wrap(dir string, there bool) (err error) {
	tmp, err := os.MkdirTemp(filepath.Dir(dir), ".sealing-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, Remove(tmp))
		}
	}()
	// A capability of a user namespace counts for files of groups that it maps.
	if err := os.Chown(tmp, -1, os.Getegid()); err != nil {
		return err
	}
	if !there {
		err = os.Mkdir(Inside(tmp), 0o700)
	} else if err = os.Chmod(dir, 0o700); err == nil { // a move needs the right to write in it
		err = os.Rename(dir, Inside(tmp))
	}
	if err == nil {
		err = os.Chmod(tmp, 0)
	}
	if err != nil {
		return err
	}
	if err = os.Rename(tmp, dir); err == nil {
		return nil
	}
	if fi, e := os.Lstat(dir); e == nil && fi.IsDir() && fi.Mode().Perm() == 0 {
		return Remove(tmp) // another process was faster
	}
	return err
}

// Remove removes a sealed directory with all that the guest has put there. No
// guest may be using it.
func Remove(dir string) error {
	made.Delete(dir)
	err := os.Chmod(dir, 0o700)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err = os.RemoveAll(dir); err == nil {
		return nil
	}
	// A guest, and Go's module cache, take the right to write from directories.
	_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && (err != nil || writable(d)) {
			_ = os.Chmod(p, 0o700) // RemoveAll says what fails
		}
		return nil
	})
	return os.RemoveAll(dir)
}

func writable(d fs.DirEntry) bool {
	fi, err := d.Info()
	return err == nil && fi.Mode().Perm()&0o700 != 0o700
}
