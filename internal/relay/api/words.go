package api

import (
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval"
	"github.com/bawn-dev/bawn/internal/redact"
	bawnv1 "github.com/bawn-dev/bawn/proto/bawn/v1"
)

// line shows untrusted text as one line.
func line(s string) string { return redact.Visible(s) }

// text shows untrusted text that may have several lines.
func text(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = redact.Visible(l)
	}
	return strings.Join(lines, "\n")
}

func each(in []string) []string {
	var out []string
	for _, s := range in {
		out = append(out, line(s))
	}
	return out
}

func at(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

var verdicts = map[bawn.Verdict]bawnv1.Verdict{
	bawn.Deny: bawnv1.Verdict_VERDICT_DENY, bawn.Ask: bawnv1.Verdict_VERDICT_ASK, bawn.Allow: bawnv1.Verdict_VERDICT_ALLOW,
}

func verdictOf(v bawn.Verdict) bawnv1.Verdict { return verdicts[bawn.Strictest(v)] }

// readVerdict returns the verdict that v means; an unknown value denies.
func readVerdict(v bawnv1.Verdict) bawn.Verdict {
	switch v {
	case bawnv1.Verdict_VERDICT_ALLOW:
		return bawn.Allow
	case bawnv1.Verdict_VERDICT_ASK:
		return bawn.Ask
	}
	return bawn.Deny
}

// scopes has no row for what is no scope: that is once, the narrowest.
var scopes = map[bawnv1.Scope]bawn.Scope{
	bawnv1.Scope_SCOPE_ONCE: bawn.Once, bawnv1.Scope_SCOPE_SESSION: bawn.ForSession, bawnv1.Scope_SCOPE_ALWAYS: bawn.Always,
}

func scopeOf(s bawn.Scope) bawnv1.Scope {
	for out, in := range scopes {
		if in == s {
			return out
		}
	}
	return bawnv1.Scope_SCOPE_UNSPECIFIED
}

var states = map[approval.State]bawnv1.ApprovalState{
	approval.Pending: bawnv1.ApprovalState_APPROVAL_STATE_PENDING, approval.Answered: bawnv1.ApprovalState_APPROVAL_STATE_ANSWERED,
	approval.Expired: bawnv1.ApprovalState_APPROVAL_STATE_EXPIRED, approval.Withdrawn: bawnv1.ApprovalState_APPROVAL_STATE_WITHDRAWN,
}

func approvalOf(r approval.Record) *bawnv1.Approval {
	out := &bawnv1.Approval{
		Id: line(r.ID), State: states[r.State], Session: line(r.Session), Parent: line(r.Parent), Agent: line(r.Agent),
		Action: actionOf(r.Action), Canonical: text(r.Canonical), Reason: line(r.Reason), Rule: line(r.Rule), Contains: line(r.Contains),
		Suggested: verdictOf(r.Suggested), SuggestedWhy: line(r.SuggestedWhy), Always: rulesOf(r.Always), Never: rulesOf(r.Never), Covers: each(r.Covers), NoAlways: line(r.NoAlways),
		Justification: text(r.Justification), Asked: at(r.Asked), Expires: at(r.Expires), Waiting: int32(min(r.Waiting, 1<<30)), Settled: at(r.Settled),
		For: line(r.For), Next: line(r.Next), More: int32(min(r.More, 1<<30)), Lines: linesOf(r.Question),
		Program: line(r.Program), Reach: line(r.Reach()), Choices: choicesOf(r.Question),
	}
	if r.State == approval.Answered {
		out.Answer = &bawnv1.Answer{
			Verdict: verdictOf(r.Answer.Verdict), Scope: scopeOf(r.Answer.Scope), By: line(r.Answer.By), At: at(r.Answer.At), Why: line(r.Answer.Why),
		}
	}
	return out
}

func choicesOf(q approval.Question) []*bawnv1.Choice {
	var out []*bawnv1.Choice
	for _, c := range q.Choices() {
		out = append(out, &bawnv1.Choice{Key: c.Key, Words: c.Words, Verdict: verdictOf(c.Verdict), Scope: scopeOf(c.Scope)})
	}
	return out
}

func linesOf(q approval.Question) []*bawnv1.Line {
	var out []*bawnv1.Line
	for _, l := range approval.Render(q) {
		out = append(out, &bawnv1.Line{Label: l.Label, Text: l.Text, Untrusted: l.Untrusted, Exact: l.Exact})
	}
	return out
}

func actionOf(a bawn.Action) *bawnv1.Action {
	return &bawnv1.Action{
		Kind: a.Kind.String(), Operation: a.Operation.String(), Resource: text(a.Resource), Args: each(a.Args),
		Session: line(a.Session), Agent: line(a.Agent), Dir: line(a.Dir), At: at(a.At),
	}
}

func rulesOf(rules []bawn.Rule) []*bawnv1.Rule {
	var out []*bawnv1.Rule
	for _, r := range rules {
		one := &bawnv1.Rule{Id: line(r.ID), Kind: r.Kind.String(), Pattern: line(r.Pattern), Verdict: verdictOf(r.Verdict), Source: r.Source.String(), Reason: line(r.Reason)}
		for _, op := range r.Operations {
			one.Operations = append(one.Operations, op.String())
		}
		out = append(out, one)
	}
	return out
}

func recordOf(seq uint64, e bawn.Event) *bawnv1.Record {
	out := &bawnv1.Record{
		Seq: seq, Id: line(e.ID), Time: at(e.Time), Session: line(e.Session), Parent: line(e.Parent), Agent: line(e.Agent), Kind: line(e.Kind), Operation: line(e.Operation),
		Resource: text(e.Resource), Args: each(e.Args), Dir: line(e.Dir), Requested: verdictOf(e.Requested), Resolved: verdictOf(e.Resolved), Source: line(e.Source),
		Rule: line(e.Rule), Reason: line(e.Reason), Ticket: line(e.Ticket), Provider: line(e.Provider), Mode: e.Mode.String(), DurationMs: e.DurationMS, Bytes: e.Bytes,
	}
	if e.Exit != nil {
		code := int32(*e.Exit)
		out.Exit = &code
	}
	for name, value := range e.Details {
		if out.Details == nil {
			out.Details = map[string]string{}
		}
		out.Details[line(name)] = line(value)
	}
	return out
}
