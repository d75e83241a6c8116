package dns

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// start serves UDP and TCP at one port of 127.0.0.1 until the test ends.
func start(t testing.TB, s *Server) netip.AddrPort {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	pc, l := bind(t)
	done := make(chan error)
	go func() { done <- s.ServePacket(ctx, pc) }()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _ = s.ServeStream(ctx, c) }()
		}
	}()
	t.Cleanup(func() {
		cancel()
		if err := testenv.Receive(t, "the end", done); !errors.Is(err, context.Canceled) {
			t.Errorf("ServePacket: %v", err)
		}
		pc.Close()
		l.Close()
	})
	return pc.LocalAddr().(*net.UDPAddr).AddrPort()
}

// bind finds a port that is free for UDP and for TCP.
func bind(t testing.TB) (net.PacketConn, net.Listener) {
	t.Helper()
	for range 100 {
		pc, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if l, err := net.Listen("tcp", pc.LocalAddr().String()); err == nil {
			return pc, l
		}
		pc.Close()
	}
	t.Fatal("no port is free for both")
	return nil, nil
}

// goResolver is the resolver of Go programs, asking one server over network.
func goResolver(network string, at netip.AddrPort) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, at.String())
	}}
}

func TestGoResolver(t *testing.T) {
	s := newServer("open.example", "host.internal")
	at := start(t, s)
	for _, network := range []string{"udp", "tcp"} {
		t.Run(network, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			r := goResolver(network, at)
			for _, name := range []string{"open.example.", "Www.OPEN.example.", "host.internal."} {
				addrs, err := r.LookupNetIP(ctx, "ip", name)
				if err != nil || len(addrs) != 2 || !s.Names.Owns(addrs[0]) || !s.Names.Owns(addrs[1]) {
					t.Fatalf("%s: %v, %v", name, addrs, err)
				}
				back, err := r.LookupAddr(ctx, addrs[0].Unmap().String())
				if err != nil || len(back) != 1 || back[0] != strings.ToLower(name) {
					t.Errorf("%s: back %q, %v", addrs[0], back, err)
				}
			}
			_, mx := r.LookupMX(ctx, "open.example.")
			_, txt := r.LookupTXT(ctx, "open.example.")
			_, _, srv := r.LookupSRV(ctx, "ldap", "tcp", "open.example.")
			_, closed := r.LookupNetIP(ctx, "ip4", "closed.example.")
			_, public := r.LookupAddr(ctx, "8.8.8.8")
			for what, err := range map[string]error{"MX": mx, "TXT": txt, "SRV": srv, "closed": closed, "PTR": public} {
				if e, ok := errors.AsType[*net.DNSError](err); !ok || !e.IsNotFound {
					t.Errorf("%s: %v, want not found", what, err)
				}
			}
		})
	}
}

// TestDig asks with BIND's client, which checks what it gets.
func TestDig(t *testing.T) {
	testenv.Need(t, "dig")
	s := newServer("open.example")
	at := start(t, s)
	addr, _ := s.Names.Address("open.example", false)
	for _, tt := range []struct{ args, want, not string }{
		{"+short open.example A", addr.String(), ""},
		{"+tcp +short oPeN.example A", addr.String(), ""},
		{"oPeN.example A", "oPeN.example.\t\t60\tIN\tA\t" + addr.String(), "WARNING"},
		{"open.example HTTPS", "status: NOERROR", "WARNING"},
		{"open.example TXT", "ANSWER: 0", "WARNING"},
		{"+notcp open.example ANY", "status: REFUSED", "WARNING"},
		{"closed.example A", "EDE: 18 (Prohibited): (" + why + ")", "WARNING"},
		{"+noedns closed.example A", "status: NXDOMAIN", "EDE"},
		{"+edns=7 +noednsnegotiation open.example A", "status: BADVERS", "WARNING"},
		{"+opcode=STATUS open.example A", "status: NOTIMP", ""},
		{"+dnssec +bufsize=512 +cookie open.example A", "flags: do; udp: 1232", "WARNING"},
		{"-c CH version.bind TXT", "status: REFUSED", ""},
		{"-x " + addr.String(), "PTR\topen.example.", "WARNING"},
		{"+tcp AXFR open.example", "Transfer failed", ""},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		args := append(strings.Fields("-r +tries=1 +timeout=20 -p "+at.String()[10:]+" @127.0.0.1"), strings.Fields(tt.args)...)
		out, err := exec.CommandContext(ctx, "dig", args...).CombinedOutput()
		cancel()
		if err != nil || !strings.Contains(string(out), tt.want) || tt.not != "" && strings.Contains(string(out), tt.not) {
			t.Errorf("dig %s: %v, want %q, not %q:\n%s", tt.args, err, tt.want, tt.not, out)
		}
	}
}

// TestGarbageDoesNotStop: after datagrams of every sort the socket still
// answers, and no goroutine was left for any of them.
func TestGarbageDoesNotStop(t *testing.T) {
	s := newServer("open.example")
	c, err := net.Dial("udp", start(t, s).String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	before := runtime.NumGoroutine()
	for n := range 300 {
		if _, err := c.Write(make([]byte, n*40%6000)); err != nil {
			t.Fatal(err)
		}
	}
	testenv.Until(t, "the end of the goroutines", func() bool { return runtime.NumGoroutine() <= before })
	if got := exchange(t, c, 200); !strings.HasPrefix(got, "Success A ") {
		t.Error(got)
	}
}

// exchange asks once a tenth of a second and returns the first answer that
// has the query's id.
func exchange(t testing.TB, c net.Conn, tries int) string {
	t.Helper()
	buf := make([]byte, 2000)
	for range tries {
		_, _ = c.Write(ask{name: "open.example.", typ: dnsmessage.TypeA}.pack(t))
		_ = c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		for {
			n, err := c.Read(buf)
			if err != nil {
				break
			}
			if n > 2 && binary.BigEndian.Uint16(buf) == id {
				return summary(unpack(t, buf[:n]))
			}
		}
	}
	return "no answer"
}

func TestSocketIsClosed(t *testing.T) {
	for what, end := range map[string]func(net.PacketConn, context.CancelFunc){
		"closed": func(pc net.PacketConn, _ context.CancelFunc) { pc.Close() },
		"ended":  func(_ net.PacketConn, cancel context.CancelFunc) { cancel() },
	} {
		pc, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		time.AfterFunc(20*time.Millisecond, func() { end(pc, cancel) })
		if err := newServer().ServePacket(ctx, pc); !errors.Is(err, net.ErrClosed) && !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", what, err)
		}
		cancel()
		pc.Close()
	}
}

// A brokenSocket fails at every read.
type brokenSocket struct{ net.PacketConn }

func (brokenSocket) ReadFrom([]byte) (int, net.Addr, error) { return 0, nil, os.ErrPermission }
func (brokenSocket) LocalAddr() net.Addr                    { return &net.UDPAddr{} }
func (brokenSocket) SetDeadline(time.Time) error            { return nil }

func TestBrokenSocketEnds(t *testing.T) {
	if err := newServer().ServePacket(t.Context(), brokenSocket{}); err == nil || !strings.Contains(err.Error(), "fails again") {
		t.Errorf("got %v", err)
	}
}

// TestUnixDatagrams: sockets that are not UDP are served too.
func TestUnixDatagrams(t *testing.T) {
	dir := t.TempDir()
	pc, err := net.ListenPacket("unixgram", dir+"/s")
	if err != nil {
		t.Fatal(err)
	}
	defer pc.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { _ = newServer("open.example").ServePacket(ctx, pc) }()
	c, err := net.DialUnix("unixgram", &net.UnixAddr{Name: dir + "/c", Net: "unixgram"}, &net.UnixAddr{Name: dir + "/s", Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got := exchange(t, c, 200); !strings.HasPrefix(got, "Success A ") {
		t.Error(got)
	}
}

// frame puts a length before each message.
func frame(msgs ...[]byte) []byte {
	var out []byte
	for _, m := range msgs {
		out = append(binary.BigEndian.AppendUint16(out, uint16(len(m))), m...)
	}
	return out
}

// stream runs ServeStream inside a bubble and returns the client's end and
// its outcome.
func stream(ctx context.Context) (net.Conn, <-chan error) {
	ours, theirs := net.Pipe()
	done := make(chan error, 1)
	go func() { done <- newServer("open.example").ServeStream(ctx, ours) }()
	return theirs, done
}

func TestStreamPipelines(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	ours, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- newServer("open.example").ServeStream(t.Context(), ours) }()
	q := ask{name: "open.example.", typ: dnsmessage.TypeA}.pack(t)
	for range 50 {
		if _, err := c.Write(frame(q, q, q, q)); err != nil {
			t.Fatal(err)
		}
	}
	for range 200 {
		var size [2]byte
		if _, err := io.ReadFull(c, size[:]); err != nil {
			t.Fatal(err)
		}
		msg := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(c, msg); err != nil {
			t.Fatal(err)
		}
		if got := summary(unpack(t, msg)); !strings.HasPrefix(got, "Success A ") {
			t.Fatal(got)
		}
	}
	c.Close()
	if err := testenv.Receive(t, "the end", done); err != nil {
		t.Errorf("the client closed: %v", err)
	}
	if _, err := ours.Write([]byte{0}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the connection is open: %v", err)
	}
}

func TestStreamEnds(t *testing.T) {
	q := ask{name: "open.example.", typ: dnsmessage.TypeA}.pack(t)
	answer := append([]byte{q[0], q[1], q[2] | 0x80}, q[3:]...)
	for _, tt := range []struct {
		name  string
		send  []byte
		after time.Duration
		want  error
	}{
		{"silence", nil, idle, os.ErrDeadlineExceeded},
		{"one byte", []byte{0}, idle, os.ErrDeadlineExceeded},
		{"half a message", frame(q)[:20], idle, os.ErrDeadlineExceeded},
		{"answers are not read", frame(q), idle, os.ErrDeadlineExceeded},
		{"too long", []byte{0x10, 0x01}, 0, errFormat},
		{"empty", []byte{0, 0}, 0, errFormat},
		{"an answer", frame(answer), 0, errFormat},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, done := stream(t.Context())
				defer c.Close()
				begin := time.Now()
				if _, err := c.Write(tt.send); err != nil {
					t.Fatal(err)
				}
				if err := testenv.Receive(t, "the end", done); !errors.Is(err, tt.want) || time.Since(begin) != tt.after {
					t.Errorf("got %v after %v, want %v after %v", err, time.Since(begin), tt.want, tt.after)
				}
			})
		})
	}
}

// TestStreamDrips: a client that sends a byte now and then does not hold the
// connection for longer than one that is silent.
func TestStreamDrips(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, done := stream(t.Context())
		defer c.Close()
		begin := time.Now()
		go func() {
			for _, b := range frame(ask{name: "open.example.", typ: dnsmessage.TypeA}.pack(t)) {
				if _, err := c.Write([]byte{b}); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		}()
		if err := testenv.Receive(t, "the end", done); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begin) != idle {
			t.Errorf("got %v after %v", err, time.Since(begin))
		}
		time.Sleep(2 * time.Second) // the client notices
	})
}

func TestStreamIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c, done := stream(ctx)
		defer c.Close()
		begin := time.Now()
		synctest.Wait()
		cancel()
		if err := testenv.Receive(t, "the end", done); !errors.Is(err, context.Canceled) || time.Since(begin) != 0 {
			t.Errorf("got %v after %v", err, time.Since(begin))
		}
	})
}
