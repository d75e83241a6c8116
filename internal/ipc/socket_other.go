//go:build !linux

package ipc

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	socketFlags = 0
	sendFlags   = 0
)

func closeOnExec(fds []int) {
	for _, fd := range fds {
		unix.CloseOnExec(fd)
	}
}

// receive is recvmsg(2). No program is started between the arrival of
// descriptors and their being closed on exec.
func receive(fd int, b, oob []byte) (n, oobn, flags int, err error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	for {
		n, oobn, flags, _, err = unix.Recvmsg(fd, b, oob, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		var fds []int
		if err == nil && takeFDs(oob[:oobn], &fds) == nil {
			closeOnExec(fds)
		}
		return max(n, 0), oobn, flags, err
	}
}
