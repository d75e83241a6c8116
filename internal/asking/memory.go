package asking

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/bawn-dev/bawn"
)

// A Memory keeps what a human has answered for a session longer than a desk
// lives. It may forget at any time.
type Memory interface {
	// Recall returns the answer that was kept under a key, if it still holds.
	Recall(key string) (bawn.Answer, bool)
	// Keep keeps an answer under a key, of 64 hexadecimal digits.
	Keep(key string, a bawn.Answer) error
}

// key is what a kept answer holds for: the session, the action, and all that was
// considered before the human was asked. A policy, a mode or a sandbox that
// changes what is considered has the human asked again.
func (d *Desk) key(about string, dec bawn.Decision) string {
	h := sha256.New()
	words(h, d.opts.Session, d.opts.Agent, about, dec.Rule, dec.Reason, dec.Verdict.String())
	for _, s := range dec.Trace {
		words(h, s.Stage, s.Verdict.String(), s.Why)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// recalled is what was answered before this desk was.
func (d *Desk) recalled(about string, dec bawn.Decision) (bawn.Answer, bool) {
	if d.opts.Memory == nil {
		return bawn.Answer{}, false
	}
	a, ok := d.opts.Memory.Recall(d.key(about, dec))
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
// long as the desk.
func (d *Desk) remember(about string, dec bawn.Decision, a bawn.Answer) {
	if d.opts.Memory == nil || a.Scope != bawn.ForSession {
		return
	}
	if err := d.opts.Memory.Keep(d.key(about, dec), a); err != nil {
		d.opts.Note(fmt.Sprintf("the answer is not kept for the session: %v", err))
	}
}
