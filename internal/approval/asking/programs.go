package asking

import "github.com/bawn-dev/bawn"

// Forbids reports whether a rule that a person has written, or an answer "never", forbids
// a command in a zone, and which. Nobody is asked. Where the rules can't be read they
// forbid everything.
func (d *Prompter) Forbids(z Zone, a bawn.Action) (bawn.Decision, bool) {
	p, err := d.policy()
	if err != nil {
		return bawn.Denied(err.Error(), "builtin:no-policy"), true
	}
	q := d.about(&z, a)
	return p.Forbids(&q)
}
