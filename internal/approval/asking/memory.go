package asking

import (
	"fmt"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval"
)

// Kept are a human's answers for a session, for longer than a prompter lives. It may
// forget at any time.
type Kept interface {
	// Recall returns the answer that was kept under a key, if it still holds.
	Recall(key string) (bawn.Answer, bool)
	// Keep keeps an answer under a key, of 64 hexadecimal digits.
	Keep(key string, a bawn.Answer) error
}

// key is the scope of a kept answer: the session, the action, and everything
// that was considered before the human was asked. If a policy, a mode or a
// sandbox changes that, the human is asked again.
func (d *Prompter) key(about approval.Digest, dec bawn.Decision) string {
	words := []string{d.opts.Session, d.opts.Agent, dec.Rule, dec.Reason, dec.Verdict.String()}
	for _, s := range dec.Trace {
		words = append(words, s.Stage, s.Verdict.String(), s.Why)
	}
	return about.Also(words...).String()
}

// recalled are the answers from before this prompter.
func (d *Prompter) recalled(about approval.Digest, dec bawn.Decision) (bawn.Answer, bool) {
	if d.opts.Kept == nil || dec.Single {
		return bawn.Answer{}, false
	}
	a, ok := d.opts.Kept.Recall(d.key(about, dec))
	if !ok || a.Scope != bawn.ForSession {
		return bawn.Answer{}, false
	}
	if a.Verdict != bawn.Allow {
		a.Verdict = bawn.Deny
	}
	a.By, a.Why = clean(a.By)+", earlier in the agent's session", clean(a.Why)
	return a, true
}

// remember keeps an answer for the session. An answer that can't be kept holds
// for as long as the prompter.
func (d *Prompter) remember(about approval.Digest, dec bawn.Decision, a bawn.Answer) {
	if d.opts.Kept == nil || dec.Single || a.Scope != bawn.ForSession {
		return
	}
	if err := d.opts.Kept.Keep(d.key(about, dec), a); err != nil {
		d.opts.Note(fmt.Sprintf("the answer is not kept for the session: %v", err))
	}
}

// letsThrough remembers that a connection was allowed by itself. It is not
// inspected, so commands that send something there ask again.
func (d *Prompter) letsThrough(a bawn.Answer) {
	d.through.Store(true)
	if d.opts.Kept == nil {
		return
	}
	a.Scope = bawn.ForSession
	if err := d.opts.Kept.Keep(d.throughKey(), a); err != nil {
		d.opts.Note(fmt.Sprintf("a command of which the connection does not ask may not ask either: %v", err))
	}
}

// letThrough reports whether a connection was allowed by itself, here or by a process
// before.
func (d *Prompter) letThrough() bool {
	if !d.through.Load() && d.opts.Kept != nil {
		if _, ok := d.opts.Kept.Recall(d.throughKey()); ok {
			d.through.Store(true)
		}
	}
	return d.through.Load()
}

// throughKey is the key of the answer that let a host through.
func (d *Prompter) throughKey() string {
	return approval.DigestOfKind(NetworkZone, "a host was let through").Also(d.opts.Session, d.opts.Agent).String()
}
