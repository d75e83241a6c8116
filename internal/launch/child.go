package launch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval"
	"github.com/bawn-dev/bawn/internal/approval/link"
	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/session"
	"github.com/bawn-dev/bawn/internal/verb"
)

// refused gives what session refuses its exit code.
func refused(err error) error {
	var r *session.RefusedError
	if errors.As(err, &r) {
		return &verb.Error{Code: verb.ExitDenied, Err: err, Hint: r.Hint}
	}
	return err
}

// clamp makes a session no freer than its parent, reports what was asked for
// and is not given, and returns the provider to use.
func (l *Launch) clamp(e *Env, s bawn.Session, asked choice) (bawn.Session, choice, error) {
	if l.Parent == nil {
		return s, asked, nil
	}
	parent, err := asked.from.get(l.Parent.Session.Provider)
	if err != nil {
		return s, asked, err
	}
	s, narrowed, err := l.Parent.Clamp(s, session.Providers{asked.Name(): asked.Capabilities(), parent.Name(): parent.Capabilities()})
	l.sayNarrowed(e, narrowed)
	if err == nil && s.Provider == parent.Name() && asked.Name() != parent.Name() {
		asked = asked.from.take(parent, whyParent, nil)
	}
	return s, asked, refused(err)
}

// all is seen by who started the first session.
func all(string) bool { return true }

// narrow applies the parts of a request that are not in an isolation.
func narrow(k *session.Parent, req *sandbox.Request) {
	if k == nil {
		return
	}
	req.Open, req.Protected = session.Open(k.Open, req.Open), session.Protected(k.Protected, req.Protected)
	req.Project = req.Project && k.Project
	req.Guarded, req.SetEnv = k.Guarded, append(req.SetEnv, k.SetEnv...)
}

// told is what a guest is told about the end of its own session. If a program
// was not found, it says what the host has that the guest does not see.
func told(above *session.Parent, err error) error {
	var absent *sandbox.NotFoundError
	if above == nil || !errors.As(err, &absent) {
		return err
	}
	code := verb.ExitDenied
	if errors.Is(absent.Err, unix.ENOENT) {
		code = verb.ExitNotFound
	}
	return &verb.Error{Code: code, Err: fmt.Errorf("%s: %w", redact.Visible(absent.Name), absent.Err), Hint: "name a program that this session sees"}
}

// prompterAbove reaches the humans of the parent: nobody is asked at a terminal that a
// guest holds.
func prompterAbove(k *session.Parent, id string) func(context.Context, bool) (approval.Prompter, error) {
	return func(ctx context.Context, _ bool) (approval.Prompter, error) {
		if k.Asks == "" {
			return nil, errors.New("the session above can't be asked")
		}
		return link.Dial(ctx, link.Options{Path: k.Asks, Session: id, Parent: k.Session.ID})
	}
}

// askedBy says by which flags an attribute is asked for (session.Narrowed).
var askedBy = map[string][]string{
	"mode": {"mode"}, "provider": {"provider"}, "mounts": {"rw", "ro"}, "network": {"net", "allow", "http", "git", "host-port", "secret", "ssh-agent"},
	"egress": {"allow", "http", "git"}, "egress.host_ports": {"host-port"}, "egress.ports": {"publish"}, "egress.secrets": {"secret"},
	"egress.ssh_agent": {"ssh-agent"}, "egress.ask": {"ask-timeout"}, "env": {"env"}, "devices": {"device"}, "cpus": {"cpus"}, "memory_mb": {"memory"},
	"pids_limit": {"pids"}, "timeout": {"timeout"},
}

// sayNarrowed tells a guest what it has asked for and did not get. Restrictions
// from the configuration only are no news to it.
func (l *Launch) sayNarrowed(e *Env, list []session.Narrowed) {
	for _, n := range list {
		if !slices.ContainsFunc(askedBy[n.Attribute], func(name string) bool { return l.Has(name) || l.Has("profile") || l.Has("as") }) {
			continue
		}
		text := fmt.Sprintf("%s: asked for %s, given %s", n.Attribute, n.Asked, n.Given)
		if n.Given == "" {
			text = fmt.Sprintf("%s: %s is not given", n.Attribute, n.Asked)
		}
		l.note(e, strings.TrimSpace(text+" ("+n.Why+")"))
	}
}
