package policy

import "github.com/bawn-dev/bawn"

// A part is one thing to be judged: a file, a host, a tool, or one simple
// command of a line.
type part struct {
	effect Effect
	reader bool // it is known to change nothing
	sends  bool // can send something out
}

// base is the verdict on a part where no rule speaks, and why. Autonomy comes
// before the table.
func (q *Question) base(p part) (bawn.Verdict, string) {
	if q.Autonomy == bawn.AutonomyNone && q.Mode != bawn.ModeStrict {
		return bawn.Deny, "no autonomy: only what a rule allows"
	}
	c := Lookup(q.Mode, p.effect, q.Contained)
	if q.Autonomy == bawn.AutonomyLimited && c.Verdict == bawn.Ask {
		return bawn.Deny, "limited autonomy: a question is a no; " + q.why(p.effect, c)
	}
	if q.Mode == bawn.ModeAuto && c.Verdict == bawn.Allow {
		return q.byRisk(p)
	}
	return c.Verdict, q.why(p.effect, c)
}

// limits applies what mode and autonomy say of every verdict, also of one that a
// rule gave.
func (q *Question) limits(p part, j *judgement) {
	switch {
	case q.Mode > bawn.ModePermissive || q.Autonomy > bawn.AutonomyFull:
		j.lower(stageMode, bawn.Deny, "builtin:mode", bawn.Builtin, "the mode or autonomy is unknown")
	case q.Mode == bawn.ModePlan:
		if c := Lookup(q.Mode, p.effect, q.Contained); c.Verdict == bawn.Deny || c == kernel && q.Action.Kind != bawn.Command {
			j.lower(stageMode, bawn.Deny, "builtin:mode", bawn.Builtin, "plan mode: look, do not touch")
		}
	case q.Mode == bawn.ModeStrict:
		j.lower(stageMode, bawn.Ask, "builtin:mode", bawn.Builtin, "strict mode: every action asks")
	}
	if q.Autonomy <= bawn.AutonomyLimited && j.verdict == bawn.Ask && q.Mode != bawn.ModeStrict {
		j.lower(stageMode, bawn.Deny, "builtin:autonomy", bawn.Builtin, q.Autonomy.String()+" autonomy: a question is a no")
	}
}
