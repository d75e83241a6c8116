package launch

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval"
	"github.com/bawn-dev/bawn/internal/approval/asking"
	"github.com/bawn-dev/bawn/internal/approval/learn"
	"github.com/bawn-dev/bawn/internal/approval/link"
	"github.com/bawn-dev/bawn/internal/audit"
	"github.com/bawn-dev/bawn/internal/config"
	"github.com/bawn-dev/bawn/internal/policy"
	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/runner"
	"github.com/bawn-dev/bawn/internal/settings"
)

// Share is the part of the log that a session may take.
func (e *Env) Share(log *audit.Log, what string) *audit.Share {
	return audit.NewShare(log, cmp.Or(e.LogShare, audit.MaxShare), what)
}

// Prompter makes where the questions of a session go, which the caller closes. Rules count
// besides those of the policy's files. cfg may be nil.
func (l *Launch) Prompter(e *Env, s *runner.Session, cfg *config.Config, rules ...bawn.Rule) (_ *asking.Prompter, err error) {
	written := l.current(e, s.Isolation.Workspace)
	if len(rules) > 0 {
		written = settings.NewCurrentRules(&e.World, s.Isolation.Workspace, func(text string) { l.note(e, text) }, rules...)
	}
	o := asking.Options{
		Session: s.ID, Parent: s.Parent, Agent: s.Agent,
		Rules: written.Written, Policy: policy.Options{Resolve: settings.ResolveLinks},
		Note: func(text string) { l.note(e, text) }, Waiting: l.waiting(e),
	}
	o.DenyAway = cfg != nil && cfg.WhileAway() == "deny"
	if share, ok := s.Guard.Recorder.(*audit.Share); ok {
		o.Room = share.Room
	}
	o.Opens, o.Programs = Opens(s.Isolation.Workspace), programsOf
	if hooks := l.hookPlugins(e, s.Isolation.Workspace); hooks != nil {
		o.Hooks = hooks
	}
	if dir, err := settings.StateDir(&e.World); err == nil {
		o.Relay = relayOf(e, dir, s.ID, s.Parent)
		if l.Parent != nil {
			o.Relay = prompterAbove(l.Parent, s.ID)
		} else if l.For != "" {
			if err := l.asksFor(e, dir, &o); err != nil {
				return nil, err
			}
		} else if l.Asks != "" {
			o.Relay = func(ctx context.Context, _ bool) (approval.Prompter, error) {
				return link.Dial(ctx, link.Options{Path: l.Asks, Session: s.ID})
			}
		}
		o.Learn = func() (*learn.Store, error) { return learn.Open(filepath.Join(dir, "learned.json"), time.Now) }
		if o.Grants, err = settings.GrantsFile(&e.World); err != nil {
			return nil, err
		}
	}
	if s.Zone, err = networkZone(e, s); err != nil {
		return nil, err
	}
	if s.Split != nil {
		s.Split.Zone = commandZone(e, s)
	}
	return asking.New(o), nil
}

// waiting tells the user of a session without a terminal that the session waits for
// an answer, and to which question. A session in the background gets no such
// message, since its screen is the guest's.
func (l *Launch) waiting(e *Env) func(approval.Question) {
	if e.host != nil || l.Parent != nil || l.Asks != "" {
		return nil
	}
	return func(q approval.Question) {
		text := cmp.Or(q.Canonical, q.Action.Resource)
		if q.Action.Kind == bawn.Tool {
			text += " " + strings.Join(q.Action.Args, " ")
		}
		what := []rune(redact.Visible(text))
		left := time.Until(q.Expires).Round(time.Second)
		l.note(e, fmt.Sprintf("waiting %v for your answer (bawn approve %s, or bawn deny %[2]s): %s", left, q.ID[:min(len(q.ID), 8)], string(what[:min(len(what), 200)])))
	}
}

// networkZone is shared by the questions of a session's network.
func networkZone(e *Env, s *runner.Session) (z asking.Zone, err error) {
	z = asking.Zone{Name: asking.NetworkZone, Question: SessionQuestion(e, s), Covered: s.Covered, Contains: contains(s, "the guest keeps to its sandbox; what it sends there leaves it")}
	entries := s.Isolation.Egress
	if s.Split != nil { // only what commands reach is asked about
		entries = s.Split.Isolation.Egress
	}
	z.Decide, err = asking.Network(entries)
	return z, err
}

// SessionQuestion is what all questions of a session share.
func SessionQuestion(e *Env, s *runner.Session) policy.Question {
	return policy.Question{
		Mode: s.Mode, Autonomy: s.Autonomy, Contained: s.Contained, Workspace: s.Isolation.Workspace, Home: e.Getenv("HOME"), System: runtime.GOOS,
		Unprotected: s.Isolation.Unprotected, ConnectionAsks: s.ConnectionAsks, Copy: s.Copy != "", Project: s.Project,
	}
}
