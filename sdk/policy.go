package sdk

import (
	"context"
	"errors"
	"runtime"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/policy"
)

// A Situation is where actions happen. The zero Situation is the strictest mode, without a
// sandbox and without a workspace.
type Situation struct {
	Mode      bawn.Mode
	Contained bawn.Contained // what a sandbox that the caller trusts enforces
	Workspace string         // absolute, or "" where nothing lies in one
	Home      string         // absolute, or "" where "~" is nobody's
	Untrusted bool           // the agent has read what a stranger may have written
}

// A Policy decides about actions: by Bawn's built-in rules, the caller's, and the
// situation. It asks nobody and records nothing: a decision with the verdict bawn.Ask is
// the caller's to put to a human. It is safe for concurrent use. A Policy implements
// bawn.Decider.
type Policy struct {
	rules     *policy.Policy
	situation Situation
}

// NewPolicy makes a policy of rules in the form of docs/policy.md, which may be nil. Rules
// that can't be read, or fail their own examples, are an error, and then there is no policy.
func NewPolicy(rules []byte, s Situation) (*Policy, error) {
	list, err := policy.ParseFile("rules", rules, bawn.User)
	if err != nil {
		return nil, err
	}
	p, err := policy.New(list, policy.Options{})
	if err != nil {
		return nil, err
	}
	return &Policy{rules: p, situation: s}, nil
}

// Decide answers what becomes of an action. Of a command the caller must execute
// Decision.Canonical, with Decision.Env, and nothing else: that is what was judged. An
// error denies.
func (p *Policy) Decide(ctx context.Context, a bawn.Action) (bawn.Decision, error) {
	if p == nil || p.rules == nil {
		return bawn.Denied("there is no policy", "sdk:no-policy"), errors.New("the policy is zero; want one of NewPolicy")
	}
	if err := ctx.Err(); err != nil {
		return bawn.Denied("the decision was cancelled", "sdk:cancelled"), err
	}
	s := p.situation
	return p.rules.Decide(&policy.Question{
		Action: a, Mode: s.Mode, Autonomy: policy.AutonomyOf(s.Mode), Contained: s.Contained, Workspace: s.Workspace, Home: s.Home,
		System: runtime.GOOS, Taint: policy.Taint{Untrusted: s.Untrusted},
	}), nil
}

var _ bawn.Decider = (*Policy)(nil)
