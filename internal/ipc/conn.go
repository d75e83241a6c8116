// Package ipc carries messages between processes of one machine, over a UNIX
// stream socket. A frame is a length in 4 bytes, big-endian, and that many bytes
// of JSON. Descriptors travel with the frame that names them (SCM_RIGHTS,
// unix(7)).
//
// The peer may be hostile. An unknown member, data after the message, a frame or
// a number of descriptors above the limits, and truncated control data end the
// conversation.
package ipc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Limits bound the parts of one message. Zero Limits allow no message.
type Limits struct {
	Bytes int // of JSON
	Files int // that travel with it, at most maxFiles
	// Patience is how long Send waits for a peer that does not read; 0 waits
	// until the deadline.
	Patience time.Duration
}

const maxFiles = 32 // have room in Conn.oob

// A Conn carries messages over a UNIX stream socket. Send may be called by
// several goroutines, Receive by one. After an error a Conn is of no more use:
// nobody knows where the next frame would begin.
type Conn struct {
	f      Socket
	raw    syscall.RawConn
	limits Limits

	sending sync.Mutex
	out     []byte
	sendErr error

	in      bytes.Buffer
	ahead   []byte // was read before there was this Conn
	oob     [256]byte
	recvErr error
}

// A Socket is a UNIX stream socket: an *os.File, or a *net.UnixConn.
type Socket interface {
	syscall.Conn
	SetDeadline(t time.Time) error
	SetWriteDeadline(t time.Time) error
	Close() error
}

// New speaks over f, which Close closes. Deadlines work if f is in non-blocking
// mode.
func New(f Socket, l Limits) (*Conn, error) {
	if l.Files > maxFiles {
		return nil, fmt.Errorf("BUG(bawn): %d files for one message; want at most %d", l.Files, maxFiles)
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("use it as a socket: %w", err)
	}
	return &Conn{f: f, raw: raw, limits: l}, nil
}

// Resume is New after some bytes were read, which are the beginning of a message.
func Resume(f Socket, l Limits, ahead []byte) (*Conn, error) {
	c, err := New(f, l)
	if err == nil {
		c.ahead = ahead
	}
	return c, err
}

// Pair returns the two ends of a new connection, both closed on exec. The
// first is in non-blocking mode and goes into New; the second blocks and is
// for another process.
func Pair() (ours, theirs *os.File, err error) {
	syscall.ForkLock.RLock()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|socketFlags, 0)
	if err == nil {
		closeOnExec(fds[:])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, fmt.Errorf("make a socket: %w", err)
	}
	if err := unix.SetNonblock(fds[0], true); err != nil {
		return nil, nil, errors.Join(err, unix.Close(fds[0]), unix.Close(fds[1]))
	}
	return os.NewFile(uintptr(fds[0]), "control"), os.NewFile(uintptr(fds[1]), "control"), nil
}

// SyscallConn gives access to the socket, for example to ask who the peer is.
func (c *Conn) SyscallConn() syscall.RawConn { return c.raw }

// SetDeadline ends Send and Receive at t with os.ErrDeadlineExceeded; the zero
// time is never.
func (c *Conn) SetDeadline(t time.Time) error { return c.f.SetDeadline(t) }

// Close closes the socket. It may be called at any time, and ends a Receive.
func (c *Conn) Close() error { return c.f.Close() }

// Send writes msg with its files, of which the other side gets copies; the
// caller still closes its own. A message that is not Valid or is above the
// limits is not sent.
func (c *Conn) Send(msg any, files ...*os.File) error {
	if len(files) > c.limits.Files {
		return fmt.Errorf("%d files for one message; want at most %d", len(files), c.limits.Files)
	}
	c.sending.Lock()
	defer c.sending.Unlock()
	if c.sendErr != nil {
		return c.sendErr
	}
	out, err := Append(c.out[:0], msg, c.limits.Bytes)
	if err != nil {
		return err
	}
	c.out = out
	if c.limits.Patience > 0 {
		if c.sendErr = c.f.SetWriteDeadline(time.Now().Add(c.limits.Patience)); c.sendErr != nil {
			return c.sendErr
		}
	}
	return withFDs(files, nil, c.write)
}

// withFDs calls f with the descriptors of files, which stay open meanwhile.
func withFDs(files []*os.File, fds []int, f func(fds []int) error) error {
	if len(files) == 0 {
		return f(fds)
	}
	raw, err := files[0].SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	err = raw.Control(func(fd uintptr) { inner = withFDs(files[1:], append(fds, int(fd)), f) })
	return errors.Join(err, inner)
}

// write sends c.out, the descriptors with its first byte.
func (c *Conn) write(fds []int) error {
	var oob []byte
	if len(fds) > 0 {
		oob = unix.UnixRights(fds...)
	}
	rest := c.out
	var failed error
	err := c.raw.Write(func(fd uintptr) bool {
		for len(rest) > 0 {
			n, err := unix.SendmsgN(int(fd), rest, oob, nil, sendFlags)
			switch {
			case errors.Is(err, unix.EINTR):
				continue
			case errors.Is(err, unix.EAGAIN):
				return false
			case err != nil:
				failed = err
				return true
			}
			rest, oob = rest[n:], nil
		}
		return true
	})
	c.sendErr = errors.Join(err, failed)
	return c.sendErr
}

// Receive reads the next message into msg and returns the files that came with
// it, closed on exec, which the caller closes. It returns io.EOF when the other
// side is gone between two messages. On any other error received descriptors
// have been closed.
func (c *Conn) Receive(msg any) ([]*os.File, error) {
	if c.recvErr != nil {
		return nil, c.recvErr
	}
	var fds []int
	err := readFrame(incoming{c, &fds}, &c.in, c.limits.Bytes)
	if err == nil {
		err = decode(c.in.Bytes(), msg)
	}
	if err != nil {
		for _, fd := range fds {
			_ = unix.Close(fd) // there is nothing else to do with it
		}
		c.recvErr = err
		return nil, err
	}
	files := make([]*os.File, len(fds))
	for i, fd := range fds {
		files[i] = os.NewFile(uintptr(fd), fmt.Sprintf("received %d", i))
	}
	return files, nil
}

// incoming reads from a Conn's socket and takes the descriptors that arrive.
type incoming struct {
	c   *Conn
	fds *[]int
}

// Read is io.Reader's.
func (i incoming) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	n, err := i.c.read(b, i.fds)
	if err == nil && n == 0 {
		err = io.EOF
	}
	return n, err
}

// read reads some bytes and takes the descriptors that come with them.
func (c *Conn) read(b []byte, fds *[]int) (n int, err error) {
	if len(c.ahead) > 0 {
		n = copy(b, c.ahead)
		c.ahead = c.ahead[n:]
		return n, nil
	}
	var oobn, flags int
	rerr := c.raw.Read(func(fd uintptr) bool {
		n, oobn, flags, err = receive(int(fd), b, c.oob[:])
		return !errors.Is(err, unix.EAGAIN)
	})
	if err := errors.Join(rerr, err); err != nil {
		return 0, err
	}
	if oobn > 0 {
		if err := takeFDs(c.oob[:oobn], fds); err != nil {
			return 0, err
		}
	}
	switch {
	case flags&unix.MSG_CTRUNC != 0:
		return 0, errors.New("some of the message's files were lost on the way")
	case len(*fds) > c.limits.Files:
		return 0, fmt.Errorf("%d files came with one message; want at most %d", len(*fds), c.limits.Files)
	}
	return n, nil
}

// takeFDs appends every descriptor in the control data, also where it can't
// make sense of the rest.
func takeFDs(oob []byte, fds *[]int) error {
	list, err := unix.ParseSocketControlMessage(oob)
	for i := range list {
		got, rights := unix.ParseUnixRights(&list[i])
		*fds = append(*fds, got...)
		if rights != nil {
			err = errors.Join(err, errors.New("something else than files came with the message"))
		}
	}
	return err
}
