package dial

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/bawn-dev/bawn/internal/testenv/listening"
)

// A server accepts at an address, says so to every client, and counts them.
type server struct {
	net.Listener
	at    netip.AddrPort
	count atomic.Int32
}

const greeting = "hello\n"

func listen(t testing.TB, address string) *server {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	s := &server{Listener: l, at: l.Addr().(*net.TCPAddr).AddrPort()}
	listening.Accept(t, l, func(c net.Conn) {
		s.count.Add(1)
		_, _ = io.WriteString(c, greeting)
	})
	return s
}

// only allows some addresses.
func only(addrs ...string) func(string, netip.Addr, uint16) bool {
	return func(_ string, a netip.Addr, _ uint16) bool {
		for _, s := range addrs {
			if a == netip.MustParseAddr(s) {
				return true
			}
		}
		return false
	}
}

// answers is a resolver that gives one answer after the other, then the last
// again.
func answers(asked *atomic.Int32, each ...[]string) func(context.Context, string) ([]netip.Addr, error) {
	return func(context.Context, string) ([]netip.Addr, error) {
		n := min(int(asked.Add(1))-1, len(each)-1)
		var out []netip.Addr
		for _, s := range each[n] {
			out = append(out, netip.MustParseAddr(s))
		}
		return out, nil
	}
}

// greeted dials and wants the greeting from an address.
func greeted(t *testing.T, d *Dialer, host string, port uint16, want string) {
	t.Helper()
	c, at, err := d.Dial(t.Context(), host, port)
	if err != nil {
		t.Errorf("Dial(%s): %v", host, err)
		return
	}
	defer c.Close()
	text, _ := io.ReadAll(c)
	if string(text) != greeting || at.Addr().String() != want || at.Port() != port || c.RemoteAddr().String() != at.String() {
		t.Errorf("Dial(%s): %q from %s (%s), want %s", host, text, at, c.RemoteAddr(), want)
	}
}

// refused dials and wants a refusal for a class.
func refused(t *testing.T, d *Dialer, host string, port uint16, class string) {
	t.Helper()
	c, _, err := d.Dial(t.Context(), host, port)
	if c != nil {
		c.Close()
	}
	e, ok := errors.AsType[*RefusedError](err)
	if !ok || e.Class != class || !strings.Contains(err.Error(), class) || !strings.Contains(err.Error(), e.Addr.String()) {
		t.Errorf("Dial(%s): %v; want it refused as %q", host, err, class)
	}
}

func TestLoopbackIsRefused(t *testing.T) {
	s := listen(t, "127.0.0.1:0")
	var asked atomic.Int32
	for _, a := range []string{"127.0.0.1", "::ffff:127.0.0.1"} {
		lookup := answers(&asked, []string{a})
		refused(t, &Dialer{Lookup: lookup}, "inner.example", s.at.Port(), "loopback")
		refused(t, &Dialer{}, a, s.at.Port(), "loopback")
		if n := s.count.Load(); n != 0 {
			t.Fatalf("%d connections arrived", n)
		}
		greeted(t, &Dialer{Lookup: lookup, Allow: only("127.0.0.1")}, "inner.example", s.at.Port(), "127.0.0.1")
		greeted(t, &Dialer{Allow: only("127.0.0.1")}, a, s.at.Port(), "127.0.0.1")
		s.count.Store(0)
	}
	refused(t, &Dialer{}, "localhost", s.at.Port(), "loopback") // by /etc/hosts
	refused(t, &Dialer{Lookup: answers(&asked, []string{"127.0.0.1"}), Allow: only("127.0.0.2")}, "inner.example", s.at.Port(), "loopback")
}

func TestEverySortIsRefused(t *testing.T) {
	var asked atomic.Int32
	for a, class := range map[string]string{
		"169.254.169.254": "cloud metadata", "10.0.0.1": "private", "100.64.0.1": "carrier-grade NAT", "0.0.0.0": "unspecified", "::": "unspecified",
		"::ffff:10.0.0.1": "private", "64:ff9b::a00:1": "private", "2002:a00:1::": "6to4", "2001:0:1::": "Teredo", "224.0.0.1": "multicast", "255.255.255.255": "broadcast",
		"fe80::1%lo": "link-local", "fd62:6177:6e00::1": "private", "198.18.0.1": "benchmarking",
	} {
		refused(t, &Dialer{Lookup: answers(&asked, []string{a, "192.168.0.1"})}, "x.example", 80, class)
	}
}

// TestRebinding: the name answers first with an address that is permitted,
// then with one that is not. Control: who checks one answer and lets the
// connection resolve again arrives at the second.
func TestRebinding(t *testing.T) {
	inner := listen(t, "127.0.0.1:0")
	outer := listen(t, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.2"), inner.at.Port()).String())
	var asked atomic.Int32
	lookup := answers(&asked, []string{"127.0.0.2"}, []string{"127.0.0.1"})
	greeted(t, &Dialer{Lookup: lookup, Allow: only("127.0.0.2")}, "x.example", outer.at.Port(), "127.0.0.2")
	if inner.count.Load() != 0 || asked.Load() != 1 {
		t.Errorf("%d connections to the inner server, %d questions", inner.count.Load(), asked.Load())
	}

	asked.Store(0)
	first, _ := lookup(t.Context(), "x.example")
	if Class(first[0]) != "loopback" || !only("127.0.0.2")("", first[0], 0) {
		t.Fatal("control: the first answer does not pass")
	}
	second, _ := lookup(t.Context(), "x.example")
	c, err := net.Dial("tcp", netip.AddrPortFrom(second[0], inner.at.Port()).String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.ReadAll(c); err != nil || inner.count.Load() != 1 {
		t.Errorf("control: %v, %d connections to the inner server", err, inner.count.Load())
	}
}

func TestMixedAnswer(t *testing.T) {
	inner := listen(t, "127.0.0.1:0")
	outer := listen(t, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.2"), inner.at.Port()).String())
	var asked atomic.Int32
	for _, answer := range [][]string{{"127.0.0.1", "::1", "127.0.0.2"}, {"127.0.0.2", "127.0.0.1"}} {
		d := &Dialer{Lookup: answers(&asked, answer), Allow: only("127.0.0.2")}
		greeted(t, d, "x.example", outer.at.Port(), "127.0.0.2")
		defer func() { // when the permitted one has gone, the others don't stand in for it
			if c, _, err := d.Dial(t.Context(), "x.example", outer.at.Port()); err == nil || inner.count.Load() != 0 {
				t.Errorf("%v: %v, %v, %d connections to the refused address", answer, c, err, inner.count.Load())
			}
		}()
	}
	outer.Close()
}

func TestOwnAddresses(t *testing.T) {
	var asked atomic.Int32
	public := []string{"8.8.8.8", "::ffff:8.8.8.8", "64:ff9b::808:808"}
	for _, a := range public {
		d := &Dialer{Lookup: answers(&asked, []string{a}), Own: func() ([]netip.Addr, error) { return []netip.Addr{netip.MustParseAddr("8.8.8.8")}, nil }}
		refused(t, d, "x.example", 80, own)
	}
	d := &Dialer{Lookup: answers(&asked, public), Own: func() ([]netip.Addr, error) { return nil, os.ErrPermission }}
	if c, _, err := d.Dial(t.Context(), "x.example", 80); !errors.Is(err, os.ErrPermission) {
		t.Errorf("own addresses are not known: %v, %v", c, err)
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil || len(addrs) == 0 {
		t.Fatal(addrs, err)
	}
	mine, err := (&Dialer{}).own()
	if err != nil || len(mine) != len(addrs) {
		t.Errorf("own addresses %v, %v; want %v", mine, err, addrs)
	}
}

func TestNoHosts(t *testing.T) {
	var asked atomic.Int32
	allow := func(string, netip.Addr, uint16) bool { return true }
	d := &Dialer{Lookup: answers(&asked, []string{"127.0.0.1"}), Allow: allow}
	for _, host := range []string{"", "0x7f.1", "2130706433", "127.1", "a b.example", "x.example:80", "user@x.example", "ex\u00e4mple.com", "fe80::1%lo"} {
		if c, _, err := d.Dial(t.Context(), host, 80); err == nil {
			t.Errorf("%q: connected to %s", host, c.RemoteAddr())
		}
	}
	if c, _, err := d.Dial(t.Context(), "x.example", 0); !errors.Is(err, errPort) {
		t.Errorf("port 0: %v, %v", c, err)
	}
	if asked.Load() != 0 {
		t.Errorf("%d questions were asked for what is no host", asked.Load())
	}
	d.Lookup = answers(&asked, nil)
	if _, _, err := d.Dial(t.Context(), "x.example", 80); !errors.Is(err, errEmpty) {
		t.Errorf("an empty answer: %v", err)
	}
	d.Lookup = func(context.Context, string) ([]netip.Addr, error) { return nil, os.ErrNotExist }
	if _, _, err := d.Dial(t.Context(), "x.example", 80); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a failed lookup: %v", err)
	}
}

func timedOut(err error) bool {
	e, ok := errors.AsType[net.Error](err)
	return ok && e.Timeout()
}

func TestDeadAddressFirst(t *testing.T) {
	s := listen(t, "127.0.0.1:0")
	var asked atomic.Int32
	d := &Dialer{Lookup: answers(&asked, []string{"127.0.0.3", "127.0.0.4", "127.0.0.1"}), Allow: only("127.0.0.3", "127.0.0.4", "127.0.0.1")}
	greeted(t, d, "x.example", s.at.Port(), "127.0.0.1")
	s.Close()
	if _, _, err := d.Dial(t.Context(), "x.example", s.at.Port()); err == nil || !strings.Contains(err.Error(), "2 other addresses") {
		t.Errorf("all dead: %v", err)
	}
}

func TestAlternate(t *testing.T) {
	parse := func(s string) (out []netip.Addr) {
		for _, f := range strings.Fields(s) {
			out = append(out, netip.MustParseAddr(f))
		}
		return out
	}
	for in, want := range map[string]string{
		"::1 ::2 ::3 1.0.0.1":     "::1 1.0.0.1 ::2 ::3",
		"1.0.0.1 1.0.0.2 ::1":     "1.0.0.1 ::1 1.0.0.2",
		"1.0.0.1":                 "1.0.0.1",
		"::1 1.0.0.1 1.0.0.2 ::2": "::1 1.0.0.1 ::2 1.0.0.2",
	} {
		got := alternate(parse(in))
		for i, a := range parse(want) {
			if len(got) != len(parse(in)) || got[i] != a {
				t.Errorf("%s: got %v, want %s", in, got, want)
				break
			}
		}
	}
}

// TestNothingIsLeft: whether a dial wins, fails or is given up, no goroutine
// stays behind.
func TestNothingIsLeft(t *testing.T) {
	s := listen(t, "127.0.0.1:0")
	before := runtime.NumGoroutine()
	var asked atomic.Int32
	allow := func(string, netip.Addr, uint16) bool { return true }
	for i := range 50 {
		ctx, cancel := context.WithCancel(t.Context())
		d := &Dialer{Lookup: answers(&asked, []string{"127.0.0.9", "127.0.0.1", "127.0.0.1", "127.0.0.10"}), Allow: allow}
		if i%2 == 0 {
			cancel()
		}
		c, _, err := d.Dial(ctx, "x.example", s.at.Port())
		if c != nil {
			c.Close()
		}
		if (err == nil) != (i%2 == 1) || err != nil && !errors.Is(err, context.Canceled) {
			t.Fatalf("%d: %v", i, err)
		}
		cancel()
	}
	testenv.Until(t, "the end of the goroutines", func() bool { return runtime.NumGoroutine() <= before })
}

// TestControlHolds: should a dial ever be about to go elsewhere, the socket
// is not connected.
func TestControlHolds(t *testing.T) {
	s := listen(t, "127.0.0.1:0")
	check := exactly(netip.AddrPortFrom(netip.MustParseAddr("127.0.0.2"), s.at.Port()))
	d := net.Dialer{Control: check}
	if c, err := d.Dial("tcp", s.at.String()); err == nil || !strings.Contains(err.Error(), "BUG(bawn)") {
		t.Errorf("got %v, %v", c, err)
	}
	d = net.Dialer{Control: exactly(s.at)}
	c, err := d.Dial("tcp", s.at.String())
	if err != nil {
		t.Fatalf("control: %v", err)
	}
	c.Close()
}

func BenchmarkDial(b *testing.B) {
	s := listen(b, "127.0.0.1:0")
	var asked atomic.Int32
	d := &Dialer{Lookup: answers(&asked, []string{"127.0.0.1"}), Allow: only("127.0.0.1")}
	b.ReportAllocs()
	for b.Loop() {
		c, _, err := d.Dial(b.Context(), "x.example", s.at.Port())
		if err != nil {
			b.Fatal(err)
		}
		c.Close()
	}
}
