package launch

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval"
	"github.com/bawn-dev/bawn/internal/approval/asking"
	"github.com/bawn-dev/bawn/internal/config"
	"github.com/bawn-dev/bawn/internal/guard"
	"github.com/bawn-dev/bawn/internal/policy"
	"github.com/bawn-dev/bawn/internal/runner"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/session"
	"github.com/bawn-dev/bawn/internal/verb"
)

// A hearer answers no question and keeps what was asked.
type hearer struct {
	approval.Prompter
	asked []approval.Question
}

func (h *hearer) Ask(_ context.Context, q approval.Question) (bawn.Answer, error) {
	h.asked = append(h.asked, q)
	return bawn.Answer{}, approval.ErrExpired
}

// TestEveryQuestionSaysThatNothingContains: what is asked in a
// session that fell back to the host says so, in every zone, and is judged as
// what nothing contains.
func TestEveryQuestionSaysThatNothingContains(t *testing.T) {
	e := &Env{World: verb.World{Environ: []string{"HOME=/home/dev"}}}
	for _, c := range []struct {
		why  string
		want string // what the human is shown
		can  bawn.Verdict
	}{
		{unsandboxedFallback, "no sandbox (fallback to host)", bawn.Ask},
		{unsandboxedNamed, "no sandbox (provider host)", bawn.Ask},
		{"", "the guest keeps to its sandbox", bawn.Allow},
	} {
		s := &runner.Session{Uncontained: c.why, Session: bawn.Session{ID: "s", Mode: bawn.ModeNormal, Autonomy: bawn.AutonomyModerate, Isolation: bawn.Isolation{Workspace: "/w"}}}
		if c.why == "" {
			s.Contained = bawn.ContainedFully
		}
		zone, err := networkZone(e, s)
		if err != nil {
			t.Fatal(err)
		}
		h := &hearer{}
		prompter := asking.New(asking.Options{Session: "s", Relay: func(context.Context, bool) (approval.Prompter, error) { return h, nil }})
		a := bawn.Action{Kind: bawn.Network, Operation: bawn.Connect, Resource: "a.test:443", Session: "s", At: time.Now()}
		_, err = prompter.Approver(zone).Approve(t.Context(), a, bawn.Decision{Verdict: bawn.Ask, Reason: "unknown"})
		if !errors.Is(err, approval.ErrExpired) || len(h.asked) != 1 {
			t.Fatalf("%v, asked %d times; want once", err, len(h.asked))
		}
		shown := slices.ContainsFunc(approval.Render(h.asked[0]), func(l approval.Line) bool {
			return l.Label == approval.LabelContains && strings.Contains(l.Text, c.want)
		})
		if !shown {
			t.Errorf("%q: %v; want %q to be shown", c.why, approval.Render(h.asked[0]), c.want)
		}
		prompter.Close()

		p, err := policy.New(nil, policy.Options{})
		if err != nil {
			t.Fatal(err)
		}
		q := SessionQuestion(e, s)
		q.Action = bawn.Action{Kind: bawn.Command, Operation: bawn.Exec, Resource: "make test", Dir: "/w", At: time.Now()}
		if d := p.Decide(&q); d.Verdict != c.can {
			t.Errorf("%q: a build is %v (%s); want %v", c.why, d.Verdict, d.Reason, c.can)
		}
	}
}

// A log keeps events, or fails.
type log struct {
	err    error
	events []bawn.Event
}

func (l *log) Record(_ context.Context, e bawn.Event) error {
	l.events = append(l.events, e)
	return l.err
}

func TestFallbackIsRecorded(t *testing.T) {
	mismatch := &sandbox.MismatchError{Provider: "native", Unmet: []bawn.Capability{{Attribute: "net.allowlist", Why: "closed"}}}
	s := &runner.Session{Session: bawn.Session{ID: "s", Mode: bawn.ModeNormal}, Argv: []string{"make"}, Plan: unsandboxedPlan{}}
	kept := &log{}
	s.Guard = guard.Guard{Recorder: kept}
	if err := recordFallback(s, choice{}); err != nil || len(kept.events) != 0 {
		t.Errorf("no fallback: %v, %d events", err, len(kept.events))
	}
	if err := recordFallback(s, choice{Fallback: planError(mismatch)}); err != nil || len(kept.events) != 1 {
		t.Fatalf("%v, %d events; want one", err, len(kept.events))
	}
	e := kept.events[0]
	if e.Operation != "fallback" || e.Provider != "host" || e.Rule != RuleFallback || e.Details["unmet net.allowlist"] != "closed" || e.Details["wanted"] != "native" || strings.Contains(e.Reason, "\n") {
		t.Errorf("%+v", e)
	}
	s.Guard = guard.Guard{Recorder: &log{err: errors.New("full")}}
	if err := recordFallback(s, choice{Fallback: mismatch}); err == nil || !strings.Contains(err.Error(), "full") {
		t.Errorf("a log that is full: %v; want no session", err)
	}
}

type unsandboxedPlan struct{ sandbox.Plan }

func (unsandboxedPlan) Provider() string { return "host" }

// TestModeWithoutSandbox: both protections are never lost.
func TestModeWithoutSandbox(t *testing.T) {
	e := &Env{World: verb.World{Stderr: os.Stderr}}
	f := &Launch{Spec: session.Spec{Quiet: true}}
	for mode, want := range map[bawn.Mode]bawn.Mode{
		bawn.ModePlan: bawn.ModePlan, bawn.ModeStrict: bawn.ModeStrict, bawn.ModeSafe: bawn.ModeSafe, bawn.ModeNormal: bawn.ModeNormal,
		bawn.ModeAuto: bawn.ModeNormal, bawn.ModePermissive: bawn.ModeNormal,
	} {
		s := bawn.Session{Mode: mode, Autonomy: policy.AutonomyOf(mode)}
		f.uncontained(e, &s)
		if s.Mode != want || s.Autonomy > bawn.AutonomyModerate {
			t.Errorf("%v: %v, %v; want %v", mode, s.Mode, s.Autonomy, want)
		}
	}
}

// TestUnsandboxedIsolation: what is recorded of a session without a sandbox promises
// nothing.
func TestUnsandboxedIsolation(t *testing.T) {
	cfg := configured(t, "", config.Flags{})
	iso := unsandboxedIsolation(cfg.Isolation("/w"))
	if iso.Network != bawn.NetworkFull || iso.Protect || len(iso.Egress.Hosts) > 0 || len(iso.Mounts) != 1 || iso.Mounts[0].Access != bawn.ReadWrite || iso.Mounts[0].Path != "/" {
		t.Errorf("%+v", iso)
	}
	if len(iso.Env) == 0 || iso.Resources.MemoryMB == 0 {
		t.Errorf("%+v; want the environment and the limits kept", iso)
	}
}
