package policy

import "strings"

// A danger is a sort of command that always asks (SPEC C4).
type danger struct {
	family, reason string
	pattern        string
	shape          shape
	examples       []string // command lines in which it is found
	counter        []string // and in which it is not
}

// dangers are indexed by the program's name; those with a wildcard stand
// under "".
type dangers map[string][]danger

func parseDangers(list []entry) (dangers, error) {
	all := dangers{}
	for _, e := range list {
		if len(e.fields) < 4 {
			return nil, e.errorf("want FAMILY | PATTERN | REASON | EXAMPLES [| COUNTEREXAMPLES]")
		}
		s, err := parseShape(e.fields[1])
		if err != nil {
			return nil, e.errorf("%v", err)
		}
		s.open = true
		d := danger{family: e.fields[0], pattern: e.fields[1], reason: e.fields[2], shape: s, examples: e.list(3), counter: e.list(4)}
		for _, p := range s.programs {
			d.shape.programs = []string{p} // the index has chosen among them
			if strings.Contains(p, "*") {
				p = ""
			}
			all[p] = append(all[p], d)
		}
	}
	return all, nil
}

// find returns the danger that a command is, and whether it is one. A word
// that is not known could make it one, if its program can be dangerous.
func (ds dangers) find(a *argv) (danger, bool) {
	for _, name := range []string{a.program, ""} {
		for _, d := range ds[name] {
			if d.shape.matches(a) {
				return d, true
			}
		}
	}
	return danger{}, false
}

// possible reports whether the program has dangers at all.
func (ds dangers) possible(program string) bool { return len(ds[program]) > 0 }
