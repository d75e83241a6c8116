package asking

import (
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval"
)

// NetworkZone is the name of the zone in which connections are asked about.
const NetworkZone = "network"

// opensFor is how long a yes to a command opens the connection that it names.
const opensFor = 2 * time.Minute

// KeptOnce is a Kept that keeps answers for one use by another process, too.
type KeptOnce interface {
	Kept
	// KeepOnce keeps an answer under a key until it is spent, or too old.
	KeepOnce(key string, a bawn.Answer) error
	// Spend takes it.
	Spend(key string) (bawn.Answer, bool)
}

// opens has a yes to a command answer what its connection would ask, once: it is the
// same action to the human.
func (d *Prompter) opens(o *open, a bawn.Answer) {
	if d.opts.Opens == nil || a.Verdict != bawn.Allow || o.Action.Kind != bawn.Command {
		return
	}
	a.Scope, a.By = bawn.Once, clean(a.By)+", with the command"
	for _, c := range d.opts.Opens(o.Action) {
		about := connection(c)
		d.said.Ahead(about, a, d.opts.Now().Add(opensFor))
		if k, ok := d.opts.Kept.(KeptOnce); ok {
			if err := k.KeepOnce(d.opened(about), a); err != nil {
				d.opts.Note("the connection of the command is asked about: " + err.Error())
			}
		}
	}
}

// spend takes an answer that was given with a command, here or by a process before.
func (d *Prompter) spend(about approval.Digest) (bawn.Answer, bool) {
	if a, ok := d.said.Spend(about, d.opts.Now()); ok {
		return a, true
	}
	k, ok := d.opts.Kept.(KeptOnce)
	if !ok {
		return bawn.Answer{}, false
	}
	a, ok := k.Spend(d.opened(about))
	a.By, a.Why = clean(a.By), clean(a.Why)
	return a, ok && a.Verdict == bawn.Allow
}

// opened is the key of an answer that was given with a command.
func (d *Prompter) opened(about approval.Digest) string {
	return about.Also("opened", d.opts.Session, d.opts.Agent).String()
}

// connection is the digest under which the network asks about one.
func connection(a bawn.Action) approval.Digest {
	z := Zone{Name: NetworkZone}
	return z.digest(a, bawn.Decision{})
}
