package session

import (
	"slices"

	"github.com/bawn-dev/bawn"
)

// meetTrust returns the stricter mode and autonomy. Both grow by themselves, but for
// mode strict, which asks about everything and so lets pass what limited autonomy
// denies. It is below the modes that ask as well where no rule speaks, and neither
// above nor below the others: plan looks without asking, limited autonomy reads
// without asking. Plan is below safe: it runs programs that safe asks about, but the
// kernel refuses their changes.
func meetTrust(a, b bawn.Session) (bawn.Mode, bawn.Autonomy, error) {
	strictA, strictB := a.Mode == bawn.ModeStrict, b.Mode == bawn.ModeStrict
	switch {
	case strictA && strictB:
		return bawn.ModeStrict, meetStrict(a.Autonomy, b.Autonomy), nil
	case strictA && asks(b):
		return bawn.ModeStrict, a.Autonomy, nil
	case strictB && asks(a):
		return bawn.ModeStrict, b.Autonomy, nil
	case strictA || strictB:
		return 0, 0, &MeetError{"mode", trust(a), trust(b), "ask for mode and autonomy as the parent has them"}
	}
	return min(a.Mode, b.Mode), min(a.Autonomy, b.Autonomy), nil
}

// meetStrict knows that in mode strict limited autonomy denies where the others
// ask.
func meetStrict(a, b bawn.Autonomy) bawn.Autonomy {
	if a == bawn.AutonomyLimited || b == bawn.AutonomyLimited {
		return bawn.AutonomyLimited
	}
	return min(a, b)
}

// asks reports whether the session asks wherever it doesn't allow.
func asks(s bawn.Session) bool {
	return s.Mode >= bawn.ModeSafe && s.Autonomy >= bawn.AutonomyModerate
}

func trust(s bawn.Session) string { return s.Mode.String() + "/" + s.Autonomy.String() }

// noProvider enforces nothing, and a session whose provider isn't known counts
// as less than that.
const noProvider = "none"

func (known Providers) meet(a, b string) (string, error) {
	switch {
	case known.below(a, b):
		return a, nil
	case known.below(b, a):
		return b, nil
	}
	return "", &MeetError{"provider", a, b, "ask for the parent's provider, or for none by name"}
}

// below reports whether whatever b enforces is enforced by a, no weaker.
func (known Providers) below(a, b string) bool {
	caps, ok := known[a]
	weaker := func(c bawn.Capability) bool { return strength(caps, c.Attribute) < c.Strength }
	switch other, known := known[b]; {
	case a == b || b == "":
		return true
	case a == "":
		return false
	case b == noProvider:
		return true
	default:
		return ok && known && a != noProvider && !slices.ContainsFunc(other, weaker)
	}
}

func strength(caps []bawn.Capability, attribute string) bawn.Strength {
	i := slices.IndexFunc(caps, func(c bawn.Capability) bool { return c.Attribute == attribute })
	if i < 0 {
		return bawn.Unenforced
	}
	return caps[i].Strength
}
