package stream

import (
	"errors"
	"sync"

	"golang.org/x/sys/unix"
)

// maxWrite is what a pipe takes without blocking once it says it can be
// written (PIPE_BUF, pipe(7)).
const maxWrite = 4096

// A bell wakes a goroutine that waits for a descriptor (eventfd(2)).
type bell struct{ fd int }

func newBell() (bell, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	return bell{fd}, err
}

// ring may be called more often than wait returns.
func (b bell) ring() { _, _ = unix.Write(b.fd, []byte{0, 0, 0, 0, 0, 0, 0, 1}) } // full: it rings already

// wait returns what poll(2) says of fd, unless fd is negative, once it says
// something or the bell rings.
func (b bell) wait(fd int, events int16) (int16, error) {
	fds := []unix.PollFd{{Fd: int32(b.fd), Events: unix.POLLIN}, {Fd: int32(fd), Events: events}}
	for {
		_, err := unix.Poll(fds, -1)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return 0, err
		}
		if fds[0].Revents != 0 {
			var n [8]byte
			_, _ = unix.Read(b.fd, n[:]) // somebody else has heard it
		}
		return fds[1].Revents, nil
	}
}

// A source is a descriptor from which is read what the other end writes.
type source struct {
	id   uint32
	fd   int
	bell bell
	send func(frame) error
	done chan struct{} // closed after the last frame

	mu     sync.Mutex
	moved  *sync.Cond
	credit int
	gone   bool   // nobody reads it there any more
	taken  uint64 // bytes read here
	sent   uint64 // and sent
	ended  bool
}

// newSource reads fd, which it owns from now on.
func newSource(id uint32, fd int, send func(frame) error) (*source, error) {
	b, err := newBell()
	if err != nil {
		return nil, err
	}
	s := &source{id: id, fd: fd, bell: b, send: send, credit: window, done: make(chan struct{})}
	s.moved = sync.NewCond(&s.mu)
	return s, nil
}

// run reads until there is no more, or nobody wants it.
func (s *source) run() {
	buf := make([]byte, chunk)
	for {
		n, more := s.next(buf)
		if n > 0 && s.send(frame{kindData, s.id, buf[:n]}) != nil {
			more = false
		}
		s.mu.Lock()
		s.sent += uint64(n)
		s.ended = !more
		s.moved.Broadcast()
		s.mu.Unlock()
		if !more {
			break
		}
	}
	_ = unix.Close(s.fd)
	_ = unix.Close(s.bell.fd)
	_ = s.send(frame{kind: kindEnd, id: s.id})
	close(s.done)
}

// next waits until something may be read, and reads it.
func (s *source) next(buf []byte) (n int, more bool) {
	s.mu.Lock()
	gone, credit := s.gone, s.credit
	s.mu.Unlock()
	if gone {
		return 0, false
	}
	watched := s.fd
	if credit == 0 {
		watched = -1
	}
	events, err := s.bell.wait(watched, unix.POLLIN)
	if err != nil {
		return 0, false
	}
	if events == 0 {
		return 0, true
	}
	return s.read(buf[:min(credit, len(buf))])
}

// read takes the available bytes; nobody asks meanwhile how many there are.
func (s *source) read(buf []byte) (n int, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := unix.Read(s.fd, buf)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
		return 0, true
	}
	if n <= 0 {
		return 0, false // the end, or a terminal that no process has open (EIO)
	}
	s.credit -= n
	s.taken += uint64(n)
	return n, true
}

// allow lets it send n bytes more. It returns an error for what can't be.
func (s *source) allow(n uint32) error {
	s.mu.Lock()
	s.credit += int(n)
	over := s.credit > window
	s.ringLocked()
	s.mu.Unlock()
	if over {
		return errors.New("a channel got more credit than there is")
	}
	return nil
}

// stop says that nobody reads it any more.
func (s *source) stop() {
	s.mu.Lock()
	s.gone = true
	s.ringLocked()
	s.mu.Unlock()
}

// ringLocked rings, unless the bell is no more.
func (s *source) ringLocked() {
	if !s.ended {
		s.bell.ring()
	}
}

// settle returns when all that had been written when it was called has been
// sent.
func (s *source) settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	there, err := unix.IoctlGetInt(s.fd, unix.TIOCINQ)
	if err != nil {
		return // it is gone
	}
	for want := s.taken + uint64(max(there, 0)); s.sent < want && !s.ended; {
		s.moved.Wait()
	}
}

// A sink is a descriptor to which is written what the other end reads.
type sink struct {
	id   uint32
	fd   int
	bell bell
	send func(frame) error
	// socket says that it goes on being read: a source owns it, and only this
	// direction ends.
	socket bool
	done   chan struct{}

	mu      sync.Mutex
	moved   *sync.Cond
	queue   [][]byte
	waiting int    // bytes in queue
	got     uint64 // bytes that came
	written uint64 // and were written
	ending  bool   // the last frame has come
	failed  bool   // nobody takes it any more
	closed  bool
}

// newSink writes to fd, which it owns from now on.
func newSink(id uint32, fd int, send func(frame) error) (*sink, error) {
	b, err := newBell()
	if err != nil {
		return nil, err
	}
	s := &sink{id: id, fd: fd, bell: b, send: send, done: make(chan struct{})}
	s.moved = sync.NewCond(&s.mu)
	return s, nil
}

// take queues bytes. It returns an error for more than the window holds, and
// for what comes after the end.
func (s *sink) take(b []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case len(b) == 0: // no window would bound how many
		return errors.New("a channel sends nothing")
	case s.ending:
		return errors.New("a channel goes on after its end")
	case s.waiting+len(b) > window:
		return errors.New("a channel sends more than its window holds")
	case s.failed:
		return nil
	}
	s.queueLocked(b)
	s.waiting, s.got = s.waiting+len(b), s.got+uint64(len(b))
	s.ringLocked()
	return nil
}

// queueLocked puts small pieces together: each piece costs memory that no
// window counts, and a hostile end sends single bytes.
func (s *sink) queueLocked(b []byte) {
	if last := len(s.queue) - 1; last >= 0 && len(s.queue[last])+len(b) <= chunk {
		s.queue[last] = append(s.queue[last], b...)
		return
	}
	s.queue = append(s.queue, b)
}

// end says that nothing follows.
func (s *sink) end() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending {
		return errors.New("a channel ends twice")
	}
	s.ending = true
	s.ringLocked()
	return nil
}

func (s *sink) ringLocked() {
	if !s.closed {
		s.bell.ring()
	}
}

// run writes until the end. Where nobody takes it any more, the other end is
// told, and what still comes is dropped.
func (s *sink) run() {
	for s.step() {
	}
	s.mu.Lock()
	s.closed = true
	s.moved.Broadcast()
	s.mu.Unlock()
	if s.socket {
		_ = unix.Shutdown(s.fd, unix.SHUT_WR) // the other side may have gone
	}
	_ = unix.Close(s.fd)
	_ = unix.Close(s.bell.fd)
	close(s.done)
}

// step waits for something to do and does it; false at the end.
func (s *sink) step() bool {
	s.mu.Lock()
	var next []byte
	if len(s.queue) > 0 {
		next = s.queue[0]
	}
	failed, end := s.failed, s.ending && len(s.queue) == 0
	s.mu.Unlock()
	if end {
		return false
	}
	watched, want := s.fd, int16(0)
	if failed {
		watched = -1
	} else if next != nil {
		want = unix.POLLOUT
	}
	events, err := s.bell.wait(watched, want)
	switch {
	case err != nil:
		s.fail()
	case events&unix.POLLOUT != 0:
		s.write(next)
	case events != 0:
		s.fail() // the reader has gone
	}
	return true
}

// write writes a part of next, with which the first in the queue begins.
func (s *sink) write(next []byte) {
	n, err := unix.Write(s.fd, next[:min(len(next), maxWrite)])
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
		return
	}
	if err != nil {
		s.fail()
		return
	}
	s.mu.Lock()
	if s.queue[0] = s.queue[0][n:]; len(s.queue[0]) == 0 { // it may have grown meanwhile
		s.queue = s.queue[1:]
	}
	s.waiting -= n
	s.written += uint64(n)
	s.moved.Broadcast()
	s.mu.Unlock()
	_ = s.send(frame{kindCredit, s.id, number(uint32(n))}) // the stream's end ends this too
}

// fail drops what is queued and all that follows.
func (s *sink) fail() {
	s.mu.Lock()
	first := !s.failed
	s.failed, s.queue, s.waiting = true, nil, 0
	s.moved.Broadcast()
	s.mu.Unlock()
	if first {
		_ = s.send(frame{kind: kindReset, id: s.id})
	}
}

// settle returns when all that has come before has been written.
func (s *sink) settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for want := s.got; s.written < want && !s.failed && !s.closed; {
		s.moved.Wait()
	}
}
