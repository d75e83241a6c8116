package asking

import "github.com/bawn-dev/bawn"

// Held returns the verdict of a person's rule, or an answer "never", about a command in a
// zone, if that denies or asks. Nobody is asked. Where the rules can't be read they deny
// everything.
func (d *Prompter) Held(z Zone, a bawn.Action) (bawn.Decision, bool) {
	p, err := d.policy()
	if err != nil {
		return bawn.Denied(err.Error(), "builtin:no-policy"), true
	}
	q := d.about(&z, a)
	return p.Held(&q)
}
