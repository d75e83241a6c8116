package relay

import (
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// Connections beyond the limit of a host are refused, others not, and one that
// ends makes room.
func TestMaxConns(t *testing.T) {
	r := newRig(t, echo, func(r *rig) { r.MaxConns = 2 })
	open := func() *net.TCPConn {
		c := r.connect()
		io.WriteString(c, "\x00")
		return c
	}
	works := func(c *net.TCPConn) bool {
		_, err := io.ReadFull(c, make([]byte, 1))
		return err == nil
	}
	a, b := open(), open()
	if !works(a) || !works(b) {
		t.Fatal("control: two connections are within the limit")
	}
	if c := open(); works(c) {
		t.Error("a third connection to the host was carried")
	}
	if e := r.recorded("end", 1); e.Resolved != bawn.Deny || e.Rule != RuleBusy || e.Requested != bawn.Allow {
		t.Errorf("recorded %+v", e)
	}
	r.dialled("b.example", 9000)
	if c := open(); !works(c) {
		t.Error("the limit of one host holds for another")
	}
	r.dialled(site, 9001)
	if c := open(); works(c) {
		t.Error("another port of the host is not counted with it")
	}
	a.Close()
	r.recorded("end", 3)
	if c := open(); !works(c) {
		t.Error("no room after a connection has ended")
	}
}

// counted is a server that counts what it gets of all connections.
func counted(n *atomic.Int64) func(net.Conn) {
	return func(c net.Conn) {
		got, _ := io.Copy(io.Discard, c)
		n.Add(got)
	}
}

// Of many connections at once, a host gets what its limit is, to the byte, and
// nothing more ever after.
func TestMaxOut(t *testing.T) {
	const limit = 300_000
	var got atomic.Int64
	r := newRig(t, counted(&got), func(r *rig) { r.MaxOut = limit })
	idle := r.connect() // says nothing: it takes nothing away
	var all sync.WaitGroup
	for range 8 {
		c := r.connect()
		all.Go(func() { io.Copy(c, strings.NewReader(strings.Repeat("\x00", 1<<20))) })
	}
	all.Wait()
	r.recorded("end", 8)
	if n := got.Load(); n > limit {
		t.Errorf("the host got %d bytes; want at most %d", n, limit)
	}
	if e := r.recorded("end", 1); e.Resolved != bawn.Deny || e.Rule != RuleBusy || !strings.Contains(e.Reason, "limit of bytes") {
		t.Errorf("recorded %+v", e)
	}
	if rules := r.denied(); !slices.Contains(rules, RuleBusy) {
		t.Errorf("the human was told of %q", rules)
	}
	idle.Close()
	r.dialled("b.example", 9000)
	if _, err := r.says("\x00more"); err != nil {
		t.Errorf("control: another host: %v", err)
	}
}

// A limit is met across connections one after the other, and a connection that
// stays within it is not troubled by one that waits.
func TestMaxOutAcrossConnections(t *testing.T) {
	var got atomic.Int64
	r := newRig(t, counted(&got), func(r *rig) { r.MaxOut = 100 })
	waits := r.connect()
	io.WriteString(waits, "\x00")
	testenv.Until(t, "first byte", func() bool { return r.dials.Load() == 1 })
	for range 9 {
		if _, err := r.says("\x00" + strings.Repeat("x", 10)); err != nil {
			t.Fatalf("within the limit: %v", err)
		}
	}
	waits.CloseWrite()
	r.recorded("end", 10)
	if n := got.Load(); n != 100 {
		t.Fatalf("the host got %d bytes; want 100", n)
	}
	if _, err := r.says("\x00"); err == nil {
		t.Error("a connection beyond the limit ended well")
	}
	if e := r.recorded("end", 11); e.Rule != RuleBusy || got.Load() != 100 {
		t.Errorf("the host got %d bytes, recorded %+v", got.Load(), e)
	}
}

// That many connections live is told once, and once that none does any more.
func TestCrowd(t *testing.T) {
	told := make(chan bool, 9)
	r := newRig(t, echo, func(r *rig) { r.Crowd = func(many bool) { told <- many } })
	hold := func(n int) (list []net.Conn) {
		for range n {
			c := r.connect()
			io.WriteString(c, "\x00")
			io.ReadFull(c, make([]byte, 1))
			list = append(list, c)
		}
		return list
	}
	few := hold(fewLive)
	if len(told) > 0 {
		t.Fatalf("told %v of a few connections", <-told)
	}
	many := hold(3)
	if len(told) != 1 || !<-told {
		t.Fatal("want to be told once of many connections")
	}
	for _, c := range append(few, many...) {
		c.Close()
	}
	select {
	case still := <-told:
		if still || len(told) > 0 {
			t.Errorf("told %v, and %d times more, when they have gone", still, len(told))
		}
	case <-time.After(20 * time.Second):
		t.Error("nobody was told that they have gone")
	}
}
