//go:build linux || darwin

package hooksetup

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// keepOwner gives a file the owner of the one that it is to replace, which
// matters to root alone.
func keepOwner(f *os.File, was fs.FileInfo) error {
	old, ok := was.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("%q: its owner is not known", was.Name())
	}
	if int(old.Uid) == os.Geteuid() && int(old.Gid) == os.Getegid() {
		return nil
	}
	if err := f.Chown(int(old.Uid), int(old.Gid)); err != nil {
		return fmt.Errorf("it belongs to user %d and group %d, which could not be kept: %w", old.Uid, old.Gid, err)
	}
	return nil
}

// RootAlone is an error where somebody else than root could put another program
// in the place of one, or exchange a directory on the way to it.
func RootAlone(program string) error {
	real, err := filepath.EvalSymlinks(program)
	if err != nil {
		return err
	}
	for _, path := range []string{program, real} { // the links' own directories count as well
		for at := path; ; at = filepath.Dir(at) {
			if err := rootOwns(at); err != nil {
				return err
			}
			if at == filepath.Dir(at) {
				break
			}
		}
	}
	return nil
}

// othersWrite are the permissions of a group and of everybody.
const othersWrite = 0o022

func rootOwns(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	sys, ok := info.Sys().(*syscall.Stat_t)
	switch mode := info.Mode(); {
	case !ok || sys.Uid != 0:
		return fmt.Errorf("%q does not belong to root", path)
	case mode&fs.ModeSymlink != 0: // its permissions say nothing
	case mode.Perm()&othersWrite != 0 && mode&fs.ModeSticky == 0:
		return fmt.Errorf("%q can be written by others than root (mode %v)", path, mode.Perm())
	}
	return nil
}
