//go:build linux || darwin

package terminal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// A pump is one goroutine that moves bytes and can be told to stop while it
// waits for them.
type pump struct {
	wakeRead, wakeWrite *os.File // closing wakeWrite wakes it, for good
	wakeFD              int
	waiter              waiter // for its goroutine alone
	ended               chan struct{}
	busy                atomic.Bool  // holds bytes that it has read and not yet written
	moved               atomic.Int64 // bytes written
}

func newPump() (*pump, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("no pipe to stop the relay with: %w", err)
	}
	return &pump{wakeRead: r, wakeWrite: w, wakeFD: descriptor(r), ended: make(chan struct{})}, nil
}

// stop ends the pump and waits for it.
func (p *pump) stop() {
	p.wakeWrite.Close()
	<-p.ended
	p.waiter.close()
	p.wakeRead.Close()
}

// errStopped means that somebody has called stop.
var errStopped = errors.New("stopped")

// read waits for bytes and reads as many as there are. Another program may
// take them first where the terminal is not ours alone; then it waits again.
// It never reads after stop.
func (p *pump) read(fd int, buf []byte) (int, error) {
	for {
		if err := p.wait(fd, unix.POLLIN); err != nil {
			return 0, err
		}
		p.busy.Store(true)
		n, err := readAll(fd, buf)
		if n > 0 || err != nil {
			return n, err
		}
		p.busy.Store(false)
	}
}

// readAll reads until there is nothing more or buf is full: a terminal gives
// at most 4 KiB at a time. The error of a later read is that of the next too.
func readAll(fd int, buf []byte) (int, error) {
	total := 0
	for total < len(buf) {
		n, err := unix.Read(fd, buf[total:])
		switch {
		case n > 0:
			total += n
			continue
		case total > 0 || errors.Is(err, unix.EAGAIN):
			return total, nil
		case errors.Is(err, unix.EINTR):
			continue
		case err == nil && hungUp(fd):
			return 0, io.EOF
		}
		return 0, err
	}
	return total, nil
}

// write writes all of b, and returns how much of it was written.
func (p *pump) write(fd int, b []byte) (int, error) {
	done := 0
	for done < len(b) {
		n, err := unix.Write(fd, b[done:])
		if n > 0 {
			done += n
			p.moved.Add(int64(n))
			continue
		}
		if errors.Is(err, unix.EAGAIN) {
			err = p.wait(fd, unix.POLLOUT)
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			return done, err
		}
	}
	return done, nil
}

// wait returns when fd is ready (or has failed, which the next call on it will
// say), or errStopped.
func (p *pump) wait(fd int, events int16) error {
	for {
		ready, woken, err := p.waiter.await(fd, events, p.wakeFD)
		switch {
		case err != nil:
			return err
		case woken:
			return errStopped
		case ready:
			return nil
		}
	}
}

// poll waits until fd is ready for events, or has failed, or wake (unless it is -1)
// was closed at its other end. A negative timeout waits without a limit. Signals,
// with which Go's runtime preempts goroutines, do not end it.
func poll(fd int, events int16, wake int, timeout time.Duration) (ready, woken bool, err error) {
	for began := time.Now(); ; {
		left := timeout
		if timeout >= 0 {
			left = max(0, timeout-time.Since(began))
		}
		ready, woken, err = pollOnce(fd, events, wake, left)
		if !errors.Is(err, unix.EINTR) {
			return ready, woken, err
		}
	}
}

// readable reports whether fd has bytes, waiting for them a little.
func readable(fd int, wait time.Duration) bool {
	ready, _, err := poll(fd, unix.POLLIN, -1, wait)
	return ready && err == nil
}
