//go:build unix

package devices

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// check says why the node of that name is not what its name says, "" if it is.
func (k kind) check(dir, name string) string {
	info, err := os.Lstat(filepath.Join(dir, name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "does not exist below " + dir
	case err != nil:
		return "can't be looked at: " + err.Error()
	case info.Mode().Type() != fs.ModeDevice|fs.ModeCharDevice:
		return "is no character device"
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || runtime.GOOS != "linux" { // the numbers are those of Linux
		return "is not known on this system"
	}
	n, _ := k.number(name)
	return k.numbers(n, unix.Major(uint64(st.Rdev)), unix.Minor(uint64(st.Rdev))) //nolint:unconvert // it has another type on other systems
}

// numbers compares those of a node with those of its kind.
func (k kind) numbers(n int, major, minor uint32) string {
	want := k.minor
	if want == byName {
		want = n
	}
	right := want == anyMinor || int64(minor) == int64(want)
	if k.major == 0 && dynamic(major) && right || k.major != 0 && major == k.major && right {
		return ""
	}
	return fmt.Sprintf("is another device than its name says (%d:%d)", major, minor)
}

// dynamic reports whether a major number is one of those that drivers get when
// they are loaded (devices.txt, "RESERVED FOR DYNAMIC ASSIGNMENT").
func dynamic(major uint32) bool { return major >= 234 && major <= 254 || major >= 384 && major <= 511 }

// unknown says why a name that has no kind is refused.
func unknown(path string) string {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "does not exist below " + Dir
	case info.Mode()&fs.ModeDevice == 0:
		return "is no device"
	case info.Mode()&fs.ModeCharDevice == 0:
		return "is a disk, which holds all that a session must not see"
	}
	return "is not of a kind that a session may have: what it does reaches beyond the session"
}
