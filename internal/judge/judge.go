// Package judge decides about the actions that an agent reports to take by itself:
// the tools of its own process, and commands that nothing else decides one by one.
package judge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval/asking"
	"github.com/bawn-dev/bawn/internal/guard"
	"github.com/bawn-dev/bawn/internal/hook"
	"github.com/bawn-dev/bawn/internal/intent"
	"github.com/bawn-dev/bawn/internal/policy/overlay"
	"github.com/bawn-dev/bawn/internal/sessionsocket"
	"github.com/bawn-dev/bawn/internal/shell"
)

// maxNamed bounds a guest's own words in an event.
const maxNamed = 200

// MaxWords bounds a guest's words to the human, in bytes.
const MaxWords = 600

// A Judge decides about the actions of one session, or of one call of an unsandboxed agent's
// hook. Its methods may be called from any goroutine.
type Judge struct {
	Session  bawn.Session
	Guard    guard.Guard
	Prompter *asking.Prompter
	Zones    map[bawn.Kind]asking.Zone // where actions of each kind are decided
	Now      func() time.Time
	Twice    bool // a decision ahead is judged again when it is executed
	waiting  atomic.Int32
}

// Zone is where an action of a message is decided about. A tool of the gateway's
// counts as one only where the message is about just that.
func (j *Judge) Zone(m *intent.Judge, a bawn.Action) asking.Zone {
	z := j.Zones[a.Kind]
	if resource, ok := hook.AtGateway(m.Tool); ok && a.Kind == bawn.Tool && a.Resource == resource {
		z.Decide, z.Later = overlay.Gateway, true
	}
	return z
}

// Serve answers an agent's hooks and Bawn's own tools: a handler of a session socket.
func (j *Judge) Serve(ctx context.Context, c *sessionsocket.Conn, m intent.Judge) {
	actions, err := j.Read(&m)
	if err != nil {
		c.Refuse(sessionsocket.RuleMessage, err.Error(), "speak the protocol of this version")
		return
	}
	if j.waiting.Add(1) > sessionsocket.MaxWaiting {
		j.waiting.Add(-1)
		c.Refuse(sessionsocket.RuleWaiting, fmt.Sprintf("%d actions of this session wait for a decision", sessionsocket.MaxWaiting), "wait for an answer to some of them")
		return
	}
	defer j.waiting.Add(-1)
	v := j.Verdict(ctx, &m, actions)
	_ = c.Send(intent.Reply{Verdict: &v}) // a guest that is gone has not been allowed anything
}

// Read checks a guest's message and makes actions of it.
func (j *Judge) Read(m *intent.Judge) ([]bawn.Action, error) {
	switch {
	case !filepath.IsAbs(m.Dir) || filepath.Clean(m.Dir) != m.Dir || strings.IndexByte(m.Dir, 0) >= 0:
		return nil, fmt.Errorf("the directory is %.80q; want it absolute and clean", m.Dir)
	case len(m.Actions) > intent.MaxActs, len(m.Actions) == 0 && m.Seen == "":
		return nil, fmt.Errorf("%d actions; want 1 to %d", len(m.Actions), intent.MaxActs)
	}
	out := make([]bawn.Action, len(m.Actions))
	for i, act := range m.Actions {
		a := bawn.Action{Resource: act.Resource, Args: act.Args, Session: j.Session.ID, Agent: j.Session.Agent, Dir: m.Dir, At: j.Now()}
		err := errors.Join(a.Kind.UnmarshalText([]byte(act.Kind)), a.Operation.UnmarshalText([]byte(act.Operation)))
		switch {
		case err != nil:
			return nil, err
		case !a.Valid():
			return nil, errors.New("an action is about nothing")
		case strings.IndexByte(act.Resource+strings.Join(act.Args, ""), 0) >= 0:
			return nil, errors.New("a word holds a NUL, where the kernel would cut it")
		}
		out[i] = a
	}
	return out, nil
}

// Verdict decides about all of the actions, one after the other; the first that
// is denied ends it.
func (j *Judge) Verdict(ctx context.Context, m *intent.Judge, actions []bawn.Action) intent.Verdict {
	if m.Seen != "" {
		return j.seen(ctx, m, actions)
	}
	v := intent.Verdict{Verdict: bawn.Allow.String()}
	for _, a := range actions {
		d := j.decide(ctx, m, a)
		if d.Verdict != bawn.Allow {
			v = intent.Verdict{Verdict: bawn.Deny.String(), Rule: d.Rule, Reason: d.Reason, Remedy: intent.AnotherWay}
			if d.Rule == guard.RuleApproval {
				v.Remedy = intent.Meanwhile
			}
			return v
		}
		v.Rule, v.Reason = cmp.Or(v.Rule, d.Rule), cmp.Or(v.Reason, d.Reason)
		if len(actions) == 1 {
			v.Canonical = d.Canonical
			if !m.Contained { // there, a sandbox holds what git would run of a repository's
				v.Env = d.Env
			}
		}
	}
	return v
}

// decide has one action judged by the guard.
func (j *Judge) decide(ctx context.Context, m *intent.Judge, a bawn.Action) bawn.Decision {
	zone, g := j.Zone(m, a), j.Guard
	g.Decider, g.Approver = j.Prompter.Decider(zone), j.approver(m, zone)
	whole, err := Canonical(a)
	if err != nil {
		g.Decider = settled(bawn.Denied(err.Error(), sessionsocket.RuleText))
	}
	a = whole
	d := g.Check(ctx, a, j.Event(m))
	if a.Kind == bawn.Command && len(a.Args) == 0 {
		d.Canonical = cmp.Or(d.Canonical, a.Resource) // seen and allowed by a human
	}
	return d
}

// Canonical is the action in whose words it is judged: of a command line, those
// that may be executed. An error comes with the action as it was.
func Canonical(a bawn.Action) (bawn.Action, error) {
	if a.Kind != bawn.Command || len(a.Args) > 0 {
		return a, nil
	}
	text, err := shell.Canonical(a.Resource, shell.Bash)
	if err == nil {
		a.Resource = cmp.Or(text, ":") // a comment, or blanks
	}
	return a, err
}

// approver is who answers: nobody where the guest does not want to wait.
func (j *Judge) approver(m *intent.Judge, zone asking.Zone) bawn.Approver {
	switch {
	case !m.Mayask:
		return nobody{}
	case m.Ahead && j.Twice:
		return j.Prompter.Ahead(zone, named(m.Why, MaxWords))
	}
	return j.Prompter.Approver(zone)
}

// Event is what every event of an agent's own doing says.
func (j *Judge) Event(m *intent.Judge) bawn.Event {
	details := map[string]string{"hook": named(m.Agent, maxNamed), "tool": named(m.Tool, maxNamed)}
	if m.Seen != "" {
		details["seen"] = named(m.Seen, maxNamed)
	}
	return bawn.Event{Parent: j.Session.Parent, Provider: j.Session.Provider, Mode: j.Session.Mode, Details: details}
}

// seen records what an agent reports to have done. It may lie: the event says
// whose word that is.
func (j *Judge) seen(ctx context.Context, m *intent.Judge, actions []bawn.Action) intent.Verdict {
	if len(actions) == 0 {
		actions = []bawn.Action{{Kind: bawn.Tool, Operation: bawn.Call, Resource: named(m.Agent+"/"+m.Seen, maxNamed), Session: j.Session.ID, Agent: j.Session.Agent, Dir: m.Dir}}
	}
	for _, a := range actions {
		g := guard.Guard{Decider: settled(told), Recorder: j.Guard.Recorder, Now: j.Guard.Now}
		if d := g.Check(ctx, a, j.Event(m)); d.Verdict != bawn.Allow {
			return intent.Verdict{Verdict: bawn.Deny.String(), Rule: d.Rule, Reason: d.Reason}
		}
	}
	return intent.Verdict{Verdict: bawn.Allow.String(), Rule: told.Rule, Reason: told.Reason}
}

// told is the decision about a past action.
var told = bawn.Decision{Verdict: bawn.Allow, Rule: "builtin:told-by-agent", Reason: "the agent says that this has happened", Source: bawn.Builtin}

// named bounds a guest's own words.
func named(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + " [cut]"
}

// settled is a decision that has been made.
type settled bawn.Decision

// Decide returns it.
func (d settled) Decide(context.Context, bawn.Action) (bawn.Decision, error) {
	return bawn.Decision(d), nil
}

// nobody is asked.
type nobody struct{}

// Approve denies.
func (nobody) Approve(context.Context, bawn.Action, bawn.Decision) (bawn.Answer, error) {
	return bawn.Answer{}, errors.New("who wants it does not wait for a human")
}
