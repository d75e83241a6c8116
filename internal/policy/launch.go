package policy

import (
	"context"

	"github.com/bawn-dev/bawn"
)

// Rules of Launch.
const (
	RuleRun       = "builtin:run"
	RuleNoNesting = "builtin:no-nesting"
	RuleUnknown   = "builtin:unknown-action"
)

// Launch decides one question: may the human who typed a command start a
// session with it? Typing it was the approval, so the answer is yes, unless
// the one who types is a guest. Every other action is denied.
type Launch struct {
	// InSession is the session that the caller itself runs in, "" for the
	// human's own shell.
	InSession string
}

var _ bawn.Decider = Launch{}

// Decide never returns an error and never asks.
func (l Launch) Decide(_ context.Context, a bawn.Action) (bawn.Decision, error) {
	switch {
	case !a.Valid() || a.Kind != bawn.Command || a.Operation != bawn.Exec:
		return decided(bawn.Deny, RuleUnknown, "only the start of a session can be decided here"), nil
	case l.InSession != "":
		return decided(bawn.Deny, RuleNoNesting, "a guest can't start a session of its own"), nil
	}
	return decided(bawn.Allow, RuleRun, "the human started this session"), nil
}

func decided(v bawn.Verdict, rule, reason string) bawn.Decision {
	return bawn.Decision{
		Verdict: v, Rule: rule, Reason: reason, Source: bawn.Builtin,
		Trace: []bawn.Step{{Stage: "rule", Verdict: v, Why: rule + ": " + reason}},
	}
}
