package asking

import (
	"fmt"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval"
)

// Kept is what a human has answered for a session, for longer than a prompter lives. It
// may forget at any time.
type Kept interface {
	// Recall returns the answer that was kept under a key, if it still holds.
	Recall(key string) (bawn.Answer, bool)
	// Keep keeps an answer under a key, of 64 hexadecimal digits.
	Keep(key string, a bawn.Answer) error
}

// key is what a kept answer holds for: the session, the action, and all that was
// considered before the human was asked. A policy, a mode or a sandbox that
// changes what is considered has the human asked again.
func (d *Prompter) key(about approval.Digest, dec bawn.Decision) string {
	words := []string{d.opts.Session, d.opts.Agent, dec.Rule, dec.Reason, dec.Verdict.String()}
	for _, s := range dec.Trace {
		words = append(words, s.Stage, s.Verdict.String(), s.Why)
	}
	return about.Also(words...).String()
}

// recalled is what was answered before this prompter was.
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

// remember keeps an answer for the session. One that can't be kept holds for as
// long as the prompter.
func (d *Prompter) remember(about approval.Digest, dec bawn.Decision, a bawn.Answer) {
	if d.opts.Kept == nil || dec.Single || a.Scope != bawn.ForSession {
		return
	}
	if err := d.opts.Kept.Keep(d.key(about, dec), a); err != nil {
		d.opts.Note(fmt.Sprintf("the answer is not kept for the session: %v", err))
	}
}

// letsThrough remembers that a connection was allowed by itself: into what is sent
// there nobody looks, so that commands that send something ask again.
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
