package dns

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"
)

// Limits of a connection and of a socket.
const (
	idle      = 10 * time.Second // RFC 7766, section 6.2.3: seconds
	maxErrors = 100              // in a row, after which a socket is given up
)

// A peer is the sender of a datagram, with the data by which the system answers
// from the address that was asked.
type peer struct {
	addr    netip.AddrPort
	any     net.Addr // of sockets that are not UDP
	control []byte
}

// A wire is a socket for datagrams.
type wire interface {
	read(b []byte) (int, peer, error)
	write(b []byte, to peer) error
}

// ServePacket answers the datagrams of a socket until ctx ends, then returns
// its error, or until the socket fails or is closed. It works in the calling
// goroutine and holds one datagram at a time, whatever arrives. Closing the
// socket is up to the caller; it reads nothing any more once ctx has ended.
func (s *Server) ServePacket(ctx context.Context, pc net.PacketConn) error {
	stop := context.AfterFunc(ctx, func() { _ = pc.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	w, err := wireOf(pc)
	if err != nil {
		return err
	}
	in, out := make([]byte, maxQuery+1), make([]byte, 0, maxResponse)
	for failed := 0; failed < maxErrors; {
		n, from, err := w.read(in)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, net.ErrClosed):
			return err
		case err != nil:
			failed++
			continue
		}
		failed = 0
		if n > maxQuery {
			continue
		}
		if r := s.respond(out, in[:n]); r != nil {
			_ = w.write(r, from) // a client that can't be answered asks again
		}
	}
	return fmt.Errorf("dns: the socket %v fails again and again", pc.LocalAddr())
}

// wireOf prefers what tells at which address a datagram arrived.
func wireOf(pc net.PacketConn) (wire, error) {
	c, ok := pc.(*net.UDPConn)
	if !ok {
		return packets{pc}, nil
	}
	if err := tellDestination(c); err != nil {
		return nil, fmt.Errorf("dns: socket %v: %w", c.LocalAddr(), err)
	}
	return &datagrams{UDPConn: c, control: make([]byte, 128)}, nil
}

type packets struct{ net.PacketConn }

func (p packets) read(b []byte) (int, peer, error) {
	n, from, err := p.ReadFrom(b)
	return n, peer{any: from}, err
}

func (p packets) write(b []byte, to peer) error {
	_, err := p.WriteTo(b, to.any)
	return err
}

// datagrams answers from the address that was asked: the control message that
// says where a datagram arrived says, sent back, where one leaves (ip(7),
// ipv6(7)). A guest asks whatever address its resolv.conf holds, and would
// not take an answer from another.
type datagrams struct {
	*net.UDPConn
	control []byte
}

func (d *datagrams) read(b []byte) (int, peer, error) {
	n, c, _, from, err := d.ReadMsgUDPAddrPort(b, d.control)
	return n, peer{addr: from, control: d.control[:c]}, err
}

func (d *datagrams) write(b []byte, to peer) error {
	_, _, err := d.WriteMsgUDPAddrPort(b, to.control, to.addr)
	return err
}

// ServeStream answers the messages of one connection (RFC 7766), one after the
// other, and closes it. It ends when ctx or the client ends, when no whole
// message arrives or no response can be written within 10 s, and at a message
// that is longer than 4096 bytes or gets no response. It returns nil where the
// client closed it between two messages. It works in the calling goroutine; how
// many connections there are at a time is the caller's to limit.
func (s *Server) ServeStream(ctx context.Context, conn net.Conn) error {
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	err := s.stream(conn)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

func (s *Server) stream(conn net.Conn) error {
	r := bufio.NewReaderSize(conn, 2+maxQuery)
	out := make([]byte, 2, 2+maxResponse)
	for {
		if err := conn.SetDeadline(time.Now().Add(idle)); err != nil {
			return err
		}
		msg, err := readMessage(r)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		response := s.respond(out, msg)
		if response == nil {
			return errFormat
		}
		binary.BigEndian.PutUint16(response, uint16(len(response)-2))
		if _, err := conn.Write(response); err != nil {
			return err
		}
		if _, err := r.Discard(2 + len(msg)); err != nil {
			return err
		}
	}
}

// readMessage returns the next message, which stays in r.
func readMessage(r *bufio.Reader) ([]byte, error) {
	size, err := r.Peek(2)
	if errors.Is(err, io.EOF) && len(size) > 0 {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint16(size))
	if n > maxQuery {
		return nil, errFormat
	}
	msg, err := r.Peek(2 + n)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	return msg[2:], nil
}
