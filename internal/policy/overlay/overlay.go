// Package overlay holds every change that a part of a session makes to the
// policy's verdict before the guard sees it. An overlay never lifts a person's
// denial: a rule of a user, a project or a manager that denies stays.
package overlay

import (
	"context"
	"fmt"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/fspath"
	"github.com/bawn-dev/bawn/internal/policy"
)

// Rules that overlays decide by.
const (
	RuleLater     = "builtin:asked-later"      // it is asked about where it happens: a command where it is executed, a connection where it is made
	RuleElsewhere = "builtin:elsewhere"        // a command that would run outside of the workspace
	RuleContainer = "builtin:docker-contained" // a container that may do no more than its session
)

// A Decide puts a question to a policy.
type Decide func(*policy.Policy, *policy.Question) bawn.Decision

// Later allows what would be asked about: the question comes where it happens,
// with the words that are executed. What is denied stays denied.
func Later(p *policy.Policy, q *policy.Question) bawn.Decision {
	d := p.Decide(q)
	if d.Verdict == bawn.Ask {
		d.Verdict, d.Rule, d.Reason = bawn.Allow, RuleLater, "it is decided where it happens: "+d.Reason
	}
	return d
}

// Gateway allows a call that the gateway decides about next, where the plugin's
// manifest and the arguments are known. A rule's denial stays.
func Gateway(p *policy.Policy, q *policy.Question) bawn.Decision {
	d := p.Decide(q)
	if d.Verdict != bawn.Allow && policy.Said(d) != bawn.Deny {
		d.Verdict, d.Rule, d.Reason = bawn.Allow, RuleLater, "it is decided at the gateway: "+d.Reason
	}
	return d
}

// Places answers questions about a path outside of the workspace by the sandbox's
// access for the guest. The user who started the session chose these places, and
// an answer can't open others. Mode strict still asks.
func Places(places []bawn.Mount) Decide {
	return func(p *policy.Policy, q *policy.Question) bawn.Decision {
		d := p.Decide(q)
		if d.Verdict != bawn.Ask || d.Rule != policy.RulePath || q.Mode == bawn.ModeStrict {
			return d
		}
		if name, err := fspath.Clean(q.Action.Resource, q.Action.Dir, q.Home); err == nil && writable(places, name) {
			d.Verdict, d.Reason = bawn.Allow, "the session may write there"
			return d
		}
		d.Verdict, d.Reason = bawn.Deny, "this session may not write there"
		return d
	}
}

// Within decides about files that within accepts as a sandbox would contain it: the
// program writes those places and no others. Removing a file stays as it is, since
// no checkpoint takes it back.
func Within(within func(name string) bool) Decide {
	return func(p *policy.Policy, q *policy.Question) bawn.Decision {
		name, err := fspath.Clean(q.Action.Resource, q.Action.Dir, q.Home)
		if err != nil || q.Action.Operation == bawn.Delete || !within(name) {
			return p.Decide(q)
		}
		inside := *q
		inside.Contained = bawn.ContainedFully
		return p.Decide(&inside)
	}
}

// writable reports whether the deepest place around a path may be written.
func writable(places []bawn.Mount, name string) bool {
	deepest := bawn.Mount{}
	for _, m := range places {
		if fspath.Below(name, m.Path) && len(m.Path) >= len(deepest.Path) {
			deepest = m
		}
	}
	return deepest.Access == bawn.ReadWrite
}

// Elsewhere denies a command that would run in dir, outside of the workspace.
func Elsewhere(dir, workspace string) Decide {
	return func(*policy.Policy, *policy.Question) bawn.Decision {
		return bawn.Denied(fmt.Sprintf("the command would run in %q, which is outside of the workspace %q; run it in the workspace and name other places by their paths, or have your human start the agent there", dir, workspace), RuleElsewhere)
	}
}

// Container decides about a container that a guest asks for. It may do no more
// than its session: connections are decided by network, everything else by
// people's rules only, unless the session decides about each command.
func Container(network Decide, each bool) Decide {
	return func(p *policy.Policy, q *policy.Question) bawn.Decision {
		if q.Action.Kind == bawn.Network {
			return network(p, q)
		}
		d := p.Decide(q)
		if each || d.Verdict == bawn.Deny && d.Source != bawn.Builtin {
			return d
		}
		return bawn.Decision{Verdict: bawn.Allow, Rule: RuleContainer, Reason: "a container of the guest's own, no wider than the session", Source: bawn.Builtin}
	}
}

// Insist returns a decider that asks where d allows, for a reason, by a built-in
// rule. Without a reason it is d.
func Insist(d bawn.Decider, rule, reason string) bawn.Decider {
	if reason == "" {
		return d
	}
	return insisting{d, rule, reason}
}

type insisting struct {
	bawn.Decider
	rule, reason string
}

func (i insisting) Decide(ctx context.Context, a bawn.Action) (bawn.Decision, error) {
	d, err := i.Decider.Decide(ctx, a)
	if d.Verdict == bawn.Allow {
		d.Verdict, d.Rule, d.Source, d.Reason = bawn.Ask, i.rule, bawn.Builtin, i.reason
	}
	return d, err
}
