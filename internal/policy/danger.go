package policy

import (
	"slices"
	"strings"
)

// A danger is a sort of command that always asks (SPEC C4).
type danger struct {
	family, reason string
	pattern        string
	shape          shape
	examples       []string // command lines in which it is found
	counter        []string // and in which it is not
}

// dangers are all entries, with an index: by the program's name and, where an
// entry names a subcommand, by that.
type dangers struct {
	all      []danger // one per program that an entry names
	programs map[string]*programDangers
	wild     []danger // whose programs have a wildcard
}

type programDangers struct {
	bySub map[string][]danger
	rest  []danger // without a subcommand, or with a wildcard in it
	all   []danger
}

func parseDangers(list []entry) (*dangers, error) {
	ds := &dangers{programs: map[string]*programDangers{}}
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
			ds.add(p, d)
		}
	}
	return ds, nil
}

func (ds *dangers) add(program string, d danger) {
	ds.all = append(ds.all, d)
	if strings.Contains(program, "*") {
		ds.wild = append(ds.wild, d)
		return
	}
	p := ds.programs[program]
	if p == nil {
		p = &programDangers{bySub: map[string][]danger{}}
		ds.programs[program] = p
	}
	p.all = append(p.all, d)
	if len(d.shape.subs) == 0 || slices.ContainsFunc(d.shape.subs[0], func(s string) bool { return strings.Contains(s, "*") }) {
		p.rest = append(p.rest, d)
		return
	}
	for _, sub := range d.shape.subs[0] {
		p.bySub[sub] = append(p.bySub[sub], d)
	}
}

// find returns the danger that a command is, and whether it is one.
func (ds *dangers) find(a *argv) (danger, bool) {
	for _, list := range ds.candidates(a) {
		for i := range list {
			if list[i].shape.holds(a) {
				return list[i], true
			}
		}
	}
	for i := range ds.wild {
		if ds.wild[i].shape.matches(a) {
			return ds.wild[i], true
		}
	}
	return danger{}, false
}

// candidates are the entries that can be about a command: where its
// subcommand is certain, none about others.
func (ds *dangers) candidates(a *argv) [2][]danger {
	p := ds.programs[a.program]
	switch {
	case p == nil:
		return [2][]danger{}
	case len(a.subs) > 0 && (a.exact || a.known > 0):
		return [2][]danger{p.bySub[a.subs[0]], p.rest}
	case a.exact:
		return [2][]danger{p.rest}
	}
	return [2][]danger{p.all}
}

// possible reports whether the program has dangers at all. A word that is not
// known could make it one.
func (ds *dangers) possible(program string) bool { return ds.programs[program] != nil }

// name is the rule by which a danger is told, in the log and in prompts.
func (d *danger) name() string {
	name := "builtin:" + d.family + ":" + d.shape.programs[0]
	if len(d.shape.subs) > 0 {
		name += " " + d.shape.subs[0][0]
	}
	return name
}
