package launch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/config"
	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/runner"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/session"
	"github.com/bawn-dev/bawn/internal/verb"
)

// RuleFallback is recorded when a session runs on the host because no provider
// can enforce its isolation.
const RuleFallback = "builtin:fallback-to-host"

// Texts for the human about a session that nothing contains.
const (
	unsandboxedFallback = "no sandbox (fallback to host)"
	unsandboxedNamed    = "no sandbox (provider host)"
)

// provide gives a session its provider, and nothing that its parent has not.
func provide(l *Launch, e *Env, cfg *config.Config, s *bawn.Session) (choice, error) {
	c, err := choose(&l.Spec, e, cfg, s.Isolation)
	if err != nil {
		return c, err
	}
	s.Provider = c.Name()
	if l.Parent == nil {
		if l.Plan {
			return c, nil
		}
		return c, DockerHere(e, s.Isolation)
	}
	if *s, c, err = l.clamp(e, *s, c); err != nil {
		return c, err
	}
	c.from.iso = s.Isolation
	if d := c.from.look(c.Provider); !d.meets(bawn.Partly) {
		return c, d.refused(nil)
	}
	return c, nil
}

// unsandboxed reports whether the provider isolates nothing.
func (c choice) unsandboxed() bool { return sandbox.AbilitiesOf(c.Provider).Unsandboxed }

// planUnsandboxed completes a session that has no sandbox.
func (p *planner) planUnsandboxed(req sandbox.Request) (err error) {
	s, c := p.Session, p.choice
	s.Uncontained = unsandboxedNamed
	if c.Fallback != nil {
		s.Uncontained = unsandboxedFallback
	} else if err := impossible(&p.Spec); err != nil {
		return err
	}
	req.Session.Isolation.Caches = bawn.CacheShared
	if s.Plan, err = c.Plan(req); err != nil {
		return planError(err)
	}
	s.Isolation = unsandboxedIsolation(req.Session.Isolation)
	p.uncontained(p.env, &s.Session)
	p.warn(p.env, s.Uncontained, c.Fallback)
	return nil
}

// unsandboxedIsolation is the part of an isolation that still holds.
func unsandboxedIsolation(iso bawn.Isolation) bawn.Isolation {
	return bawn.Isolation{
		Profile: iso.Profile, Workspace: iso.Workspace, Mounts: []bawn.Mount{{Path: "/", Access: bawn.ReadWrite, Why: "no sandbox"}},
		Network: bawn.NetworkFull, Env: iso.Env, SetEnv: iso.SetEnv, Caches: bawn.CacheShared, CacheDirs: iso.CacheDirs, Resources: iso.Resources,
	}
}

// uncontained lowers the mode of a session that nothing contains to one that
// asks about every change, so that both protections are never lost.
func (l *Launch) uncontained(e *Env, s *bawn.Session) {
	if s.Mode <= bawn.ModeNormal {
		return
	}
	l.note(e, fmt.Sprintf("mode %s is for sandboxes: without one every change asks, as in mode %s", s.Mode, bawn.ModeNormal))
	s.Mode, s.Autonomy = bawn.ModeNormal, min(s.Autonomy, bawn.AutonomyModerate)
}

// needsSandbox are the flags that ask for what only a sandbox gives.
var needsSandbox = []string{"net", "allow", "http", "git", "host-port", "publish", "secret", "ssh-agent", "ask-timeout", "ro", "deny", "protect", "caches", "split", "model", "split-workspace", "docker"}

// impossible refuses flags that a human gives together with the host.
// Attributes from the configuration only are listed as not enforced.
func impossible(spec *session.Spec) error {
	for _, name := range needsSandbox {
		if spec.Has(name) && !(name == "net" && is(spec.Net, bawn.NetworkFull.String())) {
			return verb.Usage("leave it out, or use another provider; \"bawn doctor\" shows which there are", "--%s asks for what provider \"host\" can't give: it is no sandbox", name)
		}
	}
	return nil
}

// warn says before the start that nothing contains the session. Nobody can turn
// the warning about a fallback off.
func (l *Launch) warn(e *Env, why string, fallback error) {
	if fallback == nil && (l.Quiet || l.JSON) || l.Plan {
		return
	}
	fmt.Fprintf(e.Stderr, "bawn: warning: %s: this session has your rights, your files and your network\n", why)
	if fallback != nil {
		fmt.Fprintf(e.Stderr, "bawn: warning: %s\n", redact.Visible(oneLine(fallback)))
	}
}

// oneLine writes an error of several lines as one.
func oneLine(err error) string {
	first, rest, more := strings.Cut(err.Error(), "\n")
	if !more {
		return first
	}
	var list []string
	for line := range strings.Lines(rest) {
		list = append(list, strings.TrimSpace(line))
	}
	return first + " " + strings.Join(list, "; ")
}

// recordFallback records that a session runs on the host although nobody named
// it. A start that can't be recorded does not happen.
func recordFallback(s *runner.Session, c choice) error {
	if c.Fallback == nil {
		return nil
	}
	event := bawn.Event{
		Session: s.ID, Parent: s.Parent, Agent: s.Agent, Dir: s.Dir, Time: time.Now(), Provider: s.Plan.Provider(), Mode: s.Mode,
		Kind: "session", Operation: "fallback", Resource: strings.Join(s.Argv, " "), Args: s.Argv,
		Requested: bawn.Deny, Resolved: bawn.Allow, Source: "rule", Rule: RuleFallback, Reason: oneLine(c.Fallback), Details: map[string]string{},
	}
	var mismatch *sandbox.MismatchError
	if errors.As(c.Fallback, &mismatch) {
		event.Details["wanted"] = mismatch.Provider
		for _, n := range mismatch.Unmet {
			event.Details["unmet "+n.Attribute] = n.Why
		}
	}
	if err := s.Guard.Recorder.Record(context.Background(), event); err != nil {
		return &verb.Error{Code: verb.ExitInternal, Err: fmt.Errorf("record that the session runs without a sandbox: %w", err), Hint: "what can't be recorded does not run; mend the log or set XDG_STATE_HOME"}
	}
	return nil
}

// contains says what contains an action of the session: a sandbox, in these
// words, or nothing.
func contains(s *runner.Session, sandboxed string) string {
	if s.Uncontained != "" {
		return s.Uncontained
	}
	return sandboxed
}
