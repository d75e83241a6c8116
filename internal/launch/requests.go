package launch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"strings"
	"sync"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval/asking"
	"github.com/bawn-dev/bawn/internal/guard"
	"github.com/bawn-dev/bawn/internal/hostname"
	"github.com/bawn-dev/bawn/internal/intent"
	"github.com/bawn-dev/bawn/internal/judge"
	"github.com/bawn-dev/bawn/internal/sessionsocket"
	"github.com/bawn-dev/bawn/internal/shell"
)

// requests puts a guest's requests to the human before the guest acts.
type requests struct {
	session  bawn.Session
	prompter *asking.Prompter
	network  asking.Zone
	command  *asking.Zone   // nil where commands are not decided one by one
	guard    guard.Guard    // its recorder and clock are used
	reach    bawn.Isolation // that network is about
	patience
}

// Limits of a guest's requests: a human who is asked too often says yes.
const (
	maxRequests = 64 // that wait
	maxRefused  = 3  // in quiet; then none is asked until that is over
	quiet       = time.Minute
)

// RuleRequest is that of requests which no human is asked about.
const RuleRequest = "builtin:request"

// patience keeps a guest from asking until it is allowed.
type patience struct {
	mu      sync.Mutex
	waiting int
	refused map[string]time.Time // when, by the text of the request
}

// begin lets a request be asked, unless too many are, or were in vain.
func (p *patience) begin(key string, now time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.refused, func(_ string, at time.Time) bool { return now.Sub(at) >= quiet })
	_, same := p.refused[key]
	switch {
	case same:
		return fmt.Errorf("the same was not allowed less than %v ago", quiet)
	case len(p.refused) >= maxRefused:
		return fmt.Errorf("%d requests were not allowed within %v", maxRefused, quiet)
	case p.waiting >= maxRequests:
		return fmt.Errorf("%d requests of this session wait for an answer", maxRequests)
	}
	p.waiting++
	return nil
}

// end notes the outcome of a request. An abandoned request counts as refused:
// the human was asked.
func (p *patience) end(key string, allowed bool, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting--
	if allowed {
		return
	}
	if p.refused == nil {
		p.refused = map[string]time.Time{}
	}
	p.refused[key] = now
}

// Request serves `bawn request`: a handler of a session socket.
func (q *requests) Request(ctx context.Context, c *sessionsocket.Conn, r intent.Request) {
	a, zone, err := q.read(&r)
	if err != nil {
		_ = c.Send(intent.Reply{Answer: &intent.RequestAnswer{Why: err.Error()}}) // a guest that is gone asks for nothing
		return
	}
	a.Session, a.Agent, a.At = q.session.ID, q.session.Agent, time.Now()
	if len(r.Why) > judge.MaxWords {
		r.Why = strings.ToValidUTF8(r.Why[:judge.MaxWords], "") + " [cut]"
	}
	key := strings.Join(r.Want, "\x00")
	if err := q.begin(key, a.At); err != nil {
		c.Refuse(RuleRequest, err.Error(), "go on without it, or wait")
		return
	}
	d := q.decide(ctx, a, zone, r.Why)
	q.end(key, d.Verdict == bawn.Allow, time.Now())
	if d.Verdict != bawn.Allow {
		c.Deny(d.Rule, d.Reason, "do it another way; asking again at once is refused unasked")
		return
	}
	_ = c.Send(intent.Reply{Answer: &intent.RequestAnswer{Granted: true, Why: d.Reason}}) // as above
}

// decide asks, for a host no longer than a connection to it would wait.
func (q *requests) decide(ctx context.Context, a bawn.Action, zone *asking.Zone, why string) bawn.Decision {
	if zone == &q.network {
		limited, cancel := context.WithTimeout(ctx, q.reach.Egress.Ask)
		defer cancel()
		ctx = limited
	}
	g := q.guard
	g.Decider, g.Approver = q.prompter.Decider(*zone), q.prompter.Ahead(*zone, why)
	return g.Check(ctx, a, bawn.Event{Parent: q.session.Parent, Provider: q.session.Provider, Mode: q.session.Mode, Details: map[string]string{"request": "ahead of the action"}})
}

// read turns a request into the action that it is about.
func (q *requests) read(r *intent.Request) (bawn.Action, *asking.Zone, error) {
	want := r.Want
	switch {
	case len(want) == 2 && want[0] == "--allow":
		switch {
		case q.reach.Network != bawn.NetworkAllowlist:
			return bawn.Action{}, nil, fmt.Errorf("the network of this session is %q, in which no host can be opened", q.reach.Network)
		case q.reach.Egress.Ask == 0:
			return bawn.Action{}, nil, errors.New("this session asks nobody about hosts; it was started so")
		}
		resource, err := hostAndPort(want[1])
		return bawn.Action{Kind: bawn.Network, Operation: bawn.Connect, Resource: resource}, &q.network, err
	case len(want) >= 2 && want[0] == "--":
		argv := want[1:]
		if q.command == nil {
			return bawn.Action{}, nil, errors.New("commands are not asked about in this session: run it; what the sandbox does not give can't be had by asking")
		}
		text, err := commandLine(argv)
		return bawn.Action{Kind: bawn.Command, Operation: bawn.Exec, Resource: text, Dir: r.Dir}, q.command, err
	}
	return bawn.Action{}, nil, fmt.Errorf("%.200q can't be had in a session that runs; a host (--allow HOST) and a command (-- COMMAND) can, and the rest is said by who starts the session", want)
}

// hostAndPort reads HOST or HOST:PORT; the port of HTTPS is meant by the first.
func hostAndPort(text string) (string, error) {
	host, _, port, err := hostname.Split(text)
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(host, cmp.Or(port, "443")), nil
}

// commandLine is argv as the shim's shell would be told to run it.
func commandLine(argv []string) (string, error) {
	words := make([]string, len(argv))
	for i, w := range argv {
		var err error
		if words[i], err = syntax.Quote(w, syntax.LangBash); err != nil {
			return "", err
		}
	}
	return shell.Canonical(strings.Join(words, " "), shell.Bash)
}
