package stream

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// pause is how long a port waits after it could not take a connection.
const pause = 10 * time.Millisecond

// forwardAll listens at ports of loopback, of both families where there are
// both, and carries what connects to the same port of an address.
func forwardAll(words []string) error {
	if len(words) == 0 {
		return nil
	}
	to, err := netip.ParseAddr(words[0])
	if err != nil {
		return err
	}
	for _, w := range words[1:] {
		port, err := strconv.ParseUint(w, 10, 16)
		if err != nil {
			return fmt.Errorf("port %q; want a number up to 65535", w)
		}
		for i, own := range []string{"127.0.0.1", "::1"} {
			l, err := net.Listen("tcp", net.JoinHostPort(own, w))
			if err != nil && i == 0 {
				return err
			}
			if err == nil {
				go Forward(l, netip.AddrPortFrom(to, uint16(port)), Reach)
			}
		}
	}
	return nil
}

// Forward carries each connection that l accepts to an address, which reach
// connects to, and returns when l is closed.
func Forward(l net.Listener, to netip.AddrPort, reach func(netip.AddrPort) (net.Conn, error)) {
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(pause) // there are no descriptors, for example, until others are closed
			continue
		}
		go func() {
			defer c.Close()
			other, err := reach(to)
			if err != nil {
				return
			}
			defer other.Close()
			var both sync.WaitGroup
			both.Go(func() { carry(other, c) })
			carry(c, other)
			both.Wait()
		}()
	}
}

// Reach connects to an address, from the network namespace of the calling thread.
func Reach(to netip.AddrPort) (net.Conn, error) {
	family, addr := unix.AF_INET6, unix.Sockaddr(&unix.SockaddrInet6{Port: int(to.Port()), Addr: to.Addr().As16()})
	if a := to.Addr().Unmap(); a.Is4() {
		family, addr = unix.AF_INET, &unix.SockaddrInet4{Port: int(to.Port()), Addr: a.As4()}
	}
	fd, err := connect(family, addr)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), to.String())
	defer f.Close()
	return net.FileConn(f)
}

// carry moves bytes one way, and passes their end on: a broken one as a reset.
func carry(to, from net.Conn) {
	_, err := io.Copy(to, from)
	if c, ok := to.(*net.TCPConn); ok && err == nil {
		err = c.CloseWrite()
	}
	if err == nil {
		return
	}
	for _, c := range []net.Conn{to, from} {
		if c, ok := c.(*net.TCPConn); ok {
			_ = c.SetLinger(0) // it may be closed already
		}
		_ = c.Close()
	}
}
