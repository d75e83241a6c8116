package relay

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/bawn-dev/bawn/internal/egress/refuse"
)

// A stream is one side of a connection: TCP, or TLS to an upstream proxy.
type stream interface {
	net.Conn
	CloseWrite() error
}

// A flow counts the bytes of one connection, as seen from the guest.
type flow struct {
	in, out atomic.Int64
	limited atomic.Bool // the host's limit ended it
}

// piece is how many bytes are read at once where a limit counts: an idle
// connection reserves no buffer.
const piece = 64 << 10

var pieces = sync.Pool{New: func() any { return new([piece]byte) }}

// errLimit says that a host has been sent as much as it may.
var errLimit = refusal(RuleBusy, "the limit of bytes sent to this host is reached", "raise isolation.resources.net_out_mb")

// A quota is the number of bytes that may still be sent to one host; nil is no
// limit.
type quota struct{ left atomic.Int64 }

// take reserves up to n bytes and returns how many.
func (q *quota) take(n int64) int64 {
	if q == nil {
		return n
	}
	for {
		have := q.left.Load()
		got := max(0, min(n, have))
		if q.left.CompareAndSwap(have, have-got) {
			return got
		}
	}
}

// spend counts n bytes that are about to be sent, or none if they are too many.
func (f *flow) spend(n int, q *quota) error {
	if q.take(int64(n)) < int64(n) {
		f.limited.Store(true)
		return errLimit
	}
	f.out.Add(int64(n))
	return nil
}

// write sends b to the host.
func write(host io.Writer, b []byte, f *flow, q *quota) error {
	if err := f.spend(len(b), q); err != nil {
		return err
	}
	_, err := host.Write(b)
	return err
}

// send moves bytes from the guest to the host until the guest has no more, and
// says so to the host. Without a limit the kernel moves them by itself
// (splice(2)).
func send(host, guest stream, f *flow, q *quota) error {
	if err := copyOut(host, guest, f, q); err != nil {
		return err
	}
	return finish(host)
}

func copyOut(host, guest stream, f *flow, q *quota) error {
	if q == nil {
		return move(host, guest, &f.out)
	}
	b := pieces.Get().(*[piece]byte)
	defer pieces.Put(b)
	for {
		n, err := guest.Read(b[:])
		if failed := write(host, b[:n], f, q); failed != nil {
			return failed
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// receive moves bytes from the host to the guest until the host has no more.
func receive(guest, host stream, f *flow) error {
	if err := move(guest, host, &f.in); err != nil {
		return err
	}
	return finish(guest)
}

// glance is how many bytes are read at once where a word and its answer are
// likely. Every open connection holds as much for each direction.
const glance = 2 << 10

// move copies everything from one side to the other and counts it. Small pieces
// are read and written, which takes fewer calls than splice(2) and no pipe
// while the line is idle; larger ones are spliced by the kernel.
func move(to, from stream, count *atomic.Int64) error {
	var b [glance]byte
	for {
		n, err := from.Read(b[:])
		if n > 0 {
			if _, failed := to.Write(b[:n]); failed != nil {
				return failed
			}
			count.Add(int64(n))
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case n == len(b):
			spliced, err := io.Copy(to, from)
			count.Add(spliced)
			return err
		}
	}
}

// finish tells one side that the other has no more to say. A side that has
// ended and gone needs no telling: clients of TLS seldom wait for the server's
// last alert, and shutdown(2) then knows no connection. The error of a read or
// a write tells of a reset.
func finish(s stream) error {
	if err := s.CloseWrite(); !errors.Is(err, syscall.ENOTCONN) {
		return err
	}
	return nil
}

// reset ends a connection so that the other side notices at once (RST).
func reset(c net.Conn) { _ = refuse.Reset(c) } // it may be closed already, which is fine

// contained makes an error of f's panic: a client that finds a fault ends its
// own connection, and no other.
func contained(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("BUG(bawn): panic: %v", p)
		}
	}()
	return f()
}
