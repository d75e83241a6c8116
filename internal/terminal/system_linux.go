package terminal

import (
	"fmt"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/linux/sigcatch"
)

const getTermios = unix.TCGETS

// ptmxDevice is /dev/ptmx, 5:2 (Documentation/admin-guide/devices.txt).
const ptmxDevice = 5<<8 | 2

// reopenNames returns the descriptor's own name, which works in any mount
// namespace.
func reopenNames(fd int) []string { return []string{fmt.Sprintf("/proc/self/fd/%d", fd)} }

// pollOnce is poll, which a signal ends with EINTR.
func pollOnce(fd int, events int16, wake int, timeout time.Duration) (ready, woken bool, err error) {
	fds := [2]unix.PollFd{{Fd: int32(fd), Events: events}, {Fd: int32(wake), Events: unix.POLLIN}}
	ms := -1
	if timeout >= 0 {
		ms = int(timeout.Milliseconds())
	}
	_, err = unix.Poll(fds[:], ms)
	return fds[0].Revents != 0, fds[1].Revents != 0, err
}

// hungUp tells the end of a terminal from a read that returned nothing for
// another reason, such as somebody's VMIN of 0.
func hungUp(fd int) bool {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	_, err := unix.Poll(fds, 0)
	return err == nil && fds[0].Revents&(unix.POLLHUP|unix.POLLERR) != 0
}

// follow has a signal sent to ch until stop is called.
func follow(ch chan os.Signal, s unix.Signal) (stop func()) {
	if stop, err := sigcatch.Also(s, ch); err == nil {
		return stop
	}
	signal.Notify(ch, s)
	return func() { signal.Stop(ch) }
}
