// Package guard is the one path from an action to "yes": decide, ask where a
// human must decide, record, answer. It knows no policy, no approval store and
// no log; its caller provides them. It denies if one of them errs, panics,
// hangs, is missing or gives an invalid answer.
package guard

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/stack"
)

// ApprovalTimeout is how long a human has to answer, and RecordTimeout how
// long the log has to take an event, when ctx has no earlier deadline.
const (
	ApprovalTimeout = 10 * time.Minute
	RecordTimeout   = 10 * time.Second
)

// Rules that the guard itself denies by.
const (
	RuleInvalid  = "builtin:invalid-action"
	RuleDecider  = "builtin:decider-failed"
	RuleApproval = "builtin:not-approved"
	RuleRecorder = "builtin:not-recorded"
)

// A Guard joins a policy, a human and a log. Its zero value denies everything.
type Guard struct {
	Decider  bawn.Decider
	Approver bawn.Approver
	Recorder bawn.Recorder
	Now      func() time.Time // nil means the machine's clock
}

// Check says what becomes of a: Allow or Deny, never Ask. It is Allow only if
// the policy said so, or asked and a human said so, and the event is recorded.
// Base is the rest of the event, with the ticket of an Allow.
func (g Guard) Check(ctx context.Context, a bawn.Action, base bawn.Event) bawn.Decision {
	if g.Now == nil {
		g.Now = time.Now //nolint:forbidigo // the clock of a guard without one
	}
	base.Time = g.Now()
	d, source := g.decide(ctx, a)
	base.Requested = d.Verdict
	if d.Verdict == bawn.Ask {
		d, source = g.ask(ctx, a, d)
	}
	base.DurationMS, base.Source = g.Now().Sub(base.Time).Milliseconds(), source
	if err := g.record(ctx, event(base, a, d)); err != nil {
		return deny(d, RuleRecorder, "the action can't be recorded, so it does not happen", err)
	}
	return d
}

// decide returns the policy's decision and its source; the verdict is one.
func (g Guard) decide(ctx context.Context, a bawn.Action) (bawn.Decision, string) {
	if !a.Valid() {
		return deny(bawn.Decision{}, RuleInvalid, "the action names no kind, operation or resource", nil), "auto"
	}
	d, err := contained(ctx, func() (bawn.Decision, error) { return g.Decider.Decide(ctx, a) })
	switch {
	case err != nil:
		return deny(d, RuleDecider, "the policy could not decide", err), "auto"
	case d.Verdict > bawn.Allow:
		return deny(d, RuleDecider, "the policy gave no known verdict", nil), "auto"
	case d.Source == bawn.Learned:
		return d, "learned"
	}
	return d, "rule"
}

// ask puts d to the human. Anything but a clear yes is a no.
func (g Guard) ask(ctx context.Context, a bawn.Action, d bawn.Decision) (bawn.Decision, string) {
	ctx, cancel := context.WithTimeout(ctx, ApprovalTimeout)
	defer cancel()
	answer, err := contained(ctx, func() (bawn.Answer, error) { return g.Approver.Approve(ctx, a, d) })
	if err != nil {
		return deny(d, RuleApproval, "nobody could be asked, or nobody answered in time", err), "auto"
	}
	d.Verdict = bawn.Allow
	if answer.Verdict != bawn.Allow {
		d.Verdict, d.Reason = bawn.Deny, answer.Denial()
	}
	return step(d, "approval", "by "+answer.By), "user"
}

// record outlives ctx's end: a refusal because of it is recorded as well.
func (g Guard) record(ctx context.Context, e bawn.Event) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), RecordTimeout)
	defer cancel()
	_, err := contained(ctx, func() (any, error) { return nil, g.Recorder.Record(ctx, e) })
	return err
}

// contained calls f and makes an error of a panic, which calling a missing
// dependency is too, and of ctx's end. It does not wait for an f that hangs.
func contained[T any](ctx context.Context, f func() (T, error)) (value T, err error) {
	done := make(chan error, 1)
	var v T
	stack.Go(func() {
		err := errors.New("ended without an answer") // stands if f leaves by runtime.Goexit
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("panic: %v", p)
			}
			done <- err
		}()
		v, err = f()
	})
	select {
	case err := <-done:
		return v, errors.Join(err, ctx.Err())
	case <-ctx.Done():
		return value, ctx.Err()
	}
}

// deny turns d into a denial. The cause is for the trace, not for the agent.
func deny(d bawn.Decision, rule, reason string, cause error) bawn.Decision {
	d.Verdict, d.Rule, d.Source, d.Reason = bawn.Deny, rule, bawn.Builtin, reason
	if cause != nil {
		reason = cause.Error()
	}
	return step(d, "guard", reason)
}

// step appends to a copy of d's trace, which stays the decider's.
func step(d bawn.Decision, stage, why string) bawn.Decision {
	d.Trace = append(slices.Clip(d.Trace), bawn.Step{Stage: stage, Verdict: d.Verdict, Why: why})
	return d
}

// event writes a and d, with its trace, into a copy of base.
func event(base bawn.Event, a bawn.Action, d bawn.Decision) bawn.Event {
	base.Session, base.Agent, base.Kind, base.Operation = a.Session, a.Agent, a.Kind.String(), a.Operation.String()
	base.Resource, base.Args, base.Dir = a.Resource, a.Args, a.Dir
	base.Resolved, base.Rule, base.Reason = d.Verdict, d.Rule, d.Reason
	if d.Verdict != bawn.Allow {
		base.Ticket = ""
	}
	base.Details = maps.Collect(maps.All(base.Details)) // a copy
	base.Details["trace"] = fmt.Sprint(d.Trace)
	return base
}
