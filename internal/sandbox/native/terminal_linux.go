package native

import "golang.org/x/sys/unix"

// terminalPeer opens the slave of a pseudo-terminal by its master, in whatever
// devpts that is (TIOCGPTPEER, ioctl_tty(2)).
func terminalPeer(master int) (int, error) {
	fd, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(master), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}
