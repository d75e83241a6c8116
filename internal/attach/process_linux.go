package attach

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A process holds a pidfd (pidfd_open(2)), so that a signal can't reach another
// process with a recycled PID.
type process struct{ fd int }

func openProcess(pid int) (*process, error) {
	if pid <= 1 {
		return nil, syscall.ESRCH
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, err
	}
	return &process{fd}, nil
}

func (p *process) signal(sig syscall.Signal) error { return unix.PidfdSendSignal(p.fd, sig, nil, 0) }

// wait reports whether the process ended in time.
func (p *process) wait(limit time.Duration) bool {
	fds := []unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}}
	for end := time.Now().Add(limit); ; {
		n, err := unix.Poll(fds, int(max(time.Until(end), 0).Milliseconds()))
		if err != unix.EINTR {
			return n > 0
		}
	}
}

func (p *process) close() { unix.Close(p.fd) }
