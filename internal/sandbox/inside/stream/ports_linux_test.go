package stream

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// tunnelled returns a port of loopback from which connections go through a
// tunnel to reach.
func tunnelled(t *testing.T, reach func(uint16) (*os.File, error)) string {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := free.Addr().(*net.TCPAddr).Port
	free.Close()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	control, err := Serve(os.NewFile(uintptr(fds[1]), "wire"), []string{PortsWord, fmt.Sprint(port)})
	if err != nil {
		t.Fatal(err)
	}
	h, err := OpenPorts(os.NewFile(uintptr(fds[0]), "wire"), Ports{Open: []uint16{uint16(port)}, Reach: reach})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		h.Close()
		control.Close()
	})
	return fmt.Sprintf("127.0.0.1:%d", port)
}

// echo serves connections with what they say, until their end.
func echo(t *testing.T) (reach func(uint16) (*os.File, error)) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			go func() {
				_, _ = io.Copy(c, c)
				c.Close()
			}()
		}
	}()
	return func(uint16) (*os.File, error) {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			return nil, err
		}
		defer c.Close()
		return c.(*net.TCPConn).File()
	}
}

// TestPorts carries more connections than there may be at a time, with more
// bytes than a window holds.
func TestPorts(t *testing.T) {
	at := tunnelled(t, echo(t))
	text := bytes.Repeat([]byte("sixteen bytes..\n"), 3*window/16)
	var all sync.WaitGroup
	for i := range mostPorts + 20 {
		all.Go(func() {
			c, err := net.Dial("tcp", at)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
				t.Error(err)
			}
			part := text[:len(text)>>min(i, 12)]
			go func() {
				_, _ = c.Write(part)
				_ = c.(*net.TCPConn).CloseWrite()
			}()
			if got, err := io.ReadAll(c); err != nil || !bytes.Equal(got, part) {
				t.Errorf("%d: %d bytes came back, %v; want %d", i, len(got), err, len(part))
			}
		})
	}
	all.Wait()
}

// TestPortRefused: what can't be reached is reset, and the next one is asked for.
func TestPortRefused(t *testing.T) {
	at := tunnelled(t, func(uint16) (*os.File, error) { return nil, unix.ECONNREFUSED })
	for range 3 {
		c, err := net.Dial("tcp", at)
		if errors.Is(err, unix.ECONNRESET) {
			continue // that soon
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if n, err := c.Read(make([]byte, 1)); err == nil || n > 0 {
			t.Errorf("read %d, %v; want a reset", n, err)
		}
		c.Close()
	}
}

// TestPortsNotOpen ends the tunnel for connections that are not the sandbox's to
// ask for. The control asks for one that is.
func TestPortsNotOpen(t *testing.T) {
	many := func() (list []frame) {
		for i := range uint32(portsBound + 1) {
			list = append(list, frame{kindDial, fromSandbox | i, []byte{0, 80}})
		}
		return list
	}
	for name, tt := range map[string]struct {
		frames []frame
		goesOn bool
	}{
		"control: one that is open":      {[]frame{{kindDial, fromSandbox | 1, []byte{0, 80}}}, true},
		"another port":                   {[]frame{{kindDial, fromSandbox | 1, []byte{0, 22}}}, false},
		"a number of the host's":         {[]frame{{kindDial, 1, []byte{0, 80}}}, false},
		"a number twice":                 {[]frame{{kindDial, fromSandbox | 1, []byte{0, 80}}, {kindDial, fromSandbox | 1, []byte{0, 80}}}, false},
		"more than there may be":         {many(), false},
		"bytes before there is anything": {[]frame{{kindDial, fromSandbox | 1, []byte{0, 80}}, {kindData, fromSandbox | 1, []byte("x")}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
			if err != nil {
				t.Fatal(err)
			}
			hold := make(chan struct{})
			h, err := OpenPorts(os.NewFile(uintptr(fds[0]), "wire"), Ports{Open: []uint16{80}, Reach: func(uint16) (*os.File, error) {
				<-hold
				return nil, unix.ECONNREFUSED
			}})
			if err != nil {
				t.Fatal(err)
			}
			other := os.NewFile(uintptr(fds[1]), "other")
			defer func() {
				close(hold)
				other.Close()
				h.Close()
				h.Control().Close()
			}()
			for _, f := range tt.frames {
				if _, err := other.Write(f.encode()); err != nil {
					break // it has ended already
				}
			}
			select {
			case <-h.Done():
				if tt.goesOn {
					t.Error("the tunnel has ended")
				}
			case <-time.After(map[bool]time.Duration{true: 100 * time.Millisecond, false: 20 * time.Second}[tt.goesOn]):
				if !tt.goesOn {
					t.Error("the tunnel goes on")
				}
			}
		})
	}
}
