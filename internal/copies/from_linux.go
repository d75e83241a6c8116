package copies

import (
	"errors"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// GoOn fills an empty copy with what another one's session has changed, and returns how
// much that is. Where the file system can, both share the files' blocks. The locks of
// both must be held.
func (c *Copy) GoOn(from *Copy) (files int, bytes int64, err error) {
	src, err := from.upper()
	if err != nil {
		return 0, 0, err
	}
	defer src.Close()
	dst, err := c.upper()
	if err != nil {
		return 0, 0, err
	}
	defer dst.Close()
	d := &duplicator{}
	info, err := src.Stat()
	if err == nil {
		err = d.directory(int(src.Fd()), int(dst.Fd()))
	}
	if err == nil {
		err = errors.Join(attributes(int(src.Fd()), int(dst.Fd())), dst.Chmod(info.Mode()))
	}
	return d.files, d.bytes, err
}

// A duplicator copies a layer. It follows no link.
type duplicator struct {
	files int
	bytes int64
}

const (
	readOnly = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	dirOnly  = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_DIRECTORY | unix.O_CLOEXEC
)

// directory copies all names of a directory.
func (d *duplicator) directory(src, dst int) error {
	again, err := unix.Openat(src, ".", dirOnly, 0)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(again), "layer")
	names, err := f.Readdirnames(-1)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	for _, name := range names {
		if err := d.name(src, dst, name); err != nil {
			return &os.PathError{Op: "copy", Path: name, Err: err}
		}
	}
	return nil
}

// name copies one name.
func (d *duplicator) name(src, dst int, name string) error {
	var st unix.Stat_t
	if err := unix.Fstatat(src, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	d.files++
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		d.files--
		return d.opened(src, dst, name, &st, func(from int) (int, error) {
			if err := unix.Mkdirat(dst, name, 0o700); err != nil {
				return -1, err
			}
			to, err := unix.Openat(dst, name, dirOnly, 0)
			if err == nil {
				err = d.directory(from, to)
			}
			return to, err
		})
	case unix.S_IFREG:
		return d.opened(src, dst, name, &st, func(from int) (int, error) {
			to, err := unix.Openat(dst, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
			if err == nil {
				err = d.content(from, to)
			}
			return to, err
		})
	case unix.S_IFLNK:
		return link(src, dst, name)
	case unix.S_IFIFO:
		return unix.Mkfifoat(dst, name, st.Mode&0o777)
	case unix.S_IFCHR:
		if st.Rdev == 0 { // a name that is gone
			return unix.Mknodat(dst, name, unix.S_IFCHR, 0)
		}
	}
	d.files--
	return nil // a socket; the kernel makes no device for a guest
}

// opened opens a name, has it copied, and gives the copy its mode and times. A name that
// its owner can't read is opened meanwhile.
func (d *duplicator) opened(src, dst int, name string, st *unix.Stat_t, make func(from int) (int, error)) error {
	from, err := unix.Openat(src, name, readOnly, 0)
	if errors.Is(err, unix.EACCES) {
		if err = unix.Fchmodat(src, name, st.Mode&0o777|0o700, 0); err != nil {
			return err
		}
		defer unix.Fchmodat(src, name, st.Mode&0o7777, 0)
		from, err = unix.Openat(src, name, readOnly, 0)
	}
	if err != nil {
		return err
	}
	defer unix.Close(from)
	to, err := make(from)
	if to >= 0 {
		defer unix.Close(to)
	}
	if err != nil {
		return err
	}
	if err := attributes(from, to); err != nil {
		return err
	}
	if int(st.Uid) != os.Geteuid() || int(st.Gid) != os.Getegid() {
		_ = unix.Fchown(to, int(st.Uid), int(st.Gid)) // only root can
	}
	if err := unix.Fchmod(to, st.Mode&0o7777); err != nil {
		return err
	}
	return unix.UtimesNanoAt(dst, name, []unix.Timespec{st.Atim, st.Mtim}, unix.AT_SYMLINK_NOFOLLOW)
}

// content copies an open file.
func (d *duplicator) content(from, to int) error {
	if unix.IoctlFileClone(to, from) == nil {
		return nil
	}
	in, err := reopened(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := reopened(to)
	if err != nil {
		return err
	}
	defer out.Close()
	n, err := io.Copy(out, in)
	d.bytes += n
	return err
}

// reopened returns a file of its own for a descriptor.
func reopened(fd int) (*os.File, error) {
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(own), "file of a layer"), nil
}

func link(src, dst int, name string) error {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(src, name, buf)
	if err != nil {
		return err
	}
	return unix.Symlinkat(string(buf[:n]), dst, name)
}

// attributes copies extended attributes. Of the kernel's marks only that of a directory
// counts which hides the one below; the others are about files of the old layer.
func attributes(from, to int) error {
	buf := make([]byte, 64<<10)
	n, err := unix.Flistxattr(from, buf)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return nil
	}
	if err != nil {
		return err
	}
	for name := range strings.SplitSeq(string(buf[:n]), "\x00") {
		if !strings.HasPrefix(name, "user.") || strings.HasPrefix(name, "user.overlay.") && name != "user.overlay.opaque" {
			continue
		}
		value := make([]byte, 64<<10)
		n, err := unix.Fgetxattr(from, name, value)
		if err == nil {
			err = unix.Fsetxattr(to, name, value[:n], 0)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
