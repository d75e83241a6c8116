package session

import (
	"maps"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
)

// setOf returns the variables that are set; the last value of a name counts. A
// variable with an empty value tells as little as a missing one, so it counts
// as missing and hides the host's.
func setOf(iso bawn.Isolation) map[string]string {
	set := map[string]string{}
	for _, kv := range iso.SetEnv {
		name, value, _ := strings.Cut(kv, "=")
		set[name] = value
	}
	return set
}

// covers reports whether one entry passes all names that another does.
func covers(entry, other string) bool {
	prefix, wild := strings.CutSuffix(entry, "*")
	return entry == other || wild && strings.HasPrefix(other, prefix)
}

// meetEnv returns what both pass, and what both set to one value. A variable
// that one passes and the other sets differs in value, so the child gets
// neither.
func meetEnv(a, b bawn.Isolation) (pass, set []string) {
	setA, setB := setOf(a), setOf(b)
	names := sortedSet(slices.Concat(slices.Collect(maps.Keys(setA)), slices.Collect(maps.Keys(setB))))
	pass = slices.DeleteFunc(narrower(a.Env, b.Env), func(p string) bool { return slices.Contains(names, p) })
	for _, n := range names {
		va, inA := setA[n]
		vb, inB := setB[n]
		switch {
		case inA && inB && va == vb && va != "":
			set = append(set, n+"="+va)
		case slices.ContainsFunc(pass, func(p string) bool { return covers(p, n) }):
			set = append(set, n+"=") // a pattern can't leave a name out
		}
	}
	return pass, set
}

// narrower returns the entries of each list that one of the other covers.
func narrower(a, b []string) []string {
	var out []string
	for _, x := range a {
		for _, y := range b {
			switch {
			case covers(x, y):
				out = append(out, y)
			case covers(y, x):
				out = append(out, x)
			}
		}
	}
	return sortedSet(out)
}
