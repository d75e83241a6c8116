package webui

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// A wire is a connection from an address, of which nothing comes.
type wire struct {
	net.Conn
	from   string
	closed bool
}

func (w *wire) RemoteAddr() net.Addr { return address(w.from) }
func (w *wire) Close() error         { w.closed = true; return nil }

type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }

// TestCrowd: one network has its share, and strangers make room for others. The
// control is the same crowd without shares, of devices that have logged in.
func TestCrowd(t *testing.T) {
	c := newCrowd(nil)
	c.each, c.local, c.all = 3, 4, 11
	come := func(from string) (*member, *wire) {
		w := &wire{from: from}
		m, why := c.admit(w)
		if m == nil && why == "" {
			t.Errorf("%s: nobody says why not", from)
		}
		return m, w
	}
	// take has many come, all of whom get in, and returns how many stay.
	take := func(from ...string) int {
		last := ""
		for i := range 20 {
			m, w := come(from[i%len(from)])
			if m == nil || w.closed {
				t.Fatalf("%s: the last to come is closed", from)
			}
			last = m.peer.String()
		}
		for peer, n := range c.strangers {
			if peer.String() == last {
				return n
			}
		}
		return 0
	}
	first, wired := come("192.0.2.1:5")
	guest := func(m *member) context.Context { return context.WithValue(t.Context(), memberKey{}, m) }
	c.knows(guest(first), "phone")
	if n := take("192.0.2.1:1", "[::ffff:192.0.2.1]:1"); n != 3 {
		t.Errorf("one address has %d; want 3", n)
	}
	if n := take("[2001:db8::1]:1", "[2001:db8::2]:1"); n != 3 {
		t.Errorf("a /64 has %d; want 3", n)
	}
	if n := take("127.0.0.1:1"); n != 4 {
		t.Errorf("loopback has %d; want 4", n)
	}
	c.knows(guest(first), "phone") // each request says it
	c.knows(t.Context(), "phone")  // over no connection
	for i := range 99 {
		if m, _ := come(fmt.Sprintf("198.51.100.%d:1", i)); m == nil {
			t.Errorf("stranger %d finds no room that other strangers have", i)
		}
	}
	if wired.closed || len(c.members) != 11 {
		t.Errorf("the connection of a login was closed: %v; %d are there", wired.closed, len(c.members))
	}
	for m := range c.members { // the control
		c.knows(guest(m), fmt.Sprint("device", m.number%2))
	}
	if m, _ := come("203.0.113.1:1"); m != nil {
		t.Error("a connection of a device was closed for a stranger")
	}
	if err := first.Close(); err != nil || first.Close() != nil || !wired.closed {
		t.Errorf("closed: %v", err)
	}
	if m, _ := come("203.0.113.1:1"); m == nil {
		t.Error("no room after one has gone")
	}
	for m := range c.members {
		_ = m.Close()
	}
	if len(c.members)+len(c.strangers)+len(c.devices) != 0 {
		t.Errorf("left: %d %v %v", len(c.members), c.strangers, c.devices)
	}
}

// TestDeviceHasItsShare too: what is more counts as a stranger's.
func TestDeviceHasItsShare(t *testing.T) {
	c := newCrowd(nil)
	for i := range maxOfDevice + 5 {
		m, _ := c.admit(&wire{from: fmt.Sprintf("192.0.2.%d:1", i)})
		c.knows(context.WithValue(t.Context(), memberKey{}, m), "phone")
		if known := m.device != ""; known != (i < maxOfDevice) {
			t.Errorf("connection %d is the device's: %t", i, known)
		}
	}
}

// dial connects without a word.
func (r *rig) dial(t *testing.T) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", r.port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// ends reports whether the other side has closed.
func ends(conn net.Conn, within time.Duration) bool {
	_ = conn.SetReadDeadline(time.Now().Add(within))
	_, err := io.Copy(io.Discard, conn)
	return !errors.Is(err, os.ErrDeadlineExceeded)
}

// TestCrowdOfConnections fills the page with connections over which nothing comes.
// Who has logged in before goes on, and somebody else gets in. The control is the
// same crowd with nobody in it who could be closed.
func TestCrowdOfConnections(t *testing.T) {
	r := newRig(t)
	before := r.paired(t, false)
	if status := before.looks(); status != http.StatusOK {
		t.Fatalf("before: %d", status)
	}
	r.crowd.mu.Lock()
	r.crowd.local, r.crowd.all = 20, 40
	r.crowd.mu.Unlock()
	var conns []net.Conn
	for range 60 {
		conns = append(conns, r.dial(t))
	}
	for i, conn := range conns[:40] {
		if !ends(conn, 20*time.Second) {
			t.Errorf("number %d of 60 is still open; want the last 20", i)
			break
		}
	}
	if status, _ := r.browser(t).call("AuthService/Me", words{}); status != http.StatusOK { // the share is full
		t.Errorf("somebody else of that network: %d", status)
	}
	if status := before.looks(); status != http.StatusOK {
		t.Errorf("who had logged in: %d", status)
	}
	if !r.records.has(opRefuse, "too many connections of its network") {
		t.Error("not recorded")
	}
	r.crowd.mu.Lock()
	r.crowd.local, r.crowd.all = 1000, 30 // as if they came from many networks
	r.crowd.mu.Unlock()
	for range 40 {
		r.dial(t)
	}
	b := r.browser(t)
	if status, _ := b.call("AuthService/Me", words{}); status != http.StatusOK {
		t.Errorf("somebody else: %d", status)
	}
	if status := before.looks(); status != http.StatusOK {
		t.Errorf("who had logged in, in the crowd: %d", status)
	}

	r.crowd.mu.Lock()
	for m := range r.crowd.members { // the control: nobody makes room
		if m.device == "" {
			less(r.crowd.strangers, m.peer)
			m.device = "x"
			r.crowd.devices["x"]++
		}
	}
	r.crowd.mu.Unlock()
	late := r.browser(t)
	if answer, err := late.client.Do(late.request("AuthService/Me", words{})); err == nil {
		answer.Body.Close()
		t.Error("a connection was let in where there is no room")
	}
}

// TestStrangersDontStay: who asks for nothing goes soon, with TLS and without,
// over both protocols; who has logged in stays.
func TestStrangersDontStay(t *testing.T) {
	r := newRig(t)
	b := r.paired(t, false)
	if status := b.looks(); status != http.StatusOK {
		t.Fatalf("before: %d", status)
	}
	r.crowd.mu.Lock()
	r.crowd.idle = 300 * time.Millisecond
	r.crowd.mu.Unlock()
	silent := r.dial(t)
	all := map[string]net.Conn{"no word": silent}
	for _, proto := range []string{"h2", "http/1.1"} {
		conn := tls.Client(r.dial(t), &tls.Config{RootCAs: r.roots, ServerName: "localhost", NextProtos: []string{proto}})
		if err := conn.Handshake(); err != nil {
			t.Fatal(err)
		}
		all[proto] = conn
		if proto == "h2" {
			fmt.Fprint(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00") // RFC 9113, section 3.4: and no settings
		} else {
			fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", strings.TrimPrefix(r.origin, "https://"))
		}
	}
	for name, conn := range all {
		if !ends(conn, 4*time.Second) { // less than headerTime
			t.Errorf("%s: it stays", name)
		}
	}
	members := func() int { r.crowd.mu.Lock(); defer r.crowd.mu.Unlock(); return len(r.crowd.members) }
	if n := members(); n != 1 {
		t.Errorf("%d are there; want the device's", n)
	}
	if status := b.looks(); status != http.StatusOK {
		t.Errorf("who has logged in: %d", status)
	}
}
