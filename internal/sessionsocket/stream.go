//go:build linux || darwin

package sessionsocket

import (
	"errors"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// errStopped is the error of a stream's calls after stop.
var errStopped = errors.New("stopped")

// atOnce is how much a pipe takes without waiting when poll(2) says that it
// takes something (pipe(7), PIPE_BUF).
const atOnce = 4096

// A stream reads or writes a descriptor whose blocking mode is somebody
// else's: it waits with poll(2), and can be stopped while it waits.
type stream struct {
	file       *os.File
	socket     bool
	careful    bool     // the descriptor may wait in spite of poll(2)
	own        bool     // close file with the stream
	pipe       bool     // of the command's
	wait, wake *os.File // of a pipe: closing wake stops
	stopping   sync.Once
}

func newStream(f *os.File, socket, own bool) (*stream, error) {
	r, w, err := pipe()
	if err != nil {
		if own {
			f.Close()
		}
		return nil, err
	}
	return &stream{file: f, socket: socket, own: own, wait: os.NewFile(uintptr(r), "wait"), wake: os.NewFile(uintptr(w), "wake")}, nil
}

// stop ends calls that wait, and every later one. It may be called at any time
// and more than once.
func (s *stream) stop() { s.stopping.Do(func() { s.wake.Close() }) }

// close releases everything. No call may be under way.
func (s *stream) close() {
	s.stop()
	s.wait.Close()
	if s.own {
		s.file.Close()
	}
}

// ready waits until the descriptor is ready, or has failed, which the next
// call on it will say.
func (s *stream) ready(events int16) error {
	return control(s.wait, func(wait int) error {
		return control(s.file, func(fd int) error { return poll(fd, events, wait) })
	})
}

func poll(fd int, events int16, wait int) error {
	fds := [2]unix.PollFd{{Fd: int32(fd), Events: events}, {Fd: int32(wait), Events: unix.POLLIN}}
	for {
		_, err := unix.Poll(fds[:], -1)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return err
		case fds[1].Revents != 0:
			return errStopped
		case fds[0].Revents != 0:
			return nil
		}
	}
}

// read returns the available bytes, once ready has reported some. It returns
// io.EOF at the end, and 0 bytes where somebody else was faster.
func (s *stream) read(b []byte) (n int, err error) {
	call := unix.Read
	if s.socket {
		call = receiveNow
	}
	err = control(s.file, func(fd int) error { n, err = call(fd, b); return err })
	switch {
	case again(err):
		return 0, nil
	case err == nil && n == 0:
		return 0, io.EOF
	}
	return max(n, 0), err
}

// write writes all of b and returns how much of it was written.
func (s *stream) write(b []byte) (done int, err error) {
	call := unix.Write
	if s.socket {
		call = sendNow
	}
	for done < len(b) {
		if err := s.ready(unix.POLLOUT); err != nil {
			return done, err
		}
		n := 0
		part := b[done:]
		if s.careful {
			part = part[:min(len(part), atOnce)]
		}
		err := control(s.file, func(fd int) (err error) { n, err = call(fd, part); return err })
		done += max(n, 0)
		if err != nil && !again(err) {
			return done, err
		}
	}
	return done, nil
}

func again(err error) bool {
	return errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR)
}
