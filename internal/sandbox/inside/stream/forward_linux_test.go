package stream

import (
	"io"
	"net"
	"net/netip"
	"strconv"
	"testing"
)

// TestForward: a port of loopback leads to the same port of another address,
// both ways, and each way ends by itself.
func TestForward(t *testing.T) {
	there, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	go func() {
		for {
			c, err := there.Accept()
			if err != nil {
				return
			}
			text, _ := io.ReadAll(c)
			_, _ = c.Write(append([]byte("heard "), text...))
			c.Close()
		}
	}()
	at, err := netip.ParseAddrPort(there.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if err := forwardAll([]string{"127.0.0.2", strconv.Itoa(int(at.Port()))}); err != nil {
		t.Fatal(err)
	}
	c, err := Reach(netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), at.Port()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, "me")
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(c); string(got) != "heard me" {
		t.Errorf("%q, %v", got, err)
	}
	for _, words := range [][]string{{"nowhere"}, {"127.0.0.2", "99999"}, {"127.0.0.2", "-1"}} {
		if forwardAll(words) == nil {
			t.Errorf("%q is taken", words)
		}
	}
}
