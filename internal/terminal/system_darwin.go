package terminal

import (
	"fmt"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"
)

const getTermios = unix.TIOCGETA

// ptmxDevice is /dev/ptmx, 15:0.
const ptmxDevice = 15 << 24

// reopenNames returns nothing: opening /dev/fd/N duplicates the descriptor
// instead of opening what it is.
func reopenNames(int) []string { return nil }

// pollOnce is poll, which a signal ends with EINTR. It uses select(2), since
// poll(2) doesn't support terminals here.
func pollOnce(fd int, events int16, wake int, timeout time.Duration) (ready, woken bool, err error) {
	if fd >= unix.FD_SETSIZE || wake >= unix.FD_SETSIZE {
		return false, false, fmt.Errorf("descriptor %d is too large for select", max(fd, wake))
	}
	var read, write unix.FdSet
	if events&unix.POLLOUT != 0 {
		write.Set(fd)
	} else {
		read.Set(fd)
	}
	if wake >= 0 {
		read.Set(wake)
	}
	var limit *unix.Timeval
	if timeout >= 0 {
		tv := unix.NsecToTimeval(timeout.Nanoseconds())
		limit = &tv
	}
	if _, err := unix.Select(max(fd, wake)+1, &read, &write, nil, limit); err != nil {
		return false, false, err
	}
	return read.IsSet(fd) || write.IsSet(fd), wake >= 0 && read.IsSet(wake), nil
}

// hungUp is always true: a terminal that is ready and has no byte has ended.
func hungUp(int) bool { return true }

// follow has a signal sent to ch until stop is called.
func follow(ch chan os.Signal, s unix.Signal) (stop func()) {
	signal.Notify(ch, s)
	return func() { signal.Stop(ch) }
}

// A waiter waits in select(2), which takes a thread.
type waiter struct{}

func (waiter) await(fd int, events int16, wake int) (ready, woken bool, err error) {
	return poll(fd, events, wake, -1)
}

func (waiter) close() {}
