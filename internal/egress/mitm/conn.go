package mitm

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"github.com/bawn-dev/bawn/internal/hostname"
)

// A guestConn knows where its guest wanted to go and when it was closed.
type guestConn struct {
	net.Conn
	target Target
	closed chan struct{}
	once   sync.Once
}

func newGuestConn(conn net.Conn, target Target) *guestConn {
	return &guestConn{Conn: conn, target: target, closed: make(chan struct{})}
}

func (c *guestConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { close(c.closed) })
	return err
}

// serverName refuses a guest that names another host than the one that its
// connection is for. It is asked for resumed sessions too.
func serverName(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	guest, ok := hello.Conn.(*guestConn)
	if !ok {
		return nil, fmt.Errorf("BUG(bawn): TLS on a %T", hello.Conn)
	}
	if hello.ServerName == "" {
		return nil, nil
	}
	if host, _, err := hostname.NormalASCII(hello.ServerName); err != nil || host != guest.target.Host {
		return nil, fmt.Errorf("server name %q on a connection to %q", hello.ServerName, guest.target.Host)
	}
	return nil, nil
}

// certificate mints for the host that the connection is for.
func (s *Server) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	guest, ok := hello.Conn.(*guestConn)
	if !ok {
		return nil, fmt.Errorf("BUG(bawn): TLS on a %T", hello.Conn)
	}
	return s.CA.Leaf(guest.target.Host)
}

// A oneConn is a listener for one existing connection, and ends when that is
// closed.
type oneConn struct {
	conn  net.Conn
	guest *guestConn
	taken bool
}

func (l *oneConn) Accept() (net.Conn, error) {
	if !l.taken {
		l.taken = true
		return l.conn, nil
	}
	<-l.guest.closed
	return nil, net.ErrClosed
}

func (l *oneConn) Close() error   { return nil }
func (l *oneConn) Addr() net.Addr { return l.guest.LocalAddr() }

// A hostConn remembers which address was dialled.
type hostConn struct {
	net.Conn
	addr netip.AddrPort
}

// dialled returns the address of a connection that our Dial made.
func dialled(conn net.Conn) netip.AddrPort {
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	if h, ok := conn.(*hostConn); ok {
		return h.addr
	}
	return netip.AddrPort{}
}
