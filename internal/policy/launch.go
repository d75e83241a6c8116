package policy

import (
	"context"

	"github.com/bawn-dev/bawn"
)

// RulePath is that of paths outside of the workspace, and of those that are not
// known.
const RulePath = "builtin:path"

// Rules of Launch.
const (
	RuleRun       = "builtin:run"
	RuleNoNesting = "builtin:no-nesting"
	RuleUnknown   = "builtin:unknown-action"
)

// Launch decides one question: may the human who typed a command start a
// session with it? Typing it was the approval, so a question is a yes, and so
// is a denial of the built-in rules only. A guest can start nothing, and nobody
// can start what a person's rule denies.
type Launch struct {
	// InSession is the session that the caller itself runs in, "" for the
	// human's own shell.
	InSession string
	// Policy is nil if nobody has written a rule.
	Policy *Policy
	// Session is the session of the command; its Action is not used.
	Session Question
}

var _ bawn.Decider = Launch{}

// Decide never returns an error and never asks.
func (l Launch) Decide(_ context.Context, a bawn.Action) (bawn.Decision, error) {
	switch {
	case !a.Valid() || a.Kind != bawn.Command || a.Operation != bawn.Exec:
		return decided(bawn.Deny, RuleUnknown, "only the start of a session can be decided here"), nil
	case l.InSession != "":
		return decided(bawn.Deny, RuleNoNesting, "a guest can't start a session of its own"), nil
	case l.Policy != nil:
		q := l.Session
		q.Action = a
		if d := l.Policy.Decide(&q); d.Verdict == bawn.Deny && d.Source != bawn.Builtin {
			return d, nil
		}
	}
	return decided(bawn.Allow, RuleRun, "the human started this session"), nil
}

func decided(v bawn.Verdict, rule, reason string) bawn.Decision {
	return bawn.Decision{
		Verdict: v, Rule: rule, Reason: reason, Source: bawn.Builtin,
		Trace: []bawn.Step{{Stage: stagePart, Verdict: v, Why: rule + ": " + reason}},
	}
}
