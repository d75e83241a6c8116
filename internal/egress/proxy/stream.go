package proxy

import (
	"errors"
	"net"
)

// A stream is an accepted connection that begins with bytes which have been
// read already.
type stream struct {
	net.Conn
	head []byte // is passed on as it stands
	rest []byte // has been read ahead
	body *body  // nil: everything is passed on
}

// Read returns buffered bytes first, then new ones. Behind the end of a body it
// waits for the end of the connection and drops everything before it.
func (s *stream) Read(b []byte) (int, error) {
	if len(s.head) > 0 {
		n := copy(b, s.head)
		s.head = s.head[n:]
		return n, nil
	}
	for {
		n, err := s.next(b)
		if s.body == nil || n == 0 {
			return n, err
		}
		mine, bad := s.body.take(b[:n])
		if bad != nil {
			return 0, bad
		}
		if mine > 0 || err != nil {
			return mine, err
		}
	}
}

func (s *stream) next(b []byte) (int, error) {
	if len(s.rest) > 0 {
		n := copy(b, s.rest)
		s.rest = s.rest[n:]
		return n, nil
	}
	return s.Conn.Read(b)
}

// CloseWrite ends the client's input.
func (s *stream) CloseWrite() error {
	if c, ok := s.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return errors.ErrUnsupported
}

// SetLinger is as for net.TCPConn.
func (s *stream) SetLinger(sec int) error {
	if c, ok := s.Conn.(interface{ SetLinger(sec int) error }); ok {
		return c.SetLinger(sec)
	}
	return errors.ErrUnsupported
}

// A body says where the body of a request ends.
type body struct {
	left    int64 // bytes of the body, or of the present chunk
	chunked bool
	size    int64 // of the chunk whose size is being read
	digits  int
	step    int // where in the frame of a chunk
	ended   bool
}

// Steps through a chunk (RFC 9112 section 7.1).
const (
	inSize = iota
	sizeLF
	inData
	dataCR
	dataLF
)

var errChunk = errors.New("the body is not in proper chunks, or has extensions or trailers, which are not passed on")

// take returns how many bytes at the beginning of b belong to the body.
func (d *body) take(b []byte) (int, error) {
	if !d.chunked {
		n := min(int64(len(b)), d.left)
		d.left -= n
		return int(n), nil
	}
	for i := 0; i < len(b); {
		if d.ended {
			return i, nil
		}
		if d.step == inData {
			n := min(int64(len(b)-i), d.left)
			d.left -= n
			i += int(n)
			if d.left == 0 {
				d.step = dataCR
			}
			continue
		}
		if !d.frame(b[i]) {
			return 0, errChunk
		}
		i++
	}
	return len(b), nil
}

// frame reads a byte that is not data, and reports whether it may stand there.
func (d *body) frame(c byte) bool {
	switch d.step {
	case inSize:
		if c == '\r' && d.digits > 0 {
			d.step = sizeLF
			return true
		}
		v, ok := hex(c)
		d.size, d.digits = d.size<<4|int64(v), d.digits+1
		return ok && d.digits <= 15
	case sizeLF:
		d.step, d.left = inData, d.size
		if d.size == 0 {
			d.step = dataCR
		}
		return c == '\n'
	case dataCR:
		d.step = dataLF
		return c == '\r'
	}
	d.ended = d.size == 0
	d.step, d.size, d.digits = inSize, 0, 0
	return c == '\n'
}

func hex(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}
