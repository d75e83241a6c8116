// Package listening serves tests on this machine.
package listening

import (
	"net"
	"net/netip"
	"testing"
)

// Serve has f speak with each client of an address that it makes, until the test
// ends.
func Serve(t testing.TB, f func(net.Conn)) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	Accept(t, l, f)
	return l.Addr().(*net.TCPAddr).AddrPort()
}

// Accept has f speak with each client of l, all at once, until the test ends. A
// connection is closed when f returns.
func Accept(t testing.TB, l net.Listener, f func(net.Conn)) {
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				f(c)
			}()
		}
	}()
}
