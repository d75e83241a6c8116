package supervise

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// sysFchmodat2 is fchmodat2(2), which x/sys/unix has on some architectures only.
const sysFchmodat2 = 452

// chmodAt carries out a chmod with the set-group-ID bit: for a directory, whose new
// files then have its group. On a file the bit would leave a program that runs with
// its group's rights.
func (c *call) chmodAt(dirfd int32, addr uint64, mode uint32, flags int) error {
	if flags&^unix.AT_SYMLINK_NOFOLLOW != 0 {
		return unix.EPERM
	}
	abs, err := c.path(dirfd, addr)
	if err != nil {
		return err
	}
	how := uint64(0)
	if flags != 0 {
		how = unix.O_NOFOLLOW
	}
	fd, err := c.openPath(abs, how)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return chmodDirectory(fd, mode)
}

// chmodOpen is chmodAt for a descriptor of the caller's.
func (c *call) chmodOpen(n int, mode uint32) error {
	fd, err := c.socket(n)
	if err != nil {
		return unix.EBADF
	}
	defer unix.Close(fd)
	return chmodDirectory(fd, mode)
}

// chmodDirectory sets the mode of what fd refers to, with what this thread may, which is
// no more than the caller may. It is looked at and changed by the same descriptor.
func chmodDirectory(fd int, mode uint32) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return unix.EPERM
	}
	return unix.Fchmodat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(fd), mode&(0o1777|unix.S_ISGID), 0)
}
