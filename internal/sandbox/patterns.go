package sandbox

import (
	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/fspath"
)

// IsPattern reports whether a mount of an isolation is a pattern of places that
// are hidden, in the form of fspath.Pattern.
//
// FSPatterns promises two things of it: what it matches when the session starts
// is hidden, and the guest makes no such name. A file that a program of the host
// makes later, in a place where none was, is seen by the guest.
func IsPattern(m bawn.Mount) bool { return m.Access == bawn.Hidden && fspath.IsPattern(m.Path) }

// PatternsSupervised is what patterns are worth where a supervisor rules on names.
func PatternsSupervised() bawn.Capability {
	return bawn.Capability{
		Attribute: FSPatterns, Strength: bawn.Enforced,
		How: "what they match at the start is covered by empty mounts; the supervisor refuses to make such a name",
	}
}

// PatternsCovered is what they are worth without a supervisor.
func PatternsCovered() bawn.Capability {
	return bawn.Capability{
		Attribute: FSPatterns, Strength: bawn.Partly, How: "what they match at the start is covered by empty mounts",
		Why: "a guest can make such a name", Remedy: "use provider \"native\", which refuses such names",
	}
}
