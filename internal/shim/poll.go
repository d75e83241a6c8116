//go:build linux || darwin

package shim

import (
	"time"

	"golang.org/x/sys/unix"
)

// waiting reports whether a read of fd would not wait.
func waiting(fd int) bool { return waitFor(fd, 0) }

func waitFor(fd int, d time.Duration) bool {
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(p, int(d.Milliseconds()))
	return err == nil && n > 0
}
