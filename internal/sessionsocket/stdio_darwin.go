package sessionsocket

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// fionread asks how many bytes can be read (tty(4)).
const fionread = 0x4004667f

func onlyNames(int) bool { return false }

// anonymous is false: nothing here says that a pipe has no name, so all are
// pumped.
func anonymous(int) bool { return false }

func ofKernel(int) bool { return false }

func isNull(device uint64) bool { return device == unix.Mkdev(3, 2) }

// reopen is not possible: there is no /proc.
func reopen(*os.File, int) (*os.File, error) { return nil, errors.ErrUnsupported }

func pipe() (r, w int, err error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	var p [2]int
	if err := unix.Pipe(p[:]); err != nil {
		return 0, 0, err
	}
	unix.CloseOnExec(p[0])
	unix.CloseOnExec(p[1])
	return p[0], p[1], nil
}

func unread(fd int) int {
	n, err := unix.IoctlGetInt(fd, fionread)
	if err != nil {
		return 0
	}
	return n
}

func receiveNow(fd int, b []byte) (int, error) {
	n, _, err := unix.Recvfrom(fd, b, unix.MSG_DONTWAIT)
	return n, err
}

func sendNow(fd int, b []byte) (int, error) {
	return unix.SendmsgN(fd, b, nil, nil, unix.MSG_DONTWAIT)
}

func slave(uint64) bool { return false }
