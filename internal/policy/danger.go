package policy

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/bawn-dev/bawn/internal/shell/lexicon"
)

// A danger is a sort of command that always asks (SPEC C4).
type danger struct {
	family, reason string
	pattern        string
	shape          shape
	examples       string // command lines in which it is found, and in which it is not

	file      string // where it stands
	line, nth int    // nth of the line's programs
}

// dangers are the entries of data files. Those about a program are read when
// it is first asked about: most processes ask about few, and some, such as an
// agent's hook, about one.
type dangers struct {
	index string // which files speak of which program; of anyProgram, the names with a wildcard
	text  func(file string) string
	made  sync.Map // of *programDangers, by program

	once sync.Once
	wild []string // the names with a wildcard
}

// anyProgram stands in the index before the names that have a wildcard.
const anyProgram = "*"

// programDangers are those of one program, by the subcommand where an entry
// names one.
type programDangers struct {
	bySub map[string][]*danger
	rest  []*danger // without a subcommand, or with a wildcard in it
	all   []*danger
}

// parseDanger reads FAMILY | PATTERN | REASON | EXAMPLES [| COUNTEREXAMPLES].
func parseDanger(e entry) (danger, error) {
	d := danger{file: e.file, line: e.line}
	if !e.cut(&d.family, &d.pattern, &d.reason) || e.ended {
		return danger{}, e.errorf("want FAMILY | PATTERN | REASON | EXAMPLES [| COUNTEREXAMPLES]")
	}
	d.examples = e.text
	s, err := parseShape(d.pattern)
	if err != nil {
		return danger{}, e.errorf("%v", err)
	}
	d.shape, d.shape.open = s, true
	return d, nil
}

// names reports whether an entry of the dangers names a program. One that does
// not is not read any further.
func (e entry) names(program string) bool {
	_, pattern, _ := strings.Cut(e.text, " | ")
	programs, _, _ := strings.Cut(strings.TrimLeft(pattern, " "), " ")
	if !strings.Contains(programs, program) {
		return false // most of them
	}
	for p := range strings.SplitSeq(programs, ",") {
		if p == program {
			return true
		}
	}
	return false
}

// of is the danger of one of its programs alone: the index has chosen it.
func (d danger) of(program string) *danger {
	d.nth = slices.Index(d.shape.programs, program)
	d.shape.programs = []string{program}
	return &d
}

// before reports whether a danger stands before another in the data.
func (d *danger) before(o *danger) bool {
	return cmp.Or(strings.Compare(d.file, o.file), d.line-o.line, d.nth-o.nth) < 0
}

// about returns the dangers of a program, or of a name with a wildcard; nil
// where it has none.
func (ds *dangers) about(program string) *programDangers {
	if made, ok := ds.made.Load(program); ok {
		return made.(*programDangers)
	}
	found := lexicon.Find(ds.index, program)
	if found == nil {
		return nil
	}
	p := &programDangers{bySub: map[string][]*danger{}}
	for _, file := range found {
		for e := range entries(file, ds.text(file)) {
			if e.names(program) {
				p.add(must(parseDanger(e)).of(program))
			}
		}
	}
	made, _ := ds.made.LoadOrStore(program, p)
	return made.(*programDangers)
}

func (p *programDangers) add(d *danger) {
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
func (ds *dangers) find(a *argv) (*danger, bool) {
	for _, list := range ds.candidates(a) {
		for _, d := range list {
			if d.shape.holds(a) {
				return d, true
			}
		}
	}
	return ds.findWild(a)
}

// findWild looks among the names with a wildcard that can be the program's for
// the first in the data.
func (ds *dangers) findWild(a *argv) (first *danger, found bool) {
	ds.once.Do(func() { ds.wild = lexicon.Find(ds.index, anyProgram) })
	for _, name := range ds.wild {
		if !wild(name, a.program) {
			continue
		}
		for _, d := range ds.about(name).all {
			if (!found || d.before(first)) && d.shape.holds(a) {
				first, found = d, true
			}
		}
	}
	return first, found
}

// candidates are the entries that can be about a command: where its
// subcommand is certain, none about others.
func (ds *dangers) candidates(a *argv) [2][]*danger {
	p := ds.named(a.program)
	switch {
	case p == nil:
		return [2][]*danger{}
	case len(a.subs) > 0 && (a.exact || a.known > 0):
		return [2][]*danger{p.bySub[a.subs[0]], p.rest}
	case a.exact:
		return [2][]*danger{p.rest}
	}
	return [2][]*danger{p.all}
}

// possible reports whether the program has dangers at all. A word that is not
// known could make it one.
func (ds *dangers) possible(program string) bool { return ds.named(program) != nil }

// named returns the dangers of a program that the data name without a wildcard.
func (ds *dangers) named(program string) *programDangers {
	if strings.Contains(program, anyProgram) {
		return nil
	}
	return ds.about(program)
}

// lines are the command lines by which the danger is told: those in which it is
// found, and those in which it is not.
func (d *danger) lines() (found, spared []string) {
	hits, misses, _ := strings.Cut(d.examples, " | ")
	return listOf(hits), listOf(misses)
}

// name is the rule by which a danger is told, in the log and in prompts.
func (d *danger) name() string {
	name := "builtin:" + d.family + ":" + d.shape.programs[0]
	if len(d.shape.subs) > 0 {
		name += " " + d.shape.subs[0][0]
	}
	return name
}
