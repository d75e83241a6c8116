package shim

import (
	"time"

	"golang.org/x/sys/unix"
)

// Requests for a terminal's settings; to set them waits for no output.
const (
	getSettings = unix.TCGETS
	setSettings = unix.TCSETS
)

const hangsUp = unix.POLLHUP | unix.POLLRDHUP | unix.POLLERR

func dup(from, to int) error { return unix.Dup3(from, to, 0) }

// closed waits a little for fd's writers to be gone. Their output may still be
// there.
func closed(fd int, patience time.Duration) bool {
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
	n, err := unix.Poll(p, int(patience.Milliseconds()))
	return err == nil && n > 0 && p[0].Revents&hangsUp != 0
}
