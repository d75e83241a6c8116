package dockerapi

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// A copier brings what the guest sees into a directory of Bawn's own. The
// engine resolves the source of a mount by its path, later and as root: a path
// that the guest can rename or link would lead it anywhere.
type copier struct {
	guest string                // what is copied, for messages
	take  func(more load) error // reserves what will be written
}

// maxCopyDepth bounds directories within each other: each is open while what is
// below it is copied.
const maxCopyDepth = 100

// A guest's path is opened with its own links followed, but not those of /proc.
const resolve = unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS

// copyIn copies the file or directory that the guest calls by an absolute path
// to to, which is not there yet. Each file, directory and link is asked of take
// before it is made, and so are bytes.
func (v View) copyIn(guest, to string, take func(more load) error) error {
	if err := v.covers(guest); err != nil {
		return err
	}
	root, err := v.Open()
	if err != nil {
		return fmt.Errorf("see what the guest sees: %w", err)
	}
	defer root.Close()
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: resolve}
	fd, err := unix.Openat2(int(root.Fd()), guest, &how)
	if err != nil {
		return refuse(RuleMount, "mount what exists", "%.200q can't be opened: %v", guest, err)
	}
	f := os.NewFile(uintptr(fd), guest)
	defer f.Close()
	if err := v.within(root, f, guest); err != nil {
		return err
	}
	c := &copier{guest: guest, take: take}
	if err := take(load{entries: 1}); err != nil {
		return err
	}
	return c.copy(fd, to, 0)
}

// within checks where links have led. It refuses a place of the guest from which
// nothing may be mounted, under every name of that place.
func (v View) within(root, f *os.File, guest string) error {
	base, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", root.Fd()))
	if err != nil {
		return err
	}
	real, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil {
		return err
	}
	inner, ok := strings.CutPrefix(real, strings.TrimSuffix(base, "/"))
	if !ok || v.covers("/"+strings.TrimPrefix(inner, "/")) != nil {
		return refuse(RuleMount, "mount something of the workspace", "%.200q leads out of the workspace", guest)
	}
	return nil
}

// copy copies what fd, which may be O_PATH, is, so many directories deep.
func (c *copier) copy(fd int, to string, depth int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return c.directory(fd, to, os.FileMode(st.Mode&0o777), depth)
	case unix.S_IFREG:
		return c.file(fd, to, os.FileMode(st.Mode&0o777))
	}
	return refuse(RuleMount, "mount a file or a directory", "%.200q is neither a file nor a directory", c.guest)
}

// reopen opens what an O_PATH descriptor stands for.
func reopen(fd, flags int) (*os.File, error) {
	name := fmt.Sprintf("/proc/self/fd/%d", fd)
	real, err := unix.Open(name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC|flags, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(real), name), nil
}

func (c *copier) file(fd int, to string, mode os.FileMode) error {
	from, err := reopen(fd, 0)
	if err != nil {
		return refuse(RuleMount, "", "%.200q holds what can't be read: %v", c.guest, err)
	}
	defer from.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(&metered{out, c.take}, from)
	return errors.Join(err, out.Chmod(mode), out.Close())
}

// directory leaves its owner the right to write in it, whatever the guest's mode
// is: otherwise only root could remove the copy.
func (c *copier) directory(fd int, to string, mode os.FileMode, depth int) error {
	if depth >= maxCopyDepth {
		return refuse(RuleLimit, "mount something below", "%.200q holds more than %d directories within each other", c.guest, maxCopyDepth)
	}
	dir, err := reopen(fd, unix.O_DIRECTORY)
	if err != nil {
		return refuse(RuleMount, "", "%.200q holds what can't be read: %v", c.guest, err)
	}
	defer dir.Close()
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	for {
		names, err := dir.Readdirnames(256)
		for _, name := range names {
			if err := c.entry(int(dir.Fd()), name, filepath.Join(to, name), depth+1); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return os.Chmod(to, mode|0o700)
		}
		if err != nil {
			return err
		}
	}
}

// entry copies one name of a directory. Links stay links, which lead where
// they lead in the container; sockets, pipes and devices are left out, and so
// is what is gone meanwhile. They count all the same: each has to be looked at.
func (c *copier) entry(dir int, name, to string, depth int) error {
	if err := c.take(load{entries: 1}); err != nil {
		return err
	}
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS}
	fd, err := unix.Openat2(dir, name, &how)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return refuse(RuleMount, "", "%.200q holds what can't be opened: %v", c.guest, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR, unix.S_IFREG:
		return c.copy(fd, to, depth)
	case unix.S_IFLNK:
		target := make([]byte, unix.PathMax)
		n, err := unix.Readlinkat(fd, "", target)
		if err != nil {
			return err
		}
		return os.Symlink(string(target[:n]), to)
	}
	return nil
}
