package docker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// tick is how often a wait looks whether it is wanted any longer.
const tick = 100 * time.Millisecond

// An EndedError says that a container was over before it could be used.
type EndedError struct{ What string }

// Error says it.
func (e *EndedError) Error() string {
	return "the container's first process has ended before the session began: " + e.What
}

// accept waits for the container's first process, by its ID as the engine knows
// it and a pidfd of it. Other peers are refused.
func (p *place) accept(ctx context.Context, pid, pidfd int) (*os.File, error) {
	defer p.shut()
	fds := []unix.PollFd{{Fd: int32(p.listen), Events: unix.POLLIN}, {Fd: int32(pidfd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(fds, int(tick.Milliseconds()))
		switch {
		case ctx.Err() != nil:
			return nil, fmt.Errorf("the container's first process does not call: %w", ctx.Err())
		case err != nil && !errors.Is(err, unix.EINTR):
			return nil, fmt.Errorf("wait for the container's first process: %w", err)
		case err != nil || n == 0:
			continue
		case fds[0].Revents != 0:
			if conn := p.take(pid); conn != nil {
				return conn, nil
			}
		case fds[1].Revents != 0:
			return nil, &EndedError{"it may be no program for this machine, or the engine's files are not this machine's"}
		}
	}
}

// take accepts one connection, if it is pid's.
func (p *place) take(pid int) *os.File {
	fd, _, err := unix.Accept4(p.listen, unix.SOCK_CLOEXEC)
	if err != nil {
		return nil
	}
	peer, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil || int(peer.Pid) != pid {
		unix.Close(fd)
		return nil
	}
	return os.NewFile(uintptr(fd), "control")
}
