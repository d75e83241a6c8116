package relay

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// The client ends first and still gets the whole answer; so it does where the
// server ends first and then still listens.
func TestHalfClose(t *testing.T) {
	r := newRig(t, sink, nil)
	big := strings.Repeat("\x00half", 1<<20)
	if got, err := r.says(big); err != nil || got != big {
		t.Errorf("got %d bytes, %v; want all %d after our end", len(got), err, len(big))
	}
	e := r.recorded("end", 1)
	if e.Details["bytesIn"] != "5242880" || e.Details["bytesOut"] != "5242880" || e.Bytes != 2*5242880 || e.Reason != "" {
		t.Errorf("recorded %+v", e)
	}

	heard := make(chan string, 1)
	r = newRig(t, func(c net.Conn) {
		io.WriteString(c, "bye")
		c.(*net.TCPConn).CloseWrite()
		b, _ := io.ReadAll(c)
		heard <- string(b)
	}, nil)
	c := r.connect()
	if b, err := io.ReadAll(c); err != nil || string(b) != "bye" {
		t.Errorf("got %q, %v", b, err)
	}
	io.WriteString(c, "\x00after your end")
	c.CloseWrite()
	if got := testenv.Receive(t, "what is heard", heard); got != "\x00after your end" {
		t.Errorf("the server heard %q after its end", got)
	}
}

// A client that ends and does not wait for the server's last words has ended in
// an orderly way.
func TestGoneFirst(t *testing.T) {
	r := newRig(t, func(c net.Conn) {
		io.Copy(io.Discard, c)
		io.WriteString(c, "x")
		time.Sleep(50 * time.Millisecond) // the client's reset is on its way
	}, nil)
	c := r.connect()
	io.WriteString(c, "\x00hello")
	c.Close()
	if e := r.recorded("end", 1); e.Resolved != bawn.Allow || e.Reason != "" || e.Details["bytesIn"] != "1" || e.Details["bytesOut"] != "6" {
		t.Errorf("recorded %+v", e)
	}
}

// A reset of one side is a reset at the other, at once, and not an orderly end
// that half an answer could be taken for the whole by.
func TestReset(t *testing.T) {
	got := make(chan error, 1)
	r := newRig(t, func(c net.Conn) {
		io.WriteString(c, "x")
		_, err := io.Copy(io.Discard, c)
		got <- err
	}, nil)
	c := r.connect()
	io.WriteString(c, "\x00hello")
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	reset(c)
	if err := testenv.Receive(t, "an answer", got); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the guest's reset reached the server as %v", err)
	}
	if e := r.recorded("end", 1); e.Reason == "" {
		t.Error("the record does not say how the connection ended")
	}

	r = newRig(t, func(c net.Conn) {
		io.WriteString(c, "half an ans")
		io.ReadFull(c, make([]byte, 1))
		reset(c)
	}, nil)
	c = r.connect()
	io.ReadFull(c, make([]byte, 11))
	io.WriteString(c, "\x00")
	if _, err := io.ReadAll(c); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the server's reset reached the guest as %v", err)
	}
}

// Close ends connections that wait for the guest, for the host, for room on
// either side, and for a human; the ends are recorded when it returns.
func TestClose(t *testing.T) {
	stuck := make(chan struct{})
	r := newRig(t, func(net.Conn) { <-stuck }, nil) // reads nothing
	idle, full := r.connect(), r.connect()
	io.WriteString(idle, "\x00")
	full.SetWriteDeadline(time.Now().Add(300 * time.Millisecond))
	if n, err := full.Write(bytes.Repeat([]byte{0}, 64<<20)); err == nil {
		t.Fatalf("control: all %d bytes fit into the buffers", n)
	}
	silent := r.connect()
	testenv.Until(t, "three connections", func() bool { return r.dials.Load() == 3 })
	began := time.Now()
	r.Close()
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("Close took %v", took)
	}
	r.recorded("end", 3)
	for name, c := range map[string]net.Conn{"idle": idle, "full": full, "silent": silent} {
		c.SetDeadline(time.Now().Add(20 * time.Second))
		if _, err := c.Read(make([]byte, 1)); !isReset(err) {
			t.Errorf("%s: %v; want a reset", name, err)
		}
	}
	close(stuck)
	late, err := net.Dial("tcp", r.guest.Addr().String())
	if err == nil {
		late.SetDeadline(time.Now().Add(20 * time.Second))
		if _, err := late.Read(make([]byte, 1)); !isReset(err) {
			t.Errorf("after the end: %v; want a reset", err)
		}
		late.Close()
	}
}
