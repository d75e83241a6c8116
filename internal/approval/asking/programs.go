package asking

import "github.com/bawn-dev/bawn"

// Held returns what a rule that a person has written, or an answer "never", says of a
// command in a zone, where that denies it or asks. Nobody is asked. Where the rules can't
// be read they deny everything.
func (d *Prompter) Held(z Zone, a bawn.Action) (bawn.Decision, bool) {
	p, err := d.policy()
	if err != nil {
		return bawn.Denied(err.Error(), "builtin:no-policy"), true
	}
	q := d.about(&z, a)
	return p.Held(&q)
}
