package asking

import (
	"context"
	"errors"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval"
)

// notes keeps answers in a map; a nil one fails.
type notes map[string]bawn.Answer

func (n notes) Recall(key string) (bawn.Answer, bool) { a, ok := n[key]; return a, ok }

func (n notes) Keep(key string, a bawn.Answer) error {
	if n == nil {
		return errors.New("full")
	}
	n[key] = a
	return nil
}

// TestMemory has a second prompter of the same session answer from what the first
// has kept, if everything is as it was.
func TestMemory(t *testing.T) {
	kept := notes{}
	a := bawn.Action{Kind: bawn.Tool, Operation: bawn.Call, Resource: "x/y", Args: []string{"{}"}, Dir: "/p"}
	dec := bawn.Decision{Verdict: bawn.Ask, Rule: "r", Reason: "why", Trace: []bawn.Step{{Stage: "part", Verdict: bawn.Ask, Why: "a"}}}
	prompter := func(session, agent string) *Prompter {
		d := New(Options{Session: session, Agent: agent, Kept: kept})
		t.Cleanup(d.Close)
		return d
	}
	zone := Zone{}
	first := prompter("s", "claude")
	first.remember(zone.digest(a, dec), dec, bawn.Answer{Verdict: bawn.Allow, Scope: bawn.Once, By: "ann"})
	if len(kept) != 0 {
		t.Error("an answer for once is kept")
	}
	first.remember(zone.digest(a, dec), dec, bawn.Answer{Verdict: bawn.Allow, Scope: bawn.ForSession, By: "ann"})
	for name, c := range map[string]struct {
		session, agent string
		change         func(*bawn.Action, *bawn.Decision)
		want           bool
	}{
		"control":           {"s", "claude", func(*bawn.Action, *bawn.Decision) {}, true},
		"another session":   {"t", "claude", func(*bawn.Action, *bawn.Decision) {}, false},
		"another agent":     {"s", "codex", func(*bawn.Action, *bawn.Decision) {}, false},
		"other arguments":   {"s", "claude", func(a *bawn.Action, _ *bawn.Decision) { a.Args = []string{`{"a":1}`} }, false},
		"another directory": {"s", "claude", func(a *bawn.Action, _ *bawn.Decision) { a.Dir = "/q" }, false},
		"another rule":      {"s", "claude", func(_ *bawn.Action, d *bawn.Decision) { d.Rule = "r2" }, false},
		"something more spoke": {"s", "claude", func(_ *bawn.Action, d *bawn.Decision) {
			d.Trace = append(d.Trace, bawn.Step{Stage: "mode", Verdict: bawn.Ask})
		}, false},
		"it was said differently": {"s", "claude", func(_ *bawn.Action, d *bawn.Decision) {
			d.Trace = []bawn.Step{{Stage: "part", Verdict: bawn.Ask, Why: "b"}}
		}, false},
	} {
		a, dec := a, dec
		c.change(&a, &dec)
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // nobody is there to be asked
		got, err := prompter(c.session, c.agent).Approver(zone).Approve(ctx, a, dec)
		if ok := err == nil && got.Verdict == bawn.Allow; ok != c.want || ok && got.By != "ann, earlier in the agent's session" {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	kept["x"] = bawn.Answer{}
	var said string
	d := New(Options{Session: "s", Kept: notes(nil), Note: func(text string) { said = text }})
	t.Cleanup(d.Close)
	d.remember(approval.Digest{1}, dec, bawn.Answer{Verdict: bawn.Allow, Scope: bawn.ForSession})
	if said != "the answer is not kept for the session: full" {
		t.Errorf("said %q", said)
	}
}
