package guard

import (
	"context"
	"errors"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bawn-dev/bawn"
)

var errBroken = errors.New("broken")

// fake is a policy, a human and a log in one, each of which can be broken.
type fake struct {
	decide  func(context.Context) (bawn.Decision, error)
	approve func(context.Context) (bawn.Answer, error)
	record  func(context.Context) error
	mu      sync.Mutex // a dependency that is given up may still be at work
	events  []bawn.Event
	asked   []bawn.Decision
}

func (f *fake) Decide(ctx context.Context, _ bawn.Action) (bawn.Decision, error) {
	return f.decide(ctx)
}

func (f *fake) Approve(ctx context.Context, _ bawn.Action, d bawn.Decision) (bawn.Answer, error) {
	f.mu.Lock()
	f.asked = append(f.asked, d)
	f.mu.Unlock()
	return f.approve(ctx)
}

func (f *fake) Record(ctx context.Context, e bawn.Event) error {
	f.mu.Lock()
	f.events = append(f.events, e)
	f.mu.Unlock()
	return f.record(ctx)
}

func (f *fake) recorded() []bawn.Event {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.events)
}

func (f *fake) guard() Guard { return Guard{Decider: f, Approver: f, Recorder: f} }

var action = bawn.Action{
	Kind: bawn.Command, Operation: bawn.Exec, Resource: "git status",
	Args: []string{"git", "status"}, Session: "s1", Agent: "claude", Dir: "/w",
}

func says(v bawn.Verdict) func(context.Context) (bawn.Decision, error) {
	return func(context.Context) (bawn.Decision, error) {
		return bawn.Decision{
			Verdict: v, Reason: "because", Rule: "r1", Source: bawn.User,
			Trace: []bawn.Step{{Stage: "rule", Verdict: v, Why: "r1 matches"}},
		}, nil
	}
}

func answers(v bawn.Verdict) func(context.Context) (bawn.Answer, error) {
	return func(context.Context) (bawn.Answer, error) { return bawn.Answer{Verdict: v, By: "ann"}, nil }
}

func works(context.Context) error { return nil }

// exits leaves the goroutine it is called on.
func exits() error { runtime.Goexit(); return nil }

func TestCheck(t *testing.T) {
	decideErr := func(v bawn.Verdict) func(context.Context) (bawn.Decision, error) {
		return func(context.Context) (bawn.Decision, error) { return bawn.Decision{Verdict: v}, errBroken }
	}
	tests := []struct {
		name   string
		fake   *fake
		want   bawn.Verdict
		rule   string
		source string
	}{
		{"policy allows", &fake{decide: says(bawn.Allow), record: works}, bawn.Allow, "r1", "rule"},
		{"policy denies", &fake{decide: says(bawn.Deny), record: works}, bawn.Deny, "r1", "rule"},
		{"ask, yes", &fake{decide: says(bawn.Ask), approve: answers(bawn.Allow), record: works}, bawn.Allow, "r1", "user"},
		{"ask, no", &fake{decide: says(bawn.Ask), approve: answers(bawn.Deny), record: works}, bawn.Deny, "r1", "user"},
		{"a learned rule allows", &fake{decide: func(context.Context) (bawn.Decision, error) {
			return bawn.Decision{Verdict: bawn.Allow, Source: bawn.Learned, Rule: "l1"}, nil
		}, record: works}, bawn.Allow, "l1", "learned"},

		{"policy errs while allowing", &fake{decide: decideErr(bawn.Allow), record: works}, bawn.Deny, RuleDecider, "auto"},
		{"policy errs while asking", &fake{decide: decideErr(bawn.Ask), approve: answers(bawn.Allow), record: works}, bawn.Deny, RuleDecider, "auto"},
		{"policy panics", &fake{record: works}, bawn.Deny, RuleDecider, "auto"},
		{"policy panics with nil", &fake{decide: func(context.Context) (bawn.Decision, error) { panic(nil) }, record: works}, bawn.Deny, RuleDecider, "auto"}, //nolint:govet // that is the case
		{"policy exits its goroutine", &fake{decide: func(context.Context) (bawn.Decision, error) {
			return bawn.Decision{Verdict: bawn.Allow}, exits()
		}, record: works}, bawn.Deny, RuleDecider, "auto"},
		{"unknown verdict", &fake{decide: says(7), approve: answers(bawn.Allow), record: works}, bawn.Deny, RuleDecider, "auto"},
		{"zero decision", &fake{decide: func(context.Context) (bawn.Decision, error) { return bawn.Decision{}, nil }, record: works}, bawn.Deny, "", "rule"},

		{"approver errs while allowing", &fake{decide: says(bawn.Ask), approve: func(context.Context) (bawn.Answer, error) {
			return bawn.Answer{Verdict: bawn.Allow}, errBroken
		}, record: works}, bawn.Deny, RuleApproval, "auto"},
		{"approver panics", &fake{decide: says(bawn.Ask), record: works}, bawn.Deny, RuleApproval, "auto"},
		{"approver exits its goroutine", &fake{decide: says(bawn.Ask), approve: func(context.Context) (bawn.Answer, error) {
			return bawn.Answer{Verdict: bawn.Allow}, exits()
		}, record: works}, bawn.Deny, RuleApproval, "auto"},
		{"approver answers ask", &fake{decide: says(bawn.Ask), approve: answers(bawn.Ask), record: works}, bawn.Deny, "r1", "user"},
		{"approver answers an unknown verdict", &fake{decide: says(bawn.Ask), approve: answers(200), record: works}, bawn.Deny, "r1", "user"},
		{"zero answer", &fake{decide: says(bawn.Ask), approve: func(context.Context) (bawn.Answer, error) { return bawn.Answer{}, nil }, record: works}, bawn.Deny, "r1", "user"},

		{"log fails after the policy's yes", &fake{decide: says(bawn.Allow), record: func(context.Context) error { return errBroken }}, bawn.Deny, RuleRecorder, "rule"},
		{"log fails after the human's yes", &fake{decide: says(bawn.Ask), approve: answers(bawn.Allow), record: func(context.Context) error { return errBroken }}, bawn.Deny, RuleRecorder, "user"},
		{"log panics", &fake{decide: says(bawn.Allow)}, bawn.Deny, RuleRecorder, "rule"},
		{"log exits its goroutine", &fake{decide: says(bawn.Allow), record: func(context.Context) error { return exits() }}, bawn.Deny, RuleRecorder, "rule"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := tt.fake
			d := f.guard().Check(t.Context(), action, bawn.Event{})
			if d.Verdict != tt.want || d.Rule != tt.rule {
				t.Errorf("got %v by %q, want %v by %q", d.Verdict, d.Rule, tt.want, tt.rule)
			}
			if len(f.recorded()) != 1 {
				t.Fatalf("%d events, want 1", len(f.recorded()))
			}
			if e := f.recorded()[0]; e.Source != tt.source {
				t.Errorf("source %q, want %q", e.Source, tt.source)
			}
			if tt.want == bawn.Deny && d.Verdict == bawn.Deny && strings.Contains(d.Reason, errBroken.Error()) {
				t.Errorf("the reason %q tells the agent what broke", d.Reason)
			}
		})
	}
}

func TestMissingDependencies(t *testing.T) {
	ok := func() *fake {
		return &fake{decide: says(bawn.Ask), approve: answers(bawn.Allow), record: works}
	}
	whole := ok().guard()
	if d := whole.Check(t.Context(), action, bawn.Event{}); d.Verdict != bawn.Allow {
		t.Fatalf("control: a whole guard says %v", d)
	}
	tests := map[string]func(*Guard){
		"everything": func(g *Guard) { *g = Guard{} },
		"decider":    func(g *Guard) { g.Decider = nil },
		"approver":   func(g *Guard) { g.Approver = nil },
		"recorder":   func(g *Guard) { g.Recorder = nil },
		"typed nil":  func(g *Guard) { g.Decider = (*fake)(nil) },
	}
	for name, remove := range tests {
		t.Run(name, func(t *testing.T) {
			g := ok().guard()
			remove(&g)
			if d := g.Check(t.Context(), action, bawn.Event{}); d.Verdict != bawn.Deny {
				t.Errorf("got %+v, want a denial", d)
			}
		})
	}
}

func TestInvalidActionsNeverReachThePolicy(t *testing.T) {
	for name, a := range map[string]bawn.Action{
		"zero":         {},
		"no kind":      {Operation: bawn.Exec, Resource: "x"},
		"no operation": {Kind: bawn.Command, Resource: "x"},
		"no resource":  {Kind: bawn.Command, Operation: bawn.Exec},
		"unknown kind": {Kind: 99, Operation: bawn.Exec, Resource: "x"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{record: works, decide: func(context.Context) (bawn.Decision, error) {
				t.Error("the policy was asked")
				return bawn.Decision{Verdict: bawn.Allow}, nil
			}}
			d := f.guard().Check(t.Context(), a, bawn.Event{})
			if d.Verdict != bawn.Deny || d.Rule != RuleInvalid || len(f.recorded()) != 1 {
				t.Errorf("got %+v with %d events, want a recorded denial by %s", d, len(f.recorded()), RuleInvalid)
			}
		})
	}
}

// TestHanging lets each dependency ignore its context for ever. The bubble's
// clock shows when the guard gave up.
func TestHanging(t *testing.T) {
	tests := []struct {
		name  string
		fake  func(stop chan struct{}) *fake
		limit time.Duration // of the caller's context, 0 for none
		after time.Duration
		rule  string
	}{
		{"approver, no deadline", func(stop chan struct{}) *fake {
			return &fake{decide: says(bawn.Ask), approve: func(context.Context) (bawn.Answer, error) {
				<-stop
				return bawn.Answer{Verdict: bawn.Allow}, nil
			}, record: works}
		}, 0, ApprovalTimeout, RuleApproval},
		{"approver, caller's deadline", func(stop chan struct{}) *fake {
			return &fake{decide: says(bawn.Ask), approve: func(context.Context) (bawn.Answer, error) {
				<-stop
				return bawn.Answer{Verdict: bawn.Allow}, nil
			}, record: works}
		}, time.Minute, time.Minute, RuleApproval},
		{"policy, caller's deadline", func(stop chan struct{}) *fake {
			return &fake{decide: func(context.Context) (bawn.Decision, error) {
				<-stop
				return bawn.Decision{Verdict: bawn.Allow}, nil
			}, record: works}
		}, time.Minute, time.Minute, RuleDecider},
		{"log", func(stop chan struct{}) *fake {
			return &fake{decide: says(bawn.Allow), record: func(context.Context) error {
				<-stop
				return nil
			}}
		}, 0, RecordTimeout, RuleRecorder},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stop := make(chan struct{})
				defer close(stop)
				ctx, start := t.Context(), time.Now()
				if tt.limit > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tt.limit)
					defer cancel()
				}
				f := tt.fake(stop)
				d := f.guard().Check(ctx, action, bawn.Event{})
				if d.Verdict != bawn.Deny || d.Rule != tt.rule {
					t.Errorf("got %+v, want a denial by %s", d, tt.rule)
				}
				if took := time.Since(start); took != tt.after {
					t.Errorf("gave up after %v, want %v", took, tt.after)
				}
				if len(f.recorded()) != 1 {
					t.Errorf("%d events, want 1", len(f.recorded()))
				}
			})
		})
	}
}

// TestCancelled shows that a cancelled caller gets no yes, even from
// dependencies that do not look at their context, and that this is recorded.
func TestCancelled(t *testing.T) {
	for name, decide := range map[string]bawn.Verdict{"allow": bawn.Allow, "ask": bawn.Ask} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			f := &fake{decide: says(decide), approve: answers(bawn.Allow), record: func(ctx context.Context) error { return ctx.Err() }}
			d := f.guard().Check(ctx, action, bawn.Event{})
			if d.Verdict != bawn.Deny || len(f.recorded()) != 1 || f.recorded()[0].Resolved != bawn.Deny {
				t.Errorf("got %+v with events %+v, want one recorded denial", d, f.recorded())
			}
		})
	}
	t.Run("while the human thinks", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		f := &fake{decide: says(bawn.Ask), record: works, approve: func(context.Context) (bawn.Answer, error) {
			cancel()
			return bawn.Answer{Verdict: bawn.Allow}, nil
		}}
		if d := f.guard().Check(ctx, action, bawn.Event{}); d.Verdict != bawn.Deny {
			t.Errorf("got %+v, want a denial", d)
		}
	})
}

// TestAnswerAfterTheEnd races answers against a context that has ended
// already: not one of them counts.
func TestAnswerAfterTheEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	g := Guard{Decider: decider{}, Recorder: recorder{}}
	for range 20_000 {
		if d := g.Check(ctx, action, bawn.Event{}); d.Verdict != bawn.Deny {
			t.Fatalf("got %+v, want a denial", d)
		}
	}
}

// TestTraceIsNotShared gives the guard a trace with room behind its end, as a
// policy with a cache would.
func TestTraceIsNotShared(t *testing.T) {
	cached := make([]bawn.Step, 1, 4)
	f := &fake{record: works, approve: answers(bawn.Allow), decide: func(context.Context) (bawn.Decision, error) {
		return bawn.Decision{Verdict: bawn.Ask, Trace: cached}, nil
	}}
	f.guard().Check(t.Context(), action, bawn.Event{})
	if got := cached[:2][1]; got != (bawn.Step{}) {
		t.Errorf("the guard wrote %+v behind the policy's own trace", got)
	}
}

func TestEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{decide: says(bawn.Ask), record: works, approve: func(context.Context) (bawn.Answer, error) {
			time.Sleep(1500 * time.Millisecond)
			return bawn.Answer{Verdict: bawn.Allow, By: "ann"}, nil
		}}
		base := bawn.Event{
			ID: "e1", Parent: "s0", Provider: "native", Mode: bawn.ModeSafe, Ticket: "t1",
			Details: map[string]string{"profile": "default"},
			Session: "forged", Resource: "forged", Resolved: bawn.Allow, Source: "rule",
		}
		before := maps.Clone(base.Details)
		start := time.Now()
		d := f.guard().Check(t.Context(), action, base)
		want := bawn.Event{
			ID: "e1", Time: start, Session: "s1", Parent: "s0", Agent: "claude",
			Kind: "command", Operation: "exec", Resource: "git status", Args: []string{"git", "status"}, Dir: "/w",
			Requested: bawn.Ask, Resolved: bawn.Allow, Source: "user", Rule: "r1", Reason: "because",
			Ticket: "t1", Provider: "native", Mode: bawn.ModeSafe, DurationMS: 1500,
			Details: map[string]string{"profile": "default", "trace": "[{rule ask r1 matches} {approval allow by ann}]"},
		}
		if diff := cmp.Diff([]bawn.Event{want}, f.recorded()); diff != "" {
			t.Errorf("event (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(before, base.Details); diff != "" {
			t.Errorf("the caller's details were changed:\n%s", diff)
		}
		if len(f.asked) != 1 || len(f.asked[0].Trace) != 1 || len(d.Trace) != 2 {
			t.Errorf("the human saw %+v, the caller %+v", f.asked, d.Trace)
		}
	})
}

// TestDeniedHasNoTicket: what is not allowed names no ticket, whatever was to
// be issued for it.
func TestDeniedHasNoTicket(t *testing.T) {
	for verdict, want := range map[bawn.Verdict]string{bawn.Allow: "t1", bawn.Deny: ""} {
		f := &fake{decide: says(verdict), record: works}
		f.guard().Check(t.Context(), action, bawn.Event{Ticket: "t1"})
		if got := f.recorded()[0].Ticket; got != want {
			t.Errorf("%v is recorded with the ticket %q, want %q", verdict, got, want)
		}
	}
}

func TestClock(t *testing.T) {
	times := []time.Time{time.Unix(100, 0), time.Unix(103, 0)}
	f := &fake{decide: says(bawn.Allow), record: works}
	g := f.guard()
	g.Now = func() time.Time { now := times[0]; times = times[1:]; return now }
	g.Check(t.Context(), action, bawn.Event{})
	if e := f.recorded()[0]; e.Time != time.Unix(100, 0) || e.DurationMS != 3000 {
		t.Errorf("got time %v and %d ms, want 100 s and 3000 ms", e.Time, e.DurationMS)
	}
}

func TestCauseStaysInTheTrace(t *testing.T) {
	f := &fake{record: works, decide: func(context.Context) (bawn.Decision, error) {
		return bawn.Decision{}, errors.New("open /home/ann/.config/bawn: denied")
	}}
	d := f.guard().Check(t.Context(), action, bawn.Event{})
	if strings.Contains(d.Reason, "/home/ann") {
		t.Errorf("the reason %q names a path of the host", d.Reason)
	}
	if !strings.Contains(f.recorded()[0].Details["trace"], "/home/ann") {
		t.Errorf("the event %+v does not say what broke", f.recorded()[0])
	}
}

func BenchmarkCheck(b *testing.B) {
	g := Guard{Decider: decider{}, Recorder: recorder{}}
	for b.Loop() {
		if g.Check(b.Context(), action, bawn.Event{}).Verdict != bawn.Allow {
			b.Fatal("denied")
		}
	}
}

type decider struct{}

func (decider) Decide(context.Context, bawn.Action) (bawn.Decision, error) {
	return bawn.Decision{Verdict: bawn.Allow}, nil
}

type recorder struct{}

func (recorder) Record(context.Context, bawn.Event) error { return nil }
