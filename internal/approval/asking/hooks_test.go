package asking

import (
	"context"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval/grants"
	"github.com/bawn-dev/bawn/internal/policy"
)

// objecting says one thing about everything, and whether it was closed.
type objecting struct {
	verdict bawn.Verdict
	closed  bool
}

func (o *objecting) Tighten(_ context.Context, _ bawn.Action, d bawn.Decision) bawn.Decision {
	d.Verdict, d.Rule, d.Reason = o.verdict, "plugin:guard", "w"
	return d
}

func (o *objecting) Close() { o.closed = true }

// TestHooksOnlyTighten: also those that would not, and where it is asked later
// a question is not put twice.
func TestHooksOnlyTighten(t *testing.T) {
	o := &objecting{}
	d := New(Options{Session: "s", Hooks: o})
	inner := bawn.Ask
	zone := Zone{Question: normal.Question, Decide: func(*policy.Policy, *policy.Question) bawn.Decision {
		return bawn.Decision{Verdict: inner, Rule: "x"}
	}}
	later := zone
	later.Later = true
	for _, v := range []bawn.Verdict{bawn.Deny, bawn.Ask, bawn.Allow, 77} {
		for _, inner = range []bawn.Verdict{bawn.Deny, bawn.Ask, bawn.Allow} {
			o.verdict = v
			if got, err := d.Decider(zone).Decide(t.Context(), command("ls")); err != nil || got.Verdict != bawn.Strictest(inner, v) {
				t.Errorf("%v with %v: %v, %v", inner, v, got.Verdict, err)
			}
			want := bawn.Strictest(inner, v)
			if v == bawn.Ask {
				want = inner
			}
			if got, err := d.Decider(later).Decide(t.Context(), command("ls")); err != nil || got.Verdict != want {
				t.Errorf("later: %v with %v: %v, %v", inner, v, got.Verdict, err)
			}
		}
	}
	if d.Close(); !o.closed {
		t.Error("the prompter has ended, and its hooks have not")
	}
}

// TestHooksAreAnsweredByThemselves: what a plugin asks about is not answered by
// a rule, nor by what was said to the policy's question; a session's yes to it
// holds.
func TestHooksAreAnsweredByThemselves(t *testing.T) {
	t.Parallel()
	state, r := t.TempDir(), startRelay(t)
	d := newPrompter(t, state, r)
	line := "git push origin"
	got := puts(t, d, line)
	rec := r.pending()
	if len(rec.Always) == 0 {
		t.Fatalf("control: no rule could be made: %+v", rec)
	}
	r.answer(bawn.Answer{Verdict: bawn.Allow, Scope: bawn.Always, By: "web", At: rec.Asked})
	comes(t, got, "allow by web <nil>")
	if rules, err := grants.In(state).Rules(); err != nil || len(rules) == 0 {
		t.Fatalf("control: no rule was made: %v, %v", rules, err)
	}
	asked := decision(t, line)
	about := normal.digest(command(line), asked)
	if _, ok := d.known(&normal, command(line), asked, about); !ok {
		t.Error("control: the answer does not answer the policy")
	}
	asked.Rule = "plugin:guard"
	theirs := normal.digest(command(line), asked)
	if a, ok := d.known(&normal, command(line), asked, theirs); ok {
		t.Errorf("an answer to the policy answers a plugin: %+v", a)
	}
	q := d.question(t.Context(), &normal, command(line), asked)
	if len(q.Always) != 0 || q.NoAlways == "" || len(d.shapes(q)) != 0 {
		t.Errorf("a rule is offered that would not be heeded, or it is learned: %+v", q)
	}
	d.keep(q, theirs, says1(bawn.Allow, bawn.ForSession))
	if _, ok := d.known(&normal, command(line), asked, theirs); !ok {
		t.Error("a yes for the session does not hold")
	}
}
