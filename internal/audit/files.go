package audit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// files are the two open files of a log.
type files struct {
	log, head     *os.File
	logID, headID fileID
}

func (f files) close() error {
	if f.log == nil {
		return nil
	}
	return errors.Join(f.log.Close(), f.head.Close())
}

// openFiles opens both files for writing, and creates them and their directory
// where they are missing.
func openFiles(dir string) (files, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return files{}, err
	}
	d, err := openAt(unix.AT_FDCWD, dir, dir, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return files{}, err
	}
	defer d.Close()
	if err := checkOurs(d, fs.ModeDir, 0o077); err != nil {
		return files{}, err
	}
	var f files
	if f.log, err = openOurs(d, logName, unix.O_RDWR|unix.O_APPEND|unix.O_CREAT); err != nil {
		return files{}, err
	}
	if f.head, err = openOurs(d, headName, unix.O_RDWR|unix.O_CREAT); err != nil {
		return files{}, errors.Join(err, f.log.Close())
	}
	var err1, err2 error
	f.logID, err1 = idOf(f.log)
	f.headID, err2 = idOf(f.head)
	if err := errors.Join(err1, err2); err != nil {
		return files{}, errors.Join(err, f.close())
	}
	return f, nil
}

// inPlace reports whether the files are still the ones found at their names.
func (f files) inPlace(dir string) bool {
	return f.logID.at(filepath.Join(dir, logName)) && f.headID.at(filepath.Join(dir, headName))
}

// A fileID tells a file from all others as long as it is open.
type fileID struct{ device, inode uint64 }

func idOf(f *os.File) (fileID, error) {
	var st unix.Stat_t
	err := unix.Fstat(int(f.Fd()), &st)
	return fileID{uint64(st.Dev), st.Ino}, err
}

// at reports whether the file at path is this one, and no link to it.
func (id fileID) at(path string) bool {
	var st unix.Stat_t
	err := unix.Lstat(path, &st)
	return err == nil && id == fileID{uint64(st.Dev), st.Ino} //nolint:unconvert // of another type elsewhere
}

func sameFile(f *os.File, path string) bool {
	id, err := idOf(f)
	return err == nil && id.at(path)
}

// openOurs opens a file in dir that belongs to the user only.
func openOurs(dir *os.File, name string, flags int) (*os.File, error) {
	f, err := openAt(int(dir.Fd()), name, filepath.Join(dir.Name(), name), flags)
	if err != nil {
		return nil, err
	}
	if err := checkOurs(f, 0, 0o177); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// openAt is openat(2), never through a symbolic link in the last place. Errors
// call the file path.
func openAt(dir int, name, path string, flags int) (*os.File, error) {
	for {
		fd, err := unix.Openat(dir, name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		switch {
		case err == nil:
			return os.NewFile(uintptr(fd), path), nil
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTDIR):
			return nil, fmt.Errorf("%q is a symbolic link or no directory; want the thing itself: %w", path, err)
		}
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
}

// checkOurs refuses a file that is of another type, belongs to another user,
// has one of the permissions in forbidden or, a regular file, has a second
// name.
func checkOurs(f *os.File, kind fs.FileMode, forbidden fs.FileMode) error {
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	st := fi.Sys().(*syscall.Stat_t)
	switch {
	case fi.Mode().Type() != kind:
		return fmt.Errorf("%q is a %v; want a regular file in a directory", f.Name(), fi.Mode().Type())
	case int(st.Uid) != os.Geteuid():
		return fmt.Errorf("%q belongs to user %d; want %d; move it away or become its owner", f.Name(), st.Uid, os.Geteuid())
	case fi.Mode().Perm()&forbidden != 0:
		return fmt.Errorf("%q has mode %#o; want no more than %#o; change it with chmod", f.Name(), fi.Mode().Perm(), 0o777&^forbidden)
	case kind == 0 && st.Nlink > 1:
		return fmt.Errorf("%q has %d names; want one; remove the others", f.Name(), st.Nlink)
	}
	return nil
}

const (
	shared    = unix.LOCK_SH
	exclusive = unix.LOCK_EX

	lockWait = 10 * time.Second // then something holds the lock that should not
)

// lock takes the flock(2) of f. It tries rather than blocks, so that ctx can
// end the wait; a ctx that has ended does not keep from a free lock.
func lock(ctx context.Context, f *os.File, how int) error {
	if unix.Flock(int(f.Fd()), how|unix.LOCK_NB) == nil {
		return nil // as nearly always
	}
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	for pause := 20 * time.Microsecond; ; pause = min(2*pause, 2*time.Millisecond) {
		err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("can't be locked: %w", err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("is locked by another process: %w", ctx.Err())
		case <-time.After(pause):
		}
	}
}

// unlock can fail only on a file that is closed, and then there is no lock.
func unlock(f *os.File) { _ = unix.Flock(int(f.Fd()), unix.LOCK_UN) }
