//go:build linux || darwin

package runner

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// inside is the guest's side: a server behind its port 3000, and no other.
func inside(t *testing.T, serve func(*net.TCPConn)) func(uint16) (*os.File, error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				c.SetDeadline(time.Now().Add(20 * time.Second))
				serve(c.(*net.TCPConn))
			})
		}
	})
	t.Cleanup(func() { l.Close(); all.Wait() })
	return func(port uint16) (*os.File, error) {
		if port != 3000 {
			return nil, sandbox.ErrUnsupported
		}
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			return nil, err
		}
		defer c.Close()
		return c.(*net.TCPConn).File()
	}
}

// published makes a port of the host lead to a port of the guest.
func published(t *testing.T, guest int, dial func(uint16) (*os.File, error)) (*publisher, string) {
	t.Helper()
	port := freePort(t)
	p, err := publish([]string{fmt.Sprintf("%d:%d", port, guest)})
	if err != nil {
		t.Fatal(err)
	}
	p.serve(dial)
	t.Cleanup(func() { p.close() })
	return p, fmt.Sprintf("127.0.0.1:%d", port)
}

func freePort(t *testing.T) uint16 {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return netip.MustParseAddrPort(l.Addr().String()).Port()
}

func dialed(t *testing.T, at string) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(20 * time.Second))
	return c.(*net.TCPConn)
}

// leaves fails a test after which goroutines are left.
func leaves(t *testing.T) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		for limit := time.Now().Add(20 * time.Second); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
			if time.Now().After(limit) {
				stacks := make([]byte, 64<<10)
				t.Fatalf("%d goroutines, %d before\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
			}
		}
	})
}

// Many at once, and each side may end first.
func TestPublish(t *testing.T) {
	leaves(t)
	_, at := published(t, 3000, inside(t, func(c *net.TCPConn) {
		b, _ := io.ReadAll(c) // until the other end
		c.Write(b)
	}))
	var all sync.WaitGroup
	for i := range 40 {
		c := dialed(t, at)
		all.Go(func() {
			text := strings.Repeat(fmt.Sprint(i), 10_000)
			io.WriteString(c, text)
			c.CloseWrite()
			if got, err := io.ReadAll(c); err != nil || string(got) != text {
				t.Errorf("%d: got %d bytes, %v", i, len(got), err)
			}
		})
	}
	all.Wait()
}

// The guest's end is passed on while the outside may still speak; its reset is
// one outside too.
func TestPublishEnds(t *testing.T) {
	leaves(t)
	heard := make(chan string, 1)
	_, at := published(t, 3000, inside(t, func(c *net.TCPConn) {
		io.WriteString(c, "bye")
		c.CloseWrite()
		b, _ := io.ReadAll(c)
		heard <- string(b)
	}))
	c := dialed(t, at)
	if b, err := io.ReadAll(c); err != nil || string(b) != "bye" {
		t.Errorf("got %q, %v", b, err)
	}
	io.WriteString(c, "still here")
	c.CloseWrite()
	if got := testenv.Receive(t, "what is heard", heard); got != "still here" {
		t.Errorf("the guest heard %q", got)
	}

	_, at = published(t, 3000, inside(t, func(c *net.TCPConn) {
		io.ReadFull(c, make([]byte, 1))
		io.WriteString(c, "half an ans")
		time.Sleep(50 * time.Millisecond)
		c.SetLinger(0)
	}))
	c = dialed(t, at)
	io.WriteString(c, "x")
	if _, err := io.ReadAll(c); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the guest's reset came as %v", err)
	}
}

// A port at which nobody listens ends the connection, and no other.
func TestPublishClosedPort(t *testing.T) {
	leaves(t)
	_, at := published(t, 3001, inside(t, func(*net.TCPConn) {}))
	for range 3 {
		if b, err := io.ReadAll(dialed(t, at)); len(b) > 0 {
			t.Errorf("got %q, %v", b, err)
		}
	}
}

// A port that is taken, and an invalid entry, are errors before anything starts.
// The ports before them are released.
func TestPublishRefused(t *testing.T) {
	leaves(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	free := freePort(t)
	for _, bad := range []string{fmt.Sprintf("%d:3000", netip.MustParseAddrPort(taken.Addr().String()).Port()), "0:3000", "x", "-1", "70000"} {
		if _, err := publish([]string{fmt.Sprintf("%d:3000", free), bad}); err == nil {
			t.Errorf("%q was published", bad)
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", free))
		if err != nil {
			t.Fatalf("after %q the first port is still taken: %v", bad, err)
		}
		l.Close()
	}
}

// The end of the session ends all connections: those that are carried, and
// those that are only just being made.
func TestPublishClose(t *testing.T) {
	leaves(t)
	real := inside(t, func(c *net.TCPConn) { io.Copy(c, c) })
	making, made := make(chan bool, 9), make(chan bool)
	var slow atomic.Bool
	p, at := published(t, 3000, func(port uint16) (*os.File, error) {
		if slow.Load() {
			making <- true
			<-made
		}
		return real(port)
	})
	carried := dialed(t, at)
	io.WriteString(carried, "x")
	if _, err := io.ReadFull(carried, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	slow.Store(true)
	late := dialed(t, at)
	<-making
	ended := make(chan bool)
	go func() { p.close(); close(ended) }()
	carried.Read(make([]byte, 1)) // it has been ended
	close(made)
	testenv.Receive(t, "the end, whatever began meanwhile", ended)
	for name, c := range map[string]net.Conn{"carried": carried, "late": late} {
		if n, err := c.Read(make([]byte, 1)); err == nil {
			t.Errorf("%s: read %d bytes", name, n)
		}
	}
	if _, err := net.Dial("tcp", at); err == nil {
		t.Error("the port is still open")
	}
}
