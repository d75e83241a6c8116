package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/egress/dial"
	"github.com/bawn-dev/bawn/internal/guard"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// What is recorded of a connection: the decision before it, and its end with
// the address that was dialled, the bytes and the rule.
func TestRecord(t *testing.T) {
	r := newRig(t, sink, func(r *rig) { r.Event = bawn.Event{Session: "s1", Agent: "agent", Provider: "native"} })
	if got, err := r.says("\x00four"); err != nil || got != "\x00four" {
		t.Fatalf("got %q, %v", got, err)
	}
	e := r.recorded("end", 1)
	want := map[string]string{"bytesIn": "5", "bytesOut": "5", "address": r.host.Addr().String()}
	if fmt.Sprint(e.Details) != fmt.Sprint(want) || e.Rule != "isolation:hosts:"+site || e.Resource != site+":9000" ||
		e.Session != "s1" || e.Agent != "agent" || e.Requested != bawn.Allow || e.Resolved != bawn.Allow || e.Bytes != 10 {
		t.Errorf("recorded %+v", e)
	}
	if d := r.recorded("connect", 1); d.Resolved != bawn.Allow || d.Resource != site+":9000" {
		t.Errorf("decided %+v", d)
	}
}

// A connection that the guard denies is refused at once, and goes nowhere.
func TestDenied(t *testing.T) {
	for name, change := range map[string]func(*rig){
		"by a rule": func(r *rig) {
			r.Guard.Decider = deciderFunc(func(bawn.Action) bawn.Decision { return bawn.Denied("no", "test:no") })
		},
		"without a decider": func(r *rig) { r.Guard.Decider = nil },
		"what nobody answers": func(r *rig) {
			r.Guard.Decider = deciderFunc(func(bawn.Action) bawn.Decision { return bawn.Decision{Verdict: bawn.Ask} })
		},
		"without a log":        func(r *rig) { r.Guard.Recorder = nil },
		"by a log that breaks": func(r *rig) { r.broken = errors.New("disk full") },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, echo, change)
			began := time.Now()
			got, err := r.says("\x00hello")
			if !isReset(err) || got != "" || r.dials.Load() != 0 {
				t.Errorf("got %q, %v, dialled %d times; want a reset", got, err, r.dials.Load())
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("took %v", took)
			}
			testenv.Until(t, "told", func() bool { return len(r.denied()) == 1 })
		})
	}
}

// An address of ours that was not given out, and our own port, are no hosts.
func TestNoHost(t *testing.T) {
	r := newRig(t, echo, nil)
	own := netip.MustParseAddrPort(r.guest.Addr().String())
	for name, to := range map[string]netip.AddrPort{
		"stale": netip.MustParseAddrPort("198.18.200.200:443"), "own": own, "stale 6": netip.MustParseAddrPort("[fd62:6177:6e00::77]:443"),
	} {
		before := len(r.denied())
		r.to.Store(&to)
		if got, err := r.says("\x00x"); !isReset(err) {
			t.Errorf("%s: %q, %v; want a reset", name, got, err)
		}
		e := r.recorded("connect", before+1)
		if e.Resolved != bawn.Deny || e.Requested != bawn.Deny || e.Rule != RuleStale || e.Resource != to.String() || e.Details["address"] != "" {
			t.Errorf("%s: recorded %+v", name, e)
		}
		testenv.Until(t, "told", func() bool { return len(r.denied()) == before+1 })
	}
	if r.dials.Load() != 0 {
		t.Error("dialled")
	}
	r = newRig(t, echo, func(r *rig) { r.original = original }) // of the kernel, which redirected nothing here
	if got, err := r.says("\x00x"); !isReset(err) || r.dials.Load() != 0 {
		t.Errorf("a connection that was not redirected: %q, %v", got, err)
	}
}

// A host that can't be reached is no denial of ours, and an address that is
// closed is one; both are told.
func TestUnreachable(t *testing.T) {
	for rule, err := range map[string]error{RuleFailed: syscall.ECONNREFUSED, RuleAddress: &dial.RefusedError{Host: site, Addr: netip.MustParseAddr("10.0.0.1"), Class: "private"}} {
		r := newRig(t, echo, func(r *rig) {
			r.Relay.Dial = func(context.Context, string, uint16) (net.Conn, netip.AddrPort, error) {
				return nil, netip.AddrPort{}, err
			}
		})
		for i, port := range []uint16{9000, 443} {
			r.dialled(site, port)
			said := map[uint16]string{9000: "\x00", 443: helloFor(site)}[port]
			answer, _ := r.says(said)
			if e := r.recorded("end", i+1); e.Rule != rule || e.Resolved != bawn.Deny {
				t.Errorf("recorded %+v; want %s", e, rule)
			}
			if port == 443 {
				checkAnswer(t, true, answer)
			}
		}
	}
}

// oneWay can't end one side only.
type oneWay struct{ net.Conn }

// A fault ends one connection, is recorded, and the next one is served.
func TestPanic(t *testing.T) {
	const bad = "bad.example"
	for name, fault := range map[string]func(*rig){
		"in the handler": func(r *rig) { r.Classes.HTTP = func(h string, _ uint16) bool { return h == bad } },
		"in dial": func(r *rig) {
			r.Relay.Dial = func(ctx context.Context, h string, p uint16) (net.Conn, netip.AddrPort, error) {
				if h == bad {
					panic("broken")
				}
				return r.dialHost(ctx, h, p)
			}
		},
		"on the way": func(r *rig) {
			r.Classes.SSH = func(h string, _ uint16) bool { return false }
			r.Classes.HTTP = func(h string, _ uint16) bool { return h == bad && r.dials.Load() > 0 && panics() }
		},
		"one way": func(r *rig) {
			r.Relay.Dial = func(ctx context.Context, h string, p uint16) (net.Conn, netip.AddrPort, error) {
				c, to, err := r.dialHost(ctx, h, p)
				if h == bad {
					c = oneWay{c}
				}
				return c, to, err
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, echo, fault)
			r.dialled(bad, 9000)
			if _, err := r.says("GET / HTTP/1.1\r\nHost: " + bad + ":9000\r\n\r\n"); !isReset(err) && name != "one way" { // which gets an answer
				t.Errorf("%v; want a reset", err)
			}
			if e := r.recorded("end", 1); e.Reason == "" || !strings.Contains(e.Reason, "BUG") {
				t.Errorf("recorded %+v; want why", e)
			}
			r.dialled(site, 9000)
			if got, err := r.says("\x00again"); err != nil || got != "\x00again" {
				t.Errorf("the next: %q, %v", got, err)
			}
		})
	}
	r := newRig(t, echo, func(r *rig) {
		r.original = func(*net.TCPConn) (netip.AddrPort, error) { panic("broken") }
	})
	if _, err := r.says("\x00"); !isReset(err) {
		t.Errorf("before the guard is asked: %v; want a reset", err)
	}
}

func panics() bool { panic("broken") }

// When there are no descriptors, connections wait until there are.
func TestScarce(t *testing.T) {
	l := &failing{Listener: listen(t), errs: []error{syscall.EMFILE, syscall.ENFILE, syscall.ECONNABORTED, syscall.ENOBUFS, syscall.ENOMEM}}
	r := newRig(t, echo, nil)
	ended := make(chan error, 1)
	go func() { ended <- r.Accept(t.Context(), l) }()
	c := connect(t, l)
	io.WriteString(c, "\x00")
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
		t.Errorf("after it was scarce: %v", err)
	}
	l.Close()
	if err := testenv.Receive(t, "the end", ended); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept ended with %v", err)
	}
}

// failing fails before it accepts.
type failing struct {
	net.Listener
	errs []error
}

func (l *failing) Accept() (net.Conn, error) {
	if len(l.errs) > 0 {
		err := l.errs[0]
		l.errs = l.errs[1:]
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", err)}
	}
	return l.Listener.Accept()
}

// What is no TCP is not served.
func TestNoTCP(t *testing.T) {
	l, err := net.Listen("unix", t.TempDir()+"/s")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	r := newRig(t, echo, nil)
	c, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := r.Accept(t.Context(), l); err == nil {
		t.Error("Accept served a socket of another kind")
	}
}

// The guest's own end of its context is that of one connection.
func TestAsked(t *testing.T) {
	answers := make(chan bawn.Answer)
	r := newRig(t, echo, func(r *rig) {
		r.Guard = guard.Guard{
			Decider:  deciderFunc(func(bawn.Action) bawn.Decision { return bawn.Decision{Verdict: bawn.Ask} }),
			Recorder: r, Now: time.Now,
			Approver: approverFunc(func(ctx context.Context, _ bawn.Action) (bawn.Answer, error) {
				select {
				case a := <-answers:
					return a, nil
				case <-ctx.Done():
					return bawn.Answer{}, ctx.Err()
				}
			}),
		}
	})
	c := r.connect()
	io.WriteString(c, "\x00")
	answers <- bawn.Answer{Verdict: bawn.Allow}
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
		t.Errorf("after a yes: %v", err)
	}
	r.dialled("b.example", 9000)
	refused := r.connect()
	io.WriteString(refused, "\x00")
	answers <- bawn.Answer{Verdict: bawn.Deny}
	if _, err := io.ReadAll(refused); !isReset(err) {
		t.Errorf("after a no: %v", err)
	}
	if rules := r.denied(); !slices.Equal(rules, []string{guard.RuleApproval}) {
		t.Logf("told %v", rules)
	}
}
