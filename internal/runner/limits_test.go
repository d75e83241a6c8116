//go:build linux || darwin

package runner

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// gone is a guest that was ended as a whole, and the limits it had run into.
type gone struct{ hits []sandbox.Hit }

func (gone) Exec(sandbox.Command) (sandbox.Process, error) { return gone{}, nil }
func (gone) Network() *sandbox.GuestNetwork                { return nil }
func (gone) Dial(uint16) (*os.File, error)                 { return nil, sandbox.ErrUnsupported }
func (gone) OpenTerminal() (*os.File, *os.File, error)     { return nil, nil, sandbox.ErrUnsupported }
func (gone) Close() error                                  { return nil }
func (gone) Done() <-chan struct{}                         { return nil }
func (g gone) Hits() []sandbox.Hit                         { return g.hits }
func (gone) Changes() <-chan sandbox.Change                { return nil }
func (gone) Signal(syscall.Signal) error                   { return nil }
func (gone) Foreground() error                             { return nil }

// TestGuestGone blames a limit only with proof; otherwise Bawn has failed.
func TestGuestGone(t *testing.T) {
	memory := sandbox.Hit{Rule: "limits:memory", Killed: true}
	cases := []struct {
		name string
		hits []sandbox.Hit
		ok   bool
	}{
		{"nothing known", nil, false},
		{"a fork was refused", []sandbox.Hit{{Rule: "limits:pids"}}, false},
		{"memory", []sandbox.Hit{{Rule: "limits:pids"}, memory}, true},
	}
	for _, c := range cases {
		g := gone{c.hits}
		r, err := (&watch{guest: g, proc: g}).guestGone()
		if r.Code != 137 || r.Signal != syscall.SIGKILL || (err == nil) != c.ok {
			t.Errorf("%s: got %+v, %v", c.name, r, err)
		}
	}
}

// TestLimits adds what the runner knows itself.
func TestLimits(t *testing.T) {
	memory := sandbox.Hit{Rule: "limits:memory", Reason: "memory", Killed: true}
	own := bawn.Resources{Timeout: time.Second, FileSizeMB: 8}
	cases := []struct {
		name   string
		result Result
		own    bawn.Resources
		hits   []sandbox.Hit
		rules  string
		says   string
	}{
		{"none", Result{}, own, nil, "", ""},
		{"provider's", Result{}, own, []sandbox.Hit{memory}, "limits:memory", ""},
		{"time", Result{TimedOut: true}, own, []sandbox.Hit{memory}, "limits:timeout limits:memory", "time of 1s was up"},
		{"file size", Result{Signal: syscall.SIGXFSZ}, own, nil, "limits:size", "is 8 MiB"},
		{"no limit of size", Result{Signal: syscall.SIGXFSZ}, bawn.Resources{}, nil, "", ""},
		{"another signal", Result{Signal: syscall.SIGKILL}, own, nil, "", ""},
	}
	for _, c := range cases {
		s := &Session{Session: bawn.Session{Isolation: bawn.Isolation{Resources: c.own}}}
		var rules []string
		hits := s.limits(c.result, c.hits)
		for _, h := range hits {
			rules = append(rules, h.Rule)
		}
		rule, reason := reasons(hits)
		if got := strings.Join(rules, " "); got != c.rules || !strings.HasPrefix(got, rule) || !strings.Contains(reason, c.says) {
			t.Errorf("%s: got %q, rule %q, reason %q", c.name, got, rule, reason)
		}
	}
}
