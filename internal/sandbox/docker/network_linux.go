package docker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/kernel"
)

// network makes the sockets of a guest that reaches others by name, in the
// container's network namespace: from here if that may be entered, else by a
// second container that shares it.
func (s *session) network(ctx context.Context) (*sandbox.GuestNetwork, error) {
	n := s.plan.Inside.Network
	if n == nil {
		return nil, nil
	}
	if os.Geteuid() != 0 {
		return s.networkByHelper(ctx, n)
	}
	files, err := enter(s.pid, func() ([]*os.File, error) {
		if err := kernel.BringUpLoopback(); err != nil {
			return nil, err
		}
		return kernel.MakeNetwork(n)
	})
	if err != nil {
		return nil, fmt.Errorf("make the session's network: %w", err)
	}
	return kernel.GuestNetwork(n, files), nil
}

// enter calls f on a thread in a process' network namespace, which must not be
// our own. The thread ends with it; the process' first one never ends, and is
// held while another is found.
func enter(pid int, f func() ([]*os.File, error)) (files []*os.File, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			files, err = enter(pid, f)
			runtime.UnlockOSThread()
			return
		}
		if err = enterNetwork(pid); err == nil { // never unlocked from here on
			files, err = f()
		}
	}()
	<-done
	return files, err
}

// enterNetwork moves the calling thread.
func enterNetwork(pid int) error {
	fd, err := unix.Open(fmt.Sprintf("/proc/%d/ns/net", pid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open the container's network namespace: %w", err)
	}
	defer unix.Close(fd)
	var theirs, ours unix.Stat_t
	if err := errors.Join(unix.Fstat(fd, &theirs), unix.Stat("/proc/thread-self/ns/net", &ours)); err != nil {
		return err
	}
	if theirs.Dev == ours.Dev && theirs.Ino == ours.Ino {
		return errors.New("the container has the host's network; nothing is changed there")
	}
	if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter the container's network namespace: %w", err)
	}
	return nil
}
