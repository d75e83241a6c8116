package doctor

import "github.com/bawn-dev/bawn"

// A step is one check, and the names of those without which it proves nothing.
type step struct {
	name  string
	needs []string
	try   func() Check
}

// examine tries the steps in order. What stands on a failed one is not tried:
// it would fail for the same reason and name a remedy of its own.
func examine(steps []step) []Check {
	blame := map[string]string{} // a check that did not pass → the one to mend
	var checks []Check
	for _, s := range steps {
		c := Check{Name: s.name, Needed: true, NotTried: true}
		if root := firstOf(s.needs, blame); root != "" {
			c.Detail, blame[s.name] = "not tried: needs "+root, root
		} else if c = s.try(); !c.OK {
			blame[s.name] = s.name
		}
		c.Name = s.name
		checks = append(checks, c)
	}
	return checks
}

// firstOf returns what is to blame for the first of names that has failed.
func firstOf(names []string, blame map[string]string) string {
	for _, n := range names {
		if root := blame[n]; root != "" {
			return root
		}
	}
	return ""
}

// proven takes back what a provider promises where its sandbox as a whole has
// failed or was not tried.
func proven(promised []bawn.Capability, whole Check) []bawn.Capability {
	if whole.OK {
		return promised
	}
	why := whole.Detail
	if !whole.NotTried {
		why = "the sandbox as a whole fails"
	}
	var list []bawn.Capability
	for _, c := range promised {
		list = append(list, bawn.Capability{Attribute: c.Attribute, Why: why})
	}
	return list
}
