package sessionsocket

import (
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// onlyNames reports whether the flags are those of a descriptor which nothing
// can be done with but to name a place (open(2), O_PATH).
func onlyNames(flags int) bool { return flags&unix.O_PATH != 0 }

// anonymous reports whether a pipe has no name in any directory: it lives in
// the kernel's own file system for pipes, from which nothing else can be
// reached.
func anonymous(fd int) bool {
	var fs unix.Statfs_t
	return unix.Fstatfs(fd, &fs) == nil && fs.Type == unix.PIPEFS_MAGIC
}

// ofKernel reports whether a file stands for something of the kernel's. A file system that
// can't be told counts as one.
func ofKernel(fd int) bool {
	var fs unix.Statfs_t
	if unix.Fstatfs(fd, &fs) != nil {
		return true
	}
	switch fs.Type {
	case unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC, unix.DEBUGFS_MAGIC, unix.TRACEFS_MAGIC,
		unix.SECURITYFS_MAGIC, unix.SELINUX_MAGIC, unix.SMACK_MAGIC, unix.BPF_FS_MAGIC, unix.EFIVARFS_MAGIC, unix.PSTOREFS_MAGIC, unix.RDTGROUP_SUPER_MAGIC:
		return true
	}
	return false
}

func isNull(device uint64) bool { return device == unix.Mkdev(1, 3) }

// slave reports whether a terminal is one of the kernel's list of devices that
// stands for the guest's side of a pseudo-terminal. To open another anew, such
// as /dev/tty, would open the session socket's own.
func slave(device uint64) bool { return unix.Major(device) >= 136 && unix.Major(device) <= 143 }

// reopen opens a descriptor's file once more, without blocking, so that the
// guest's own descriptor stays unchanged.
func reopen(f *os.File, flags int) (*os.File, error) {
	var again *os.File
	err := control(f, func(fd int) error {
		name := "/proc/self/fd/" + strconv.Itoa(fd)
		n, err := unix.Open(name, flags|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		if err == nil {
			again = os.NewFile(uintptr(n), "guest")
		}
		return err
	})
	return again, err
}

// pipe makes a pipe of which the command's side blocks, as programs expect,
// and the session socket's side does not.
func pipe() (r, w int, err error) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return 0, 0, err
	}
	return p[0], p[1], nil
}

// unread is how many bytes of a pipe nobody has read.
func unread(fd int) int {
	n, err := unix.IoctlGetInt(fd, unix.TIOCINQ) // FIONREAD
	if err != nil {
		return 0
	}
	return n
}

// receiveNow is recv(2) that does not wait, and sendNow send(2).
func receiveNow(fd int, b []byte) (int, error) {
	n, _, err := unix.Recvfrom(fd, b, unix.MSG_DONTWAIT)
	return n, err
}

func sendNow(fd int, b []byte) (int, error) {
	n, err := unix.SendmsgN(fd, b, nil, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
	if errors.Is(err, unix.ENOTCONN) {
		err = unix.EPIPE
	}
	return n, err
}
