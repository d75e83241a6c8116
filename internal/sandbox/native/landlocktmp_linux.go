package native

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// tmpPrefix begins the names of temporary directories of sessions without mounts;
// the session's ID follows.
const tmpPrefix = "bawn-"

// holdTmp makes the temporary directory of a session and locks it, as long as this
// process lives. Another session may sweep it before it is locked: then it is made
// again.
func holdTmp(dir string) (f *os.File, err error) {
	for try := range 3 {
		if err = os.Mkdir(dir, 0o700); err != nil && (try == 0 || !errors.Is(err, os.ErrExist)) {
			return nil, err
		}
		if f, err = openTmp(dir); err != nil {
			continue
		}
		if there, err := os.Lstat(dir); err == nil {
			if held, err := f.Stat(); err == nil && os.SameFile(there, held) {
				return f, nil
			}
		}
		err = errors.Join(errors.New("it was removed meanwhile"), f.Close())
	}
	return nil, err
}

// openTmp opens and locks such a directory, unless somebody holds it or it is not
// this user's own.
func openTmp(dir string) (*os.File, error) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	f := os.NewFile(uintptr(fd), dir)
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil && int(st.Uid) != os.Geteuid() {
		err = unix.EPERM
	}
	if err == nil {
		err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
	}
	if err != nil {
		return nil, errors.Join(&os.PathError{Op: "lock", Path: dir, Err: err}, f.Close())
	}
	return f, nil
}

// sweepTmp removes those of sessions that were killed.
func sweepTmp(parent string) {
	found, _ := filepath.Glob(filepath.Join(parent, tmpPrefix+"*")) // the pattern is one
	for _, dir := range found {
		if !sessionID(strings.TrimPrefix(filepath.Base(dir), tmpPrefix)) {
			continue
		}
		if f, err := openTmp(dir); err == nil {
			_ = os.RemoveAll(dir) // or the next one does
			f.Close()
		}
	}
}

// sessionID reports whether name has the form of a session's ID: other programs,
// and other parts of Bawn, have temporary directories as well.
func sessionID(name string) bool {
	return len(name) == 26 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz234567") == ""
}
