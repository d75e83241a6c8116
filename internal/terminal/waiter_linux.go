package terminal

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// A waiter waits for descriptors with an epoll(7) instance of its own, which Go's poller
// waits for: a session that waits for its terminal takes no thread. The descriptors are
// the user's, and can't be made non-blocking for Go's poller themselves.
type waiter struct {
	file *os.File
	fd   int // of file
}

// await is poll without a limit. It may also return because of what is not so any more.
func (w *waiter) await(fd int, events int16, wake int) (ready, woken bool, err error) {
	ready, woken, err = poll(fd, events, wake, 0)
	if ready || woken || err != nil {
		return ready, woken, err
	}
	if w.wait(fd, events, wake) != nil {
		return poll(fd, events, wake, -1) // what epoll does not take, such as a file
	}
	return poll(fd, events, wake, 0)
}

// wait returns once, after something has happened to fd or wake.
func (w *waiter) wait(fd int, events int16, wake int) error {
	if w.file == nil {
		if err := w.open(wake); err != nil {
			return err
		}
	}
	e := &unix.EpollEvent{Events: uint32(events) | unix.EPOLLONESHOT, Fd: int32(fd)}
	err := unix.EpollCtl(w.fd, unix.EPOLL_CTL_MOD, fd, e)
	if errors.Is(err, unix.ENOENT) {
		err = unix.EpollCtl(w.fd, unix.EPOLL_CTL_ADD, fd, e)
	}
	if err != nil {
		return err
	}
	raw, err := w.file.SyscallConn()
	if err != nil {
		return err
	}
	var got [2]unix.EpollEvent
	return raw.Read(func(uintptr) bool {
		n, err := unix.EpollWait(w.fd, got[:], 0)
		return n > 0 || err != nil && !errors.Is(err, unix.EINTR)
	})
}

func (w *waiter) open(wake int) error {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return err
	}
	err = unix.EpollCtl(fd, unix.EPOLL_CTL_ADD, wake, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(wake)})
	if err = errors.Join(err, unix.SetNonblock(fd, true)); err != nil {
		return errors.Join(err, unix.Close(fd))
	}
	w.file, w.fd = os.NewFile(uintptr(fd), "epoll"), fd
	return nil
}

// close ends it. Nobody may wait.
func (w *waiter) close() {
	if w.file != nil {
		w.file.Close()
	}
}
