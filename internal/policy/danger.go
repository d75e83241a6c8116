package policy

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/bawn-dev/bawn"
)

// A danger is a sort of command that asks (SPEC C4).
type danger struct {
	family   string
	is       *family
	reason   string
	pattern  string
	shape    shape
	examples string // command lines in which it is found, and in which it is not
	rule     string // by which it is told, in the log and in prompts

	file      string // where it stands
	line, nth int    // nth of the line's programs
}

// A family is what dangers of one sort do, and when they ask.
type family struct {
	effect Effect
	when   bawn.When
	ruled  bool // a rule may allow it
}

// families are those of data/families.txt.
var families = sync.OnceValue(func() map[string]*family { return must(parseFamilies("families.txt", familiesText)) })

func parseFamilies(file, data string) (map[string]*family, error) {
	out := map[string]*family{}
	for e := range entries(file, data) {
		var name, effect, when, ruled string
		f := &family{}
		if !e.cut(&name, &effect, &when, &ruled) || !e.ended || ruled != "yes" && ruled != "no" {
			return nil, e.errorf("want FAMILY | EFFECT | WHEN | yes or no")
		}
		if f.effect = effectNames[effect]; f.effect == 0 {
			return nil, e.errorf("unknown effect %q; want change, destroy, download, upload, publish or force", effect)
		}
		if err := f.when.UnmarshalText([]byte(when)); err != nil {
			return nil, e.errorf("%v", err)
		}
		f.ruled = ruled == "yes"
		out[name] = f
	}
	return out, nil
}

// effectNames are the effects that a family can have.
var effectNames = map[string]Effect{"change": Change, "destroy": Destroy, "download": Download, "upload": Upload, "publish": Publish, "force": Force}

// dangers are the entries of data files. Those about a program are read when
// it is first asked about: most processes ask about few.
type dangers struct {
	files []dangerFile

	mu   sync.RWMutex
	made map[string]*programDangers // by program; nil for one without any

	once sync.Once
	wild []wildName
}

// A dangerFile is a data file of dangers.
type dangerFile struct {
	name string
	text *string
}

// anyProgram is what a name with a wildcard holds.
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
	if d.is = families()[d.family]; d.is == nil {
		return danger{}, e.errorf("unknown family %q; data/families.txt has them", d.family)
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
	programs := e.programs()
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

// programs are the names that an entry is about.
func (e entry) programs() string {
	_, pattern, _ := strings.Cut(e.text, " | ")
	programs, _, _ := strings.Cut(strings.TrimLeft(pattern, " "), " ")
	return programs
}

// of is the danger of one of its programs alone.
func (d danger) of(program string) *danger {
	d.nth = slices.Index(d.shape.programs, program)
	d.shape.programs = []string{program}
	d.rule = "builtin:" + d.family + ":" + program
	if len(d.shape.subs) > 0 {
		d.rule += " " + d.shape.subs[0][0]
	}
	return &d
}

// before reports whether a danger stands before another in the data.
func (d *danger) before(o *danger) bool {
	return cmp.Or(strings.Compare(d.file, o.file), d.line-o.line, d.nth-o.nth) < 0
}

// about returns the dangers of a program, or of a name with a wildcard; nil
// where it has none.
func (ds *dangers) about(program string) *programDangers {
	ds.mu.RLock()
	made, ok := ds.made[program]
	ds.mu.RUnlock()
	if ok {
		return made
	}
	return ds.read(strings.Clone(program))
}

// maxPrograms is how many programs are remembered: a guest may name any number.
const maxPrograms = 4096

// read finds the dangers of a program, and remembers them.
func (ds *dangers) read(program string) *programDangers {
	var p *programDangers
	for _, file := range ds.files {
		for e := range entries(file.name, *file.text) {
			if e.names(program) {
				if p == nil {
					p = &programDangers{bySub: map[string][]*danger{}}
				}
				p.add(must(parseDanger(e)).of(program))
			}
		}
	}
	ds.mu.Lock()
	defer ds.mu.Unlock()
	if ds.made == nil || len(ds.made) >= maxPrograms {
		ds.made = map[string]*programDangers{}
	}
	ds.made[program] = p
	return p
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

// find returns the danger that a command is among those that count, nil for none: the
// gravest, and of several alike the first of the data. It reports whether a rule may
// allow the command.
func (ds *dangers) find(a *argv, counts func(*danger) bool) (worst *danger, ruled bool) {
	ruled = true
	look := func(list []*danger) {
		for _, d := range list {
			if !counts(d) || !d.shape.holds(a) {
				continue
			}
			ruled = ruled && d.is.ruled
			if worst == nil || d.is.effect > worst.is.effect || d.is.effect == worst.is.effect && d.before(worst) {
				worst = d
			}
		}
	}
	for _, list := range ds.candidates(a) {
		look(list)
	}
	ds.once.Do(func() { ds.wild = ds.wildcards() })
	for _, w := range ds.wild {
		if wild(w.name, a.program) {
			look(w.all())
		}
	}
	return worst, ruled
}

// A wildName is a name with a wildcard, and the dangers of its programs, which are read
// when a program of that name is first asked about.
type wildName struct {
	name string
	all  func() []*danger
}

// wildcards are the names with one, each once.
func (ds *dangers) wildcards() (names []wildName) {
	for _, file := range ds.files {
		for e := range entries(file.name, *file.text) {
			for p := range strings.SplitSeq(e.programs(), ",") {
				if strings.Contains(p, anyProgram) && !slices.ContainsFunc(names, func(w wildName) bool { return w.name == p }) {
					names = append(names, wildName{p, sync.OnceValue(func() []*danger { return ds.about(p).all })})
				}
			}
		}
	}
	return names
}

// candidates are the entries that can be about a command: where its
// subcommand is certain, none about others.
func (ds *dangers) candidates(a *argv) [2][]*danger {
	p := ds.named(a.program)
	switch {
	case p == nil:
		return [2][]*danger{}
	case a.known > 0:
		return [2][]*danger{p.bySub[a.subs[0]], p.rest}
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
