package ipc

import (
	"errors"

	"golang.org/x/sys/unix"
)

const (
	socketFlags = unix.SOCK_CLOEXEC
	sendFlags   = unix.MSG_NOSIGNAL
)

// closeOnExec has nothing left to do: socketpair(2) and recvmsg(2) have flags.
func closeOnExec([]int) {}

// receive is recvmsg(2); descriptors that arrive are closed on exec.
func receive(fd int, b, oob []byte) (n, oobn, flags int, err error) {
	for {
		n, oobn, flags, _, err = unix.Recvmsg(fd, b, oob, unix.MSG_CMSG_CLOEXEC)
		if !errors.Is(err, unix.EINTR) {
			return max(n, 0), oobn, flags, err
		}
	}
}
