package inside

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// gonePatience is how long what was killed has to end: a process that waits for
// a disk ends no sooner.
const gonePatience = 5 * time.Second

// Gone waits until the process of a pidfd has ended (pidfd_open(2): then it can
// be read), 5 s at most. That of a PID namespace's first process ends after all
// others in it (pid_namespaces(7)).
func Gone(pidfd int) error {
	fds := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
	for until := time.Now().Add(gonePatience); ; {
		left := time.Until(until)
		n, err := unix.Poll(fds, int(max(left, 0)/time.Millisecond))
		switch {
		case n > 0:
			return nil
		case left <= 0:
			return errors.New("processes of the guest were killed and are still there")
		case err != nil && !errors.Is(err, unix.EINTR):
			return err
		}
	}
}
