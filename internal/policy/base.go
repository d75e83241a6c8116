package policy

import (
	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/shell/grammar"
)

// A part is one thing to be judged: a file, a host, a tool, or one simple
// command of a line.
type part struct {
	class   Class
	wild    string // why only a verified sandbox makes it harmless, or ""
	proven  bool   // all of what it does is known
	changes bool   // changes files of the workspace
	sends   bool   // can send something out
}

// Why a part needs a sandbox.
const (
	runsRepository = "it runs code of the repository"
	writesTrees    = "it writes files that the line does not name"
)

// partOf sorts a command by its effect (SPEC K9).
func partOf(e grammar.Effect) part {
	p := part{proven: true}
	switch e {
	case grammar.Reads, grammar.Wraps, grammar.Remote:
		p.class = ReadOnly
	case grammar.Writes:
		p.class, p.changes = LocalMutation, true
	case grammar.Builds:
		p.class, p.changes, p.wild = LocalMutation, true, runsRepository
	case grammar.Fetches:
		p.class, p.changes, p.wild, p.sends = RemoteAction, true, runsRepository, true
	case grammar.Local:
		p.class = OutsideProject
	case grammar.Publish:
		p.class, p.sends = RemoteAction, true
	default:
		return part{}
	}
	return p
}

// base is the verdict on a part where no rule speaks, and why.
func (q *Question) base(p part) (bawn.Verdict, string) {
	v, why := q.byMode(p)
	if !p.proven {
		v, why = min(v, bawn.Ask), "it is not known to be harmless"
	}
	switch q.Autonomy {
	case bawn.AutonomyFull, bawn.AutonomyModerate:
		return v, why
	case bawn.AutonomyLimited:
		if p.proven && p.class == ReadOnly {
			return v, why
		}
		return bawn.Deny, "limited autonomy: only what reads is allowed"
	}
	if q.Mode == bawn.ModeStrict {
		return min(v, bawn.Ask), "strict mode: every action asks"
	}
	return bawn.Deny, "no autonomy: only what a rule allows"
}

// byMode looks the class up in the matrix. A verified sandbox makes changes of
// the workspace harmless; nothing else makes code of the repository so.
func (q *Question) byMode(p part) (bawn.Verdict, string) {
	v := Matrix(q.Mode, p.class)
	why := q.Mode.String() + " mode: " + p.class.String()
	switch {
	case p.wild != "" && !q.Contained:
		return min(v, bawn.Ask), why + ": " + p.wild + ", and nothing contains it"
	case p.changes && q.Contained && q.Mode >= bawn.ModeNormal && p.class != Destructive && p.class != OutsideProject:
		return bawn.Allow, why + ", contained by a verified sandbox"
	}
	if q.Mode == bawn.ModeAuto && v == bawn.Allow {
		return q.byRisk(p)
	}
	return v, why
}
