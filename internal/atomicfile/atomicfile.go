// Package atomicfile replaces a small file as a whole: a reader sees the old
// content or the new, never a part, also after a crash.
package atomicfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Write replaces path by data. The file gets mode perm whatever the umask, and
// is on disk when Write returns. A symbolic link at path is replaced, not
// followed.
func Write(path string, data []byte, perm fs.FileMode) error {
	return place(path, data, perm, os.Rename)
}

// Create is Write for a path that must not exist yet; otherwise the error is
// fs.ErrExist and nothing changes.
func Create(path string, data []byte, perm fs.FileMode) error {
	return place(path, data, perm, os.Link) // link(2) never replaces
}

// Update replaces path by what edit makes of its content, nil where there is
// no file. Others that Update files of the same directory wait meanwhile. A
// file of more than limit bytes is an error, and so is a path that is not a
// regular file. Where edit returns an error nothing changes.
func Update(path string, perm fs.FileMode, limit int64, edit func(old []byte) ([]byte, error)) error {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close() // also ends the lock
	if err := lock(dir); err != nil {
		return fmt.Errorf("lock %q: %w", dir.Name(), err)
	}
	old, err := Read(path, limit)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	data, err := edit(old)
	if err != nil {
		return err
	}
	return Write(path, data, perm)
}

// A Stamp tells what was in a file apart from what is in it later. It is comparable; the
// zero Stamp is that of a file that is not there.
type Stamp struct {
	Dev, Inode, Size int64
	Written, Changed int64 // nanoseconds
}

// Read returns the content of the regular file at path, following symbolic
// links. It never waits on a pipe or a device and refuses more than limit
// bytes.
func Read(path string, limit int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|NonBlock, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadOpen(f, limit)
}

// ReadOpen is Read for a file that is open already.
func ReadOpen(f *os.File, limit int64) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%q is %s; want a regular file", f.Name(), whatIs(info.Mode()))
	}
	var data bytes.Buffer
	data.Grow(int(min(info.Size(), limit)) + bytes.MinRead) // once, for a file that does not grow meanwhile
	if _, err := data.ReadFrom(io.LimitReader(f, limit+1)); err != nil {
		return nil, err
	}
	if int64(data.Len()) > limit {
		return nil, fmt.Errorf("%q has more than %d bytes", f.Name(), limit)
	}
	return data.Bytes(), nil
}

func whatIs(m fs.FileMode) string {
	if m.IsDir() {
		return "a directory"
	}
	return "no file but " + m.Type().String()
}

// temporary is what the names of temporary files match.
const temporary = ".tmp-*"

// Sweep removes temporary files in dir that are older than that: the process that wrote them
// was killed. dir holds files of this package's alone.
func Sweep(dir string, age time.Duration) {
	found, _ := filepath.Glob(filepath.Join(dir, temporary)) // the pattern is one
	for _, name := range found {
		if info, err := os.Lstat(name); err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > age {
			_ = os.Remove(name) // or the next one does
		}
	}
}

// place writes a temporary file beside path and moves it there.
func place(path string, data []byte, perm fs.FileMode, move func(from, to string) error) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, temporary) // mode 0600, O_EXCL
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails after a rename, as it should
	err = fill(f, data, perm)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := move(f.Name(), path); err != nil {
		return err
	}
	return syncDir(dir)
}

func fill(f *os.File, data []byte, perm fs.FileMode) error {
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.Chmod(perm); err != nil {
		return err
	}
	return f.Sync()
}

// syncDir makes the new name itself durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
