package shim

import (
	"time"

	"golang.org/x/sys/unix"
)

// Requests for a terminal's settings; to set them waits for no output.
const (
	getSettings = unix.TIOCGETA
	setSettings = unix.TIOCSETA
)

func dup(from, to int) error { return unix.Dup2(from, to) }

// closed waits a little for fd's writers to be gone. Their output may still be
// there.
func closed(fd int, patience time.Duration) bool {
	p := []unix.PollFd{{Fd: int32(fd)}}
	n, err := unix.Poll(p, int(patience.Milliseconds()))
	return err == nil && n > 0 && p[0].Revents&unix.POLLHUP != 0
}
