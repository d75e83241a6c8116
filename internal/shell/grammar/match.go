package grammar

import (
	"path"
	"slices"
	"strings"
)

// Unproven says why no form accounts for a command.
type Unproven struct{ Reason string }

// Error returns the reason.
func (u *Unproven) Error() string { return u.Reason }

func unproven(parts ...string) error { return &Unproven{strings.Join(parts, "")} }

// systemDirs are where a program may be named by its path.
var systemDirs = map[string]bool{
	"/bin": true, "/sbin": true, "/usr/bin": true, "/usr/sbin": true, "/usr/local/bin": true, "/usr/local/sbin": true,
}

// Parse returns what a command does. words[0] is the program's name. The
// error is an *Unproven.
func Parse(words []Word) (Meaning, error) { return library.meaning(words) }

func (b *book) meaning(words []Word) (Meaning, error) {
	if len(words) == 0 || !words[0].Literal() || words[0].Text == "" {
		return Meaning{}, unproven("the program's name is not known")
	}
	name := words[0].Text
	if strings.ContainsRune(name, '/') {
		if dir, base := path.Split(name); systemDirs[path.Clean(dir)] {
			name = base
		} else {
			return ownProgram(words)
		}
	}
	p, err := b.program(name)
	if err != nil {
		return Meaning{}, unproven("the data are broken: ", err.Error())
	}
	if m, ok := p.informs(name, words[1:]); ok {
		return m, nil
	}
	if special, ok := specials[name]; ok {
		return special(p, name, words[1:])
	}
	return p.meaning(name, words[1:])
}

// meaning goes by the program's forms.
func (p *program) meaning(name string, args []Word) (Meaning, error) {
	if p.forms == nil {
		return Meaning{}, unproven("nothing is known of the program ", name)
	}
	return p.forms.match(name, name, args)
}

// ownProgram is a program of the workspace, named by its path: what it does
// is code of the repository.
func ownProgram(words []Word) (Meaning, error) {
	name := words[0].Text
	m := match{form: &form{effect: Builds, flags: flags{lenient: true}}, program: name, label: name}
	m.form.operands = []operand{{value: value{kind: "ARG"}, many: true}}
	m.claim(Execute, words[0])
	return m.run(words[1:])
}

// informs recognises requests for help or a version, which a program of the
// list answers without running anything of the repository.
func (p *program) informs(name string, args []Word) (Meaning, bool) {
	flags := p.help
	if len(flags) == 0 || len(args) == 0 || len(args) > 4 {
		return Meaning{}, false
	}
	last := args[len(args)-1]
	for _, w := range args[:len(args)-1] {
		if !w.Literal() || !plain(w.Text) {
			return Meaning{}, false
		}
	}
	for _, f := range flags {
		if last.Literal() && last.Text == f && (len(args) <= 2 || !aliases.Has(name)) {
			return Meaning{Form: name + " " + f, Effect: Reads, Informs: true}, true
		}
	}
	return Meaning{}, false
}

// aliases are programs of which further words before --help can be what an
// alias or a subcommand runs (git bisect run make --help).
var aliases = NewWordSet("git hg rustup")

// plain reports whether s is a word like a subcommand's.
func plain(s string) bool {
	for i, c := range s {
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || i > 0 && (c == '-' || c == '_')) {
			return false
		}
	}
	return s != ""
}

// match goes down the subcommands as far as they are known; there one of the
// forms must account for what is left. label is the way so far.
func (n *node) match(program, label string, args []Word) (Meaning, error) {
	if err := n.ready(); err != nil {
		return Meaning{}, unproven("the data are broken: ", err.Error())
	}
	var reason error
	if len(n.children) > 0 {
		before := match{form: &form{flags: n.before}, program: program, label: label}
		rest, err := before.leading(args)
		if err != nil {
			reason = err
		} else if len(rest) > 0 && rest[0].Literal() && n.children[rest[0].Text] != nil {
			return before.descend(n.children[rest[0].Text], rest)
		}
	}
	for _, f := range n.forms {
		m := match{form: f, program: program, label: label}
		meaning, err := m.run(args)
		if err == nil {
			return meaning, nil
		}
		if reason == nil {
			reason = err
		}
	}
	if reason == nil {
		reason = unproven("no known way to use ", label)
	}
	return Meaning{}, reason
}

// descend matches a subcommand behind the flags that stood before it.
func (m *match) descend(n *node, args []Word) (Meaning, error) {
	meaning, err := n.match(m.program, m.label+" "+args[0].Text, args[1:])
	if err != nil {
		return Meaning{}, err
	}
	meaning.Claims = append(m.claims, prefixed(meaning.Claims, m.dirs)...)
	if len(m.dirs) > 0 && len(meaning.Nested) > 0 {
		return Meaning{}, unproven("it runs a command in another directory")
	}
	return meaning, nil
}

func prefixed(claims []Claim, dirs []Word) []Claim {
	if len(dirs) == 0 {
		return claims
	}
	for i := range claims {
		claims[i].Dir = append(append([]Word(nil), dirs...), claims[i].Dir...)
	}
	return claims
}

// A match is one attempt to account for words by a form.
type match struct {
	form     *form
	program  string
	label    string // program and subcommand
	claims   []Claim
	dirs     []Word
	seen     map[string]Word // flags, with their values
	nested   []Nested
	operands []Word
	supplied bool
}

func (m *match) claim(v Verb, w Word) {
	m.claims = append(m.claims, Claim{Verb: v, Value: w, Dir: m.dirs})
}

// run accounts for all of args, or says why it can't.
func (m *match) run(args []Word) (Meaning, error) {
	args, err := m.flags(args)
	if err != nil {
		return Meaning{}, err
	}
	m.operands = append(m.operands, args...)
	for _, names := range m.form.required {
		if !m.has(names...) {
			return Meaning{}, unproven(m.label, " without ", names[0], " is another form")
		}
	}
	finds := m.searched()
	if err := m.place(); err != nil {
		return Meaning{}, err
	}
	if len(m.nested) > 0 && len(m.dirs) > 0 {
		return Meaning{}, unproven("it runs a command in another directory")
	}
	m.into()
	return Meaning{Form: m.label, Informs: m.form.informs(), Effect: m.form.effect, Claims: m.claims, Nested: m.nested, Finds: finds}, nil
}

// informs reports whether the form is a request for help or a version alone.
func (f *form) informs() bool {
	if f.effect != Reads || len(f.required) == 0 || len(f.operands) > 0 {
		return false
	}
	return !slices.ContainsFunc(f.required, func(names []string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return !informing.Has(n) })
	})
}

var informing = NewWordSet("--help --version -V -h -? -v -version -help --usage")

// into claims what copying and moving into a directory writes there: the last
// parts of the sources' names.
func (m *match) into() {
	if !copies.Has(m.program) {
		return
	}
	i := slices.IndexFunc(m.claims, func(c Claim) bool { return c.Verb == WriteTree })
	if i < 0 || !m.claims[i].Value.Literal() {
		return
	}
	target := m.claims[i].Value.Text
	for _, c := range slices.Clone(m.claims) {
		if (c.Verb == Read || c.Verb == ReadTree || c.Verb == Move || c.Verb == Look) && c.Value.Vague == "" {
			m.claim(Write, Word{Text: path.Join(target, path.Base(c.Value.Text)), Glob: c.Value.Glob})
		}
	}
}

// copies are programs whose last operand can be a directory to write into.
var copies = NewWordSet("cp mv install ln gcp gmv ginstall gln rsync")

func (m *match) has(names ...string) bool {
	for _, name := range names {
		if _, ok := m.seen[name]; ok {
			return true
		}
	}
	return false
}

// leading takes the flags before a subcommand and returns what follows.
func (m *match) leading(args []Word) ([]Word, error) {
	m.form.posix = true
	return m.flags(args)
}

// place gives every operand its type.
func (m *match) place() error {
	types := m.form.operands
	if m.supplied && len(types) > 0 {
		types = types[1:]
	}
	for i, o := range types {
		n := m.take(o, types[i+1:])
		if n < o.min {
			return unproven(m.label, " lacks an operand")
		}
		if o.value.kind == "CMD" || o.value.kind == "SCRIPT" {
			return m.nest(o, types[i+1:])
		}
		for _, w := range m.operands[:n] {
			if err := m.value(o.value, w); err != nil {
				return err
			}
		}
		m.operands = m.operands[n:]
	}
	if len(m.operands) > 0 {
		return unproven(m.label, " has no use for ", m.operands[0].Text)
	}
	return nil
}

// take says how many operands are o's: as many as it may have while the later
// ones get what they need.
func (m *match) take(o operand, later []operand) int {
	need := 0
	for _, l := range later {
		need += l.min
	}
	n := max(len(m.operands)-need, 0)
	if !o.many {
		n = min(n, 1)
	}
	if o.value.kind == "ASSIGN" || o.value.kind == "word" && o.min == 0 {
		return min(n, m.fitting(o.value))
	}
	return n
}

// fitting counts the leading operands that look like v.
func (m *match) fitting(v value) int {
	for i, w := range m.operands {
		if v.kind == "ASSIGN" && !assigns(w.Text) || v.kind == "word" && !contains(v.words, w.Text) {
			return i
		}
	}
	return len(m.operands)
}

func contains(words []string, s string) bool {
	for _, w := range words {
		if w == s {
			return true
		}
	}
	return false
}

// nest takes the rest as a command, or one word as shell text and the rest as
// its parameters.
func (m *match) nest(o operand, later []operand) error {
	if o.value.kind == "CMD" {
		if len(m.operands) == 0 {
			return nil // the form says that the command may be absent
		}
		m.nested = append(m.nested, m.inner(m.operands))
		return nil
	}
	if len(m.operands) == 0 {
		return nil
	}
	if len(m.operands) > 1 && len(later) == 0 {
		return unproven(m.label, " has no use for ", m.operands[1].Text)
	}
	m.nested = append(m.nested, Nested{IsScript: true, Script: m.operands[0], Params: m.operands[1:]})
	return nil
}

// inner is the command that a wrapper runs. xargs adds to it what it reads.
func (m *match) inner(args []Word) Nested {
	n := Nested{Args: args}
	if m.program != "xargs" {
		return n
	}
	n.Stdin = true
	for _, name := range []string{"-I", "-i", "--replace"} {
		if w, ok := m.seen[name]; ok {
			n.Replace = w.Text
			if n.Replace == "" {
				n.Replace = "{}"
			}
		}
	}
	return n
}

// Subcommand returns the program and its first words that are not flags: "git",
// "push", "origin". It is exact if all flags before the first of these words are
// known. Otherwise the words may include a flag's value.
func Subcommand(words []Word) (names []string, exact bool) { return library.subcommand(words) }

func (b *book) subcommand(words []Word) (names []string, exact bool) {
	if len(words) == 0 {
		return nil, false
	}
	name := path.Base(words[0].Text)
	names = append(names, name)
	p, err := b.program(name)
	if err != nil || p.forms == nil {
		return names, false
	}
	rest := words[1:]
	for n := p.forms; ; {
		if n.ready() != nil {
			return names, false
		}
		before := match{form: &form{flags: n.before}, program: name, label: name}
		after, err := before.leading(rest)
		if err != nil {
			return names, false
		}
		rest = after
		if len(rest) > 0 && !rest[0].Literal() {
			return names, false // it could be any of them
		}
		if len(rest) == 0 || n.children[rest[0].Text] == nil {
			break
		}
		n = n.children[rest[0].Text]
		names = append(names, rest[0].Text)
		rest = rest[1:]
	}
	for _, w := range rest {
		if !isFlag(w) {
			names = append(names, w.Text)
		}
	}
	return names, true
}
