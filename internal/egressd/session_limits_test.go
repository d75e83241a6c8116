package egressd

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/egress"
	"github.com/bawn-dev/bawn/internal/egress/relay"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// limited is a session whose guest, who speaks to its front for proxies,
// reaches an echo on this machine through an opened port.
type limited struct {
	t        *testing.T
	front    net.Listener
	echo     net.Listener
	received atomic.Int64 // by the echo

	mu   sync.Mutex
	told []egress.Denial
	log  string
}

func newLimited(t *testing.T, conns, outMB int64) *limited {
	t.Helper()
	l := &limited{t: t, log: filepath.Join(t.TempDir(), "audit")}
	l.echo, l.front = listening(t), listening(t)
	go l.serveEcho()
	_, port, _ := net.SplitHostPort(l.echo.Addr().String())
	s, err := whole(t.Context(), egress.Config{
		Session: "s", Agent: "a", Mode: bawn.ModeNormal, Workspace: t.TempDir(), Home: t.TempDir(), System: "linux", AuditDir: l.log,
		Place: filepath.Join(t.TempDir(), "place"), Egress: bawn.Egress{HostPorts: []string{port}, MaxConns: conns, MaxOutMB: outMB},
	}, nil, l.hear)
	if err != nil {
		t.Fatal(err)
	}
	s.relay = relay.New(s.options(), 16)
	go func() { _ = s.relay.AcceptProxy(context.Background(), l.front) }()
	t.Cleanup(func() { l.front.Close(); _ = s.close() })
	return l
}

func listening(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func (l *limited) serveEcho() {
	for {
		c, err := l.echo.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			b := make([]byte, 4096)
			for {
				n, err := c.Read(b)
				l.received.Add(int64(n))
				if _, failed := c.Write(b[:n]); err != nil || failed != nil {
					return
				}
			}
		}()
	}
}

func (l *limited) hear(m egress.Message) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m.Denial != nil {
		l.told = append(l.told, *m.Denial)
	}
	return nil
}

func (l *limited) heard() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return fmt.Sprintf("%+v", l.told)
}

// connect opens a tunnel to the echo.
func (l *limited) connect() net.Conn {
	l.t.Helper()
	c, err := net.Dial("tcp", l.front.Addr().String())
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", l.echo.Addr())
	r, err := http.ReadResponse(bufio.NewReader(io.LimitReader(c, 1<<10)), nil)
	if err != nil || r.StatusCode != http.StatusOK {
		l.t.Fatal(r, err)
	}
	return c
}

// echoes reports whether what is said comes back.
func echoes(c net.Conn, text string) bool {
	if _, err := io.WriteString(c, text); err != nil {
		return false
	}
	b := make([]byte, len(text))
	_, err := io.ReadFull(c, b)
	return err == nil && string(b) == text
}

// TestConnectionsPerHost: one more than the limit is refused with what raises
// it, and there is room again when one has ended.
func TestConnectionsPerHost(t *testing.T) {
	for limit, third := range map[int64]bool{2: false, 0: true} {
		l := newLimited(t, limit, 0)
		first, second := l.connect(), l.connect()
		if !echoes(first, "one") || !echoes(second, "two") {
			t.Fatalf("limit %d: the first two do not work: %s", limit, l.heard())
		}
		if got := echoes(l.connect(), "three"); got != third {
			t.Errorf("limit %d: the third works: %v, want %v", limit, got, third)
		}
		const remedy = "isolation.resources.net_connections"
		testenv.Until(t, fmt.Sprintf("limit %d: what the human is told", limit), func() bool { return strings.Contains(l.heard(), remedy) != third })
		first.Close()
		testenv.Until(t, fmt.Sprintf("limit %d: room when one has ended", limit), func() bool { return echoes(l.connect(), "again") })
		testenv.Until(t, fmt.Sprintf("limit %d: what the log says", limit), func() bool { return strings.Contains(l.events(), relay.RuleBusy) != third })
	}
}

func (l *limited) events() string {
	l.t.Helper()
	files, err := filepath.Glob(filepath.Join(l.log, "*"))
	if err != nil || len(files) == 0 {
		l.t.Fatal(files, err)
	}
	var all strings.Builder
	for _, f := range files {
		if text, err := os.ReadFile(f); err == nil {
			all.Write(text)
		}
	}
	return all.String()
}

// TestBytesPerHost: what leaves ends at the limit, over all connections to a
// host.
func TestBytesPerHost(t *testing.T) {
	const more = 3 << 20
	for limit, most := range map[int64]int64{1: 1 << 20, 0: more} {
		l := newLimited(t, 0, limit)
		c := l.connect()
		go func() { _, _ = io.WriteString(c, strings.Repeat("x", more)) }()
		n, _ := io.Copy(io.Discard, io.LimitReader(c, more))
		if got := l.received.Load(); got > most || limit == 0 && n < more {
			t.Errorf("limit %d: %d bytes left and %d came back; want at most %d", limit, got, n, most)
		}
		c.Close()
		left := l.received.Load()
		next := l.connect()
		if got := echoes(next, strings.Repeat("y", 1<<20)); got != (limit == 0) {
			t.Errorf("limit %d: another connection works: %v", limit, got)
		}
		if sent := l.received.Load() - left; limit > 0 && left+sent > most {
			t.Errorf("limit %d: %d bytes and then %d have left", limit, left, sent)
		}
	}
}
