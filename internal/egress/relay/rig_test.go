package relay

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/egress"
	"github.com/bawn-dev/bawn/internal/egress/dns"
	"github.com/bawn-dev/bawn/internal/egress/names"
	"github.com/bawn-dev/bawn/internal/guard"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// site is the name that the rig's guests dial.
const site = "a.example"

// A rig is a relay between real sockets: what its guests dial, to whatever
// host, leads to one server.
type rig struct {
	*Relay
	t     *testing.T
	host  net.Listener // the server
	guest net.Listener // where redirected connections arrive
	proxy net.Listener
	to    atomic.Pointer[netip.AddrPort] // what the guest dialled
	dials atomic.Int64

	mu     sync.Mutex
	events []bawn.Event
	told   []egress.Denial
	broken error // of the log
}

func (r *rig) Record(_ context.Context, e bawn.Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken == nil {
		r.events = append(r.events, e)
	}
	return r.broken
}

type deciderFunc func(bawn.Action) bawn.Decision

func (f deciderFunc) Decide(_ context.Context, a bawn.Action) (bawn.Decision, error) {
	return f(a), nil
}

type approverFunc func(context.Context, bawn.Action) (bawn.Answer, error)

func (f approverFunc) Approve(ctx context.Context, a bawn.Action, _ bawn.Decision) (bawn.Answer, error) {
	return f(ctx, a)
}

func allow(bawn.Action) bawn.Decision {
	return bawn.Decision{Verdict: bawn.Allow, Rule: "isolation:hosts:" + site}
}

func never(string, uint16) bool { return false }

// newRig starts a relay whose server handles each connection with serve. When
// the test has ended, nothing of it may be left. Change may alter the options
// before anything runs.
func newRig(t *testing.T, serve func(net.Conn), change func(*rig)) *rig {
	t.Helper()
	leaves(t)
	r := &rig{t: t, host: listen(t), guest: listen(t), proxy: listen(t)}
	table := names.New()
	r.Relay = New(Options{
		Guard: guard.Guard{Decider: deciderFunc(allow), Recorder: r, Now: time.Now},
		Names: table, DNS: &dns.Server{Names: table}, Dial: r.dialHost, Classes: Classes{HTTP: never}, Now: time.Now,
		Denied: func(d egress.Denial) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.told = append(r.told, d)
		},
	}, 64)
	r.original = func(*net.TCPConn) (netip.AddrPort, error) { return *r.to.Load(), nil }
	r.dialled(site, 9000)
	if change != nil {
		change(r)
	}
	var all sync.WaitGroup
	all.Go(func() { r.Accept(t.Context(), r.guest) })
	all.Go(func() { r.AcceptProxy(t.Context(), r.proxy) })
	all.Go(func() { serveAll(r.host, serve) })
	t.Cleanup(func() {
		r.guest.Close()
		r.proxy.Close()
		r.Close()
		r.host.Close()
		all.Wait()
	})
	return r
}

func serveAll(l net.Listener, serve func(net.Conn)) {
	var all sync.WaitGroup
	defer all.Wait()
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		all.Go(func() {
			defer c.Close()
			c.SetDeadline(time.Now().Add(20 * time.Second))
			serve(c)
		})
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (r *rig) dialHost(ctx context.Context, _ string, _ uint16) (net.Conn, netip.AddrPort, error) {
	r.dials.Add(1)
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", r.host.Addr().String())
	return c, netip.MustParseAddrPort(r.host.Addr().String()), err
}

// dialled has the next connections be ones to a host, a name or an address.
func (r *rig) dialled(host string, port uint16) {
	r.t.Helper()
	a, err := netip.ParseAddr(host)
	if err != nil {
		if a, err = r.Names.Address(host, false); err != nil {
			r.t.Fatal(err)
		}
	}
	to := netip.AddrPortFrom(a, port)
	r.to.Store(&to)
}

// connect is a guest's connection.
func (r *rig) connect() *net.TCPConn { return connect(r.t, r.guest) }

func connect(t *testing.T, l net.Listener) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(20 * time.Second))
	return c.(*net.TCPConn)
}

// says sends text over a connection of its own and returns the whole answer.
func (r *rig) says(text string) (string, error) {
	r.t.Helper()
	conn, err := net.Dial("tcp", r.guest.Addr().String())
	if err != nil {
		return "", err // it may be reset before the program knows that it is connected
	}
	c := conn.(*net.TCPConn)
	defer c.Close()
	c.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(c, text); err != nil {
		return "", err
	}
	c.CloseWrite()
	b, err := io.ReadAll(c)
	return string(b), err
}

// recorded waits for the event that ends a connection, as the n-th of its
// operation.
func (r *rig) recorded(operation string, n int) bawn.Event {
	r.t.Helper()
	var found []bawn.Event
	testenv.Until(r.t, "event "+operation, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		found = slices.DeleteFunc(slices.Clone(r.events), func(e bawn.Event) bool { return e.Operation != operation })
		return len(found) >= n
	})
	return found[n-1]
}

// denied returns the rules of all refusals that the human was told.
func (r *rig) denied() (rules []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range r.told {
		rules = append(rules, d.Rule)
	}
	return rules
}

// leaves fails a test after which goroutines or descriptors are left.
func leaves(t *testing.T) {
	t.Helper()
	goroutines, files := runtime.NumGoroutine(), descriptors(t)
	t.Cleanup(func() {
		for limit := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
			runtime.GC() // package net keeps the pipes of splice(2) until then
			g, f := runtime.NumGoroutine(), descriptors(t)
			if g <= goroutines && f <= files {
				return
			}
			if time.Now().After(limit) {
				stacks := make([]byte, 64<<10)
				t.Errorf("left: %d goroutines of %d before, %d descriptors of %d\n%s", g, goroutines, f, files, stacks[:runtime.Stack(stacks, true)])
				return
			}
		}
	})
}

func descriptors(t *testing.T) int {
	list, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// echo sends everything back, and ends when its client has.
func echo(c net.Conn) { io.Copy(c, c) }

// sink answers with what it got, once that has ended.
func sink(c net.Conn) {
	b, err := io.ReadAll(c)
	if err == nil {
		c.Write(b)
	}
}

func isReset(err error) bool {
	return err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrDeadlineExceeded)
}
