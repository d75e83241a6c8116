// Package pluginhook asks plugins of the kind "hook" about actions. What they
// say only tightens: a denial stays one, and what was allowed or is asked about
// may become a question or a denial, never more than it was. A plugin that is
// dead, slow, noisy or unclear denies.
package pluginhook

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/plugin"
	"github.com/bawn-dev/bawn/internal/redact"
)

// RulePrefix stands before a plugin's name in the rule of what it had denied
// or asked about.
const RulePrefix = "plugin:"

// RuleUnread is that of actions while nobody knows which plugins there are.
const RuleUnread = "builtin:hook-plugins"

// A Set is the plugins of one session. Its methods may be called from any
// goroutine; nil tightens nothing.
type Set struct {
	read  func() ([]*Hook, error)
	hooks []*Hook // that were read: Close ends them

	mu     sync.Mutex
	closed bool
}

// NewSet returns the set that load reads, once, at the first action. Close ends
// it.
func NewSet(load func() ([]Options, error)) *Set {
	s := &Set{}
	s.read = sync.OnceValues(func() ([]*Hook, error) {
		all, err := load()
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, o := range all {
			h := newHook(o)
			if s.closed {
				h.close()
			}
			s.hooks = append(s.hooks, h)
		}
		return s.hooks, err
	})
	return s
}

// Close ends the plugins. What is judged later is denied by those there were.
func (s *Set) Close() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, h := range s.hooks {
		h.close()
	}
}

// Tighten asks the plugins that are told of such actions, one after the other,
// and returns d or what is stricter. The canonical text, environment and trace
// of d stay; what plugins say is added to the trace.
func (s *Set) Tighten(ctx context.Context, a bawn.Action, d bawn.Decision) bawn.Decision {
	if s == nil || d.Verdict != bawn.Allow && d.Verdict != bawn.Ask {
		return d
	}
	hooks, err := s.read()
	if err != nil {
		return stricter(d, bawn.Deny, RuleUnread, "a manifest of a hook plugin can't be read, and nobody knows what it would object to", err.Error())
	}
	for _, h := range hooks {
		if !slices.Contains(h.Kinds, a.Kind) {
			continue
		}
		if d = h.tighten(ctx, a, d); d.Verdict == bawn.Deny {
			return d
		}
	}
	return d
}

// tighten has one plugin say what it makes of the action.
func (h *Hook) tighten(ctx context.Context, a bawn.Action, d bawn.Decision) bawn.Decision {
	answer, err := h.ask(ctx, plugin.Question{
		Kind: a.Kind.String(), Operation: a.Operation.String(), Resource: a.Resource, Args: append([]string{}, a.Args...),
		Dir: a.Dir, Agent: a.Agent, Session: a.Session, Verdict: d.Verdict.String(), Rule: d.Rule,
	})
	rule, says := RulePrefix+h.Name, words(answer.Reason)
	switch {
	case err != nil:
		return stricter(d, bawn.Deny, rule, fmt.Sprintf("the plugin %q must be asked and gives no answer: %v", h.Name, err), err.Error())
	case answer.Verdict == plugin.Deny:
		return stricter(d, bawn.Deny, rule, fmt.Sprintf("the plugin %q denies it: %s", h.Name, says), says)
	case answer.Verdict == plugin.Ask:
		reason := fmt.Sprintf("the plugin %q wants it asked about: %s", h.Name, says)
		if d.Verdict == bawn.Ask && d.Reason != "" {
			reason += "; besides, " + d.Reason
		}
		return stricter(d, bawn.Ask, rule, reason, says)
	case answer.Verdict == plugin.Pass:
		return d
	}
	return stricter(d, bawn.Deny, rule, fmt.Sprintf("the plugin %q gives an unknown answer", h.Name), "")
}

// stricter is d with a verdict that permits no more than it.
func stricter(d bawn.Decision, v bawn.Verdict, rule, reason, why string) bawn.Decision {
	d.Trace = append(slices.Clip(d.Trace), bawn.Step{Stage: rule, Verdict: v, Why: why})
	d.Verdict, d.Rule, d.Reason, d.Source = bawn.Strictest(d.Verdict, v), rule, reason, bawn.User
	return d
}

// maxWords is how much of a plugin's words anybody is shown, in characters.
const maxWords = 300

// words are those of a plugin as one line that is safe to print.
func words(s string) string {
	if s == "" {
		return "it gives no reason"
	}
	r := []rune(redact.Visible(s[:min(len(s), 8*maxWords)]))
	if len(r) > maxWords {
		return string(r[:maxWords]) + " [cut]"
	}
	return string(r)
}
