package kernel

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// OpenTerminal opens a pseudo-terminal in the /dev/pts below root, which is an
// O_PATH of a guest's "/".
func OpenTerminal(root *os.File) (master, slave *os.File, err error) {
	how := unix.OpenHow{Flags: unix.O_RDWR | unix.O_NOCTTY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	m, err := unix.Openat2(int(root.Fd()), "/dev/pts/ptmx", &how)
	if err != nil {
		return nil, nil, fmt.Errorf("open the guest's /dev/pts/ptmx: %w", err)
	}
	if err := unix.IoctlSetPointerInt(m, unix.TIOCSPTLCK, 0); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("unlock the terminal: %w", err), unix.Close(m))
	}
	s, err := terminalPeer(m)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("open the terminal's other side: %w", err), unix.Close(m))
	}
	return os.NewFile(uintptr(m), "ptmx"), os.NewFile(uintptr(s), "pts"), nil
}

// terminalPeer opens the slave of a pseudo-terminal by its master, in whatever
// devpts that is (TIOCGPTPEER, ioctl_tty(2)).
func terminalPeer(master int) (int, error) {
	fd, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(master), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}
