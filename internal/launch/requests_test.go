package launch

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval"
	"github.com/bawn-dev/bawn/internal/approval/asking"
	"github.com/bawn-dev/bawn/internal/guard"
	"github.com/bawn-dev/bawn/internal/intent"
	"github.com/bawn-dev/bawn/internal/policy"
)

// TestPatience: a guest does not ask until it is allowed.
func TestPatience(t *testing.T) {
	now := time.Unix(1000, 0)
	ask := func(p *patience, key, want string) {
		t.Helper()
		if err := p.begin(key, now); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", key, err, want)
		}
	}
	p := &patience{}
	ask(p, "a", "")
	p.end("a", false, now)
	ask(p, "a", "the same was not allowed")
	ask(p, "b", "")
	p.end("b", true, now)
	ask(p, "b", "")
	p.end("b", false, now)
	ask(p, "c", "")
	p.end("c", false, now)
	ask(p, "d", "3 requests were not allowed")
	now = now.Add(quiet)
	ask(p, "a", "")
	p.end("a", true, now)
	for i := range maxRequests {
		ask(p, fmt.Sprint(i), "")
	}
	ask(p, "more", "64 requests")
}

// TestRequestWaitsAsLong: what asks ahead for a host waits as long as a connection to it
// would, also where a relay has the question, and a command as long as a command.
func TestRequestWaitsAsLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		relay, err := approval.NewQueue(t.Context(), approval.Options{Store: &approval.Memory{}})
		if err != nil {
			t.Fatal(err)
		}
		defer relay.Close()
		prompter := asking.New(asking.Options{Session: "s", Relay: func(context.Context, bool) (approval.Prompter, error) { return relay, nil }})
		defer prompter.Close()
		q := &requests{prompter: prompter, guard: guard.Guard{Recorder: recorded{}}, reach: bawn.Isolation{Network: bawn.NetworkAllowlist, Egress: bawn.Egress{Ask: 30 * time.Second}}}
		q.network.Question = policy.Question{Mode: bawn.ModeNormal, Autonomy: bawn.AutonomyModerate}
		command := q.network
		q.command = &command
		for want, r := range map[time.Duration]intent.Request{
			q.reach.Egress.Ask: {Want: []string{"--allow", "new.example"}}, 10 * time.Minute: {Want: []string{"--", "git", "push"}, Dir: "/w"},
		} {
			a, zone, err := q.read(&r)
			if err != nil {
				t.Fatal(err)
			}
			a.Session, a.At = "s", time.Now()
			d := q.decide(t.Context(), a, zone, "")
			if took := time.Since(a.At); d.Verdict != bawn.Deny || took != want {
				t.Errorf("%q waits %v, and then: %+v; want %v", r.Want, took, d, want)
			}
		}
	})
}

// recorded takes every event.
type recorded struct{}

func (recorded) Record(context.Context, bawn.Event) error { return nil }
