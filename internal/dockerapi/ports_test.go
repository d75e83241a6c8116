package dockerapi

import (
	"context"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox/maker"
)

// echoes is a network at whose every port what comes is sent back.
type echoes struct{ at *net.TCPListener }

func (e echoes) Mode(context.Context, string) (string, error) { return "", nil }

func (e echoes) Listen(uint16) (*net.TCPListener, error) {
	return net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
}

func (e echoes) Dial(uint16) (*os.File, error) {
	conn, err := net.Dial("tcp", e.at.Addr().String())
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.(*net.TCPConn).File()
}

func (e echoes) serve() {
	for {
		conn, err := e.at.Accept()
		if err != nil {
			return
		}
		go func() {
			_, _ = io.Copy(conn, conn)
			conn.Close()
		}()
	}
}

func newEchoes(t *testing.T) echoes {
	t.Helper()
	e := echoes{}
	var err error
	if e.at, err = e.Listen(0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.at.Close() })
	go e.serve()
	return e
}

// speak sends a byte through a published port and reports whether it comes back.
func speak(t *testing.T, c *child) (conn net.Conn, ok bool) {
	t.Helper()
	conn, err := net.Dial("tcp", c.ports[0].listener.Addr().String())
	if err != nil {
		return nil, false // reset already
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	_, _ = conn.Write([]byte("x"))
	n, _ := conn.Read(make([]byte, 1))
	return conn, n == 1
}

// Ports and the connections to them are bounded for all containers of a session:
// their descriptors are those of its host process.
func TestPortsOfOneSession(t *testing.T) {
	b, err := New(Options{Engine: "/none", Session: bawn.Session{ID: "s"}, Maker: maker.Maker{PID: 1}, Network: newEchoes(t)})
	if err != nil {
		t.Fatal(err)
	}
	b.joined = make(chan struct{}, 3)
	publishing := func() *child {
		return &child{wanted: &wanted{ports: make([]published, maxPorts)}}
	}
	var all []*child
	t.Cleanup(func() {
		for _, c := range all {
			c.closePorts()
		}
		b.work.Wait()
	})
	for range maxListeners / maxPorts {
		c := publishing()
		all = append(all, c)
		if err := b.openPorts(c); err != nil {
			t.Fatal(err)
		}
	}
	more := publishing()
	all = append(all, more)
	if err := b.openPorts(more); err == nil || !strings.Contains(err.Error(), RuleLimit) || len(more.ports) != 0 {
		t.Errorf("%d ports more: %v", len(more.ports), err)
	}
	all[0].closePorts()
	if err := b.openPorts(more); err != nil {
		t.Errorf("after others were closed: %v", err)
	}
	var first net.Conn
	for n := range cap(b.joined) {
		conn, ok := speak(t, all[n%2+1])
		if !ok {
			t.Fatalf("connection %d is not carried", n)
		}
		first = conn
	}
	if _, ok := speak(t, all[2]); ok {
		t.Error("one connection too many is carried")
	}
	first.Close()
	for end := time.Now().Add(10 * time.Second); ; {
		if _, ok := speak(t, all[2]); ok {
			break
		}
		if time.Now().After(end) {
			t.Fatal("a connection that has ended makes no room")
		}
	}
}
