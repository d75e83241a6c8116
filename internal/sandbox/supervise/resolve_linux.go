package supervise

import (
	"errors"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// Every path is resolved on the guest's own tree, from its root and never above
// it. Links of /proc are never followed: they depend on the resolving process.
const resolveGuest = unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS

// maxLinks is how many symbolic links the kernel follows (path_resolution(7)).
const maxLinks = 40 + 1

// a place is a name in a directory of the guest.
type place struct {
	dir  int    // O_PATH, to be closed
	name string // the last component, never "", "." or ".."
	abs  string // the directory's real path, a slash, the name
	// slash says that the caller's path ended in one: it means a directory.
	slash bool
}

func (p place) close() { unix.Close(p.dir) }

// path reads the caller's path argument and makes it absolute.
func (c *call) path(dirfd int32, addr uint64) (string, error) {
	p, err := c.str(addr)
	if err != nil {
		return "", err
	}
	if p == "" {
		return "", unix.ENOENT
	}
	if path.IsAbs(p) {
		return c.expand(p)
	}
	base, err := c.base(dirfd)
	if err != nil {
		return "", err
	}
	return c.expand(base + "/" + p)
}

// expand replaces a start of a path that means the caller itself: its working
// directory, its root, a directory that it has open.
func (c *call) expand(p string) (string, error) {
	rest, ok := strings.CutPrefix(p, "/dev/fd/")
	if ok {
		rest = "fd/" + rest
	}
	for _, self := range []string{"/proc/self/", "/proc/thread-self/"} {
		if r, is := strings.CutPrefix(p, self); is {
			rest, ok = r, true
		}
	}
	if r, is := strings.CutPrefix(p, "/proc/"); is && !ok && r != "" && r[0] >= '1' && r[0] <= '9' {
		if own, is := strings.CutPrefix(r, c.ownPID()+"/"); is {
			rest, ok = own, true
		}
	}
	if !ok {
		return p, nil
	}
	name, rest, _ := strings.Cut(rest, "/")
	switch name {
	case "root":
		return "/" + rest, nil
	case "cwd":
		base, err := c.base(unix.AT_FDCWD)
		return base + "/" + rest, err
	case "fd":
		number, below, deeper := strings.Cut(rest, "/")
		if n, is := descriptorNumber(number); is && deeper && below != "" {
			base, err := c.base(int32(n))
			return base + "/" + below, err
		}
	}
	return p, nil
}

// openPath opens abs as O_PATH on the guest's tree.
func (c *call) openPath(abs string, flags uint64) (int, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | flags, Resolve: resolveGuest}
	for {
		fd, err := unix.Openat2(c.s.root, abs, &how)
		if err == unix.EINTR || err == unix.EAGAIN { // a rename raced with ".."
			continue
		}
		return fd, err
	}
}

// realPath is where an open descriptor lies in the guest.
func realPath(fd int) (string, error) {
	p, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
	if err != nil {
		return "", unix.EACCES
	}
	return p, nil
}

// errNoName is what place returns for "/", "." and "..", which each call has
// an errno of its own for.
var errNoName = errors.New("no name to create or remove")

// named translates errNoName.
func named(err error, otherwise unix.Errno) error {
	if err == errNoName {
		return otherwise
	}
	return err
}

// place resolves all but the last component of abs.
func (c *call) place(abs string) (place, error) {
	trimmed := strings.TrimRight(abs, "/")
	dir, name := path.Split(trimmed)
	if name == "" {
		return place{}, errNoName
	}
	fd, err := c.openPath(dir, unix.O_DIRECTORY)
	if err != nil {
		return place{}, err
	}
	if name == "." || name == ".." {
		unix.Close(fd)
		return place{}, errNoName
	}
	real, err := realPath(fd)
	if err != nil {
		unix.Close(fd)
		return place{}, err
	}
	return place{dir: fd, name: name, abs: path.Join(real, name), slash: len(trimmed) != len(abs)}, nil
}

// placeOf is place for a path argument of the call.
func (c *call) placeOf(dirfd int32, addr uint64) (place, error) {
	abs, err := c.path(dirfd, addr)
	if err != nil {
		return place{}, err
	}
	return c.place(abs)
}

// stat returns the status of the place itself, links not followed.
func (p place) stat() (unix.Stat_t, error) {
	var st unix.Stat_t
	err := unix.Fstatat(p.dir, p.name, &st, unix.AT_SYMLINK_NOFOLLOW)
	return st, err
}

func (p place) unlink() error { return unix.Unlinkat(p.dir, p.name, 0) }

// A fileID tells a file from any other, also from a later one with the same
// inode number. The birth time belongs to it where the file system keeps that
// (statx(2)).
type fileID struct {
	dev, ino  uint64
	sec, nsec int64
}

// identify returns the identity and the mode of the file that an open directory
// holds under name, links not followed, or of dir itself if name is "".
func identify(dir int, name string) (fileID, uint32, error) {
	var st unix.Statx_t
	err := unix.Statx(dir, name, unix.AT_EMPTY_PATH|unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &st)
	return idOf(&st), uint32(st.Mode), err
}

func idOf(st *unix.Statx_t) fileID {
	return fileID{dev: unix.Mkdev(st.Dev_major, st.Dev_minor), ino: st.Ino, sec: st.Btime.Sec, nsec: int64(st.Btime.Nsec)}
}

// mounted reports whether something is mounted on the place in the guest. The
// kernel protects such a place from rename and removal only within the same
// mount namespace, which is not this process's. Here the mount would silently
// go away, and with it what it hid or protected.
func (p place) mounted() bool {
	var dir, entry unix.Statx_t
	if err := unix.Statx(p.dir, p.name, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, unix.STATX_MNT_ID, &entry); err != nil {
		return err != unix.ENOENT
	}
	err := unix.Statx(p.dir, "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID, &dir)
	return err != nil || dir.Mask&entry.Mask&unix.STATX_MNT_ID == 0 || dir.Mnt_id != entry.Mnt_id
}

// fixed errs with EBUSY if a place may not be moved or replaced because
// something is mounted on it, or, as a whole directory, below it.
func (c *call) fixed(p place) error {
	if p.mounted() || slices.ContainsFunc(c.s.targets, func(t string) bool { return layout.Below(t, p.abs) }) {
		return unix.EBUSY
	}
	return nil
}

// link returns the target of a symbolic link at the place, absolute.
func (p place) link() (string, bool) {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(p.dir, p.name, buf)
	if err != nil || n == 0 {
		return "", false
	}
	target := string(buf[:n])
	if path.IsAbs(target) {
		return target, true
	}
	return path.Dir(p.abs) + "/" + target, true
}

// descriptorPath recognises the spellings of "my own descriptor N": /dev/stdin
// and its like, /dev/fd/N, /proc/self/fd/N and the forms with a number.
func (c *call) descriptorPath(abs string) (int, bool) {
	clean := path.Clean(abs)
	switch clean {
	case "/dev/stdin":
		return 0, true
	case "/dev/stdout":
		return 1, true
	case "/dev/stderr":
		return 2, true
	}
	for _, prefix := range []string{"/dev/fd/", "/proc/self/fd/", "/proc/thread-self/fd/"} {
		if n, ok := strings.CutPrefix(clean, prefix); ok {
			return descriptorNumber(n)
		}
	}
	rest, ok := strings.CutPrefix(clean, "/proc/")
	if !ok {
		return 0, false
	}
	pid, n, ok := strings.Cut(rest, "/fd/")
	if !ok || pid != c.ownPID() {
		return 0, false
	}
	return descriptorNumber(n)
}

func descriptorNumber(s string) (int, bool) {
	n, err := strconv.ParseUint(s, 10, 31)
	return int(n), err == nil
}

// ownPID is the caller's process id as the guest sees it.
func (c *call) ownPID() string {
	text, err := c.status("NStgid")
	if err != nil {
		return ""
	}
	fields := strings.Fields(text)
	return fields[len(fields)-1]
}

// reopen opens the file of an O_PATH descriptor.
func reopen(fd, flags int, mode uint32) (int, error) {
	return unix.Open("/proc/self/fd/"+strconv.Itoa(fd), flags|unix.O_CLOEXEC, mode)
}
