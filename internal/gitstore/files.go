package gitstore

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"
)

// Limits of the copy of the host's git directory when a session starts.
const (
	maxSmall     = 1 << 20   // of a file such as HEAD or MERGE_MSG
	maxPacked    = 256 << 20 // of packed-refs
	maxIndex     = 1 << 30
	maxLog       = 8 << 20
	maxLogs      = 64 << 20 // all together
	maxStateSize = 64 << 20 // of an open rebase, merge or bisect
	maxFiles     = 4096     // in one of those, or of the logs
	maxDepth     = 32
)

// errTooMuch is why something was not read or copied to its end.
var errTooMuch = errors.New("there is more of it than bawn reads")

// open opens a regular file below root for reading. It does not block, and
// follows no link that leaves root.
func open(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	fi, err := f.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = fmt.Errorf("%q is no regular file", name)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, fi, nil
}

// readFile reads a file below root. It errs with errTooMuch for one above limit.
func readFile(root *os.Root, name string, limit int64) ([]byte, error) {
	f, fi, err := open(root, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if fi.Size() > limit {
		return nil, fmt.Errorf("%q: %w", name, errTooMuch)
	}
	text := make([]byte, 0, fi.Size()+512)
	for {
		n, err := f.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
		switch {
		case int64(len(text)) > limit:
			return nil, fmt.Errorf("%q: %w", name, errTooMuch)
		case errors.Is(err, io.EOF):
			return text, nil
		case err != nil:
			return nil, err
		case len(text) == cap(text):
			text = append(text, 0)[:len(text)]
		}
	}
}

// copyFile copies a file, which need not be there, and returns how large it is.
func copyFile(from, to *os.Root, name string, limit int64) (int64, error) {
	in, fi, err := open(from, name)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer in.Close()
	if fi.Size() > limit {
		return 0, fmt.Errorf("%q: %w", name, errTooMuch)
	}
	if dir := path.Dir(name); dir != "." {
		if err := to.MkdirAll(dir, 0o755); err != nil {
			return 0, err
		}
	}
	out, err := to.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return 0, err
	}
	n, err := io.Copy(out, io.LimitReader(in, limit))
	return n, errors.Join(err, out.Close())
}

// A budget bounds a copy of a directory.
type budget struct {
	files int
	bytes int64
}

// copyTree copies the regular files of a directory, which need not be there.
// Links and special files stay behind.
func copyTree(from, to *os.Root, dir string, left *budget, depth int) error {
	list, err := readDir(from, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if depth > maxDepth {
		return errTooMuch
	}
	if err := to.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, e := range list {
		name := path.Join(dir, e.Name())
		switch {
		case e.IsDir():
			err = copyTree(from, to, name, left, depth+1)
		case e.Type().IsRegular():
			if left.files--; left.files < 0 {
				return errTooMuch
			}
			var n int64
			n, err = copyFile(from, to, name, left.bytes)
			left.bytes -= n
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readDir lists a directory below root.
func readDir(root *os.Root, dir string) ([]fs.DirEntry, error) {
	f, err := root.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.ReadDir(-1)
}

// replace puts a file in place of another below root, holding the lock that git
// holds for it. unchanged is asked with the lock held. It errs with fs.ErrExist
// while a git has the lock.
func replace(root *os.Root, name string, data []byte, unchanged func() bool) (done bool, err error) {
	if dir := path.Dir(name); dir != "." {
		if err := root.MkdirAll(dir, 0o755); err != nil {
			return false, err
		}
	}
	lock := name + ".lock"
	f, err := root.OpenFile(lock, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return false, err
	}
	if unchanged != nil && !unchanged() {
		return false, errors.Join(f.Close(), root.Remove(lock))
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = root.Rename(lock, name)
	}
	if err != nil {
		return false, errors.Join(err, root.Remove(lock))
	}
	return true, nil
}

// A stamp tells one state of a file from another, without reading it.
type stamp struct {
	Ino, Size, Mtime, Ctime int64
}

// stampOf returns the zero stamp for anything but a regular file.
func stampOf(root *os.Root, name string) stamp {
	fi, err := root.Lstat(name)
	if err != nil || !fi.Mode().IsRegular() {
		return stamp{}
	}
	s := stamp{Size: fi.Size(), Mtime: fi.ModTime().UnixNano()}
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		s.Ino, s.Ctime = int64(st.Ino), ctime(st)
	}
	return s
}

// exists reports whether there is anything of that name.
func exists(root *os.Root, name string) bool {
	_, err := root.Lstat(name)
	return err == nil
}

// removeAll removes a directory of Bawn's own, whatever the guest has made there.
func removeAll(dir string) error {
	err := os.RemoveAll(dir)
	if err == nil {
		return nil
	}
	// Directories that the guest has made unwritable.
	_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(p, 0o700) //nolint:gosec // ours; a link is no directory here
		}
		return nil
	})
	return os.RemoveAll(dir)
}
