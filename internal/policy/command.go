package policy

import (
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/fspath"
	"github.com/bawn-dev/bawn/internal/shell"
)

// environment is what a command line is executed with, and nothing else but what
// Question.Names says: a variable that is in none of the lists is empty.
var (
	environment      = map[string]string{"TMPDIR": "/tmp"}
	environmentNames = []string{"PATH", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "HOSTNAME"}
)

// decideCommand judges every simple command of a line by what it would do. The
// strictest judgement is the decision.
func (p *Policy) decideCommand(q *Question) bawn.Decision {
	if q.Action.Operation != bawn.Exec {
		return bawn.Denied("a command can only be executed", "builtin:operation")
	}
	r := reading{p: p, q: q, line: q.read(p.known().secret)}
	var room [2]*judgement
	d := combine(r.judge(room[:0]))
	d.Canonical = r.line.Canonical
	if r.git {
		d.Env = gitPins
	}
	return d
}

// judge judges every part of the line: first what can't be read, then the
// commands in their order. There is at least one.
func (r *reading) judge(parts []*judgement) []*judgement {
	for _, o := range r.line.Opaque {
		parts = append(parts, r.opaque(o))
	}
	for i := range r.line.Commands {
		parts = append(parts, r.command(&r.line.Commands[i]))
	}
	if len(parts) == 0 {
		j := begin("nothing")
		v, why := r.q.base(part{effect: Read, reader: true})
		j.set(stageDefault, v, "builtin:default", bawn.Builtin, why)
		r.q.limits(part{effect: Read}, j)
		parts = append(parts, j)
	}
	return parts
}

// read takes the action's line, or its argv if it has one, apart. Variables
// that hold secrets stay such that are not set, which is asked about.
func (q *Question) read(secret func(string) bool) shell.Line {
	c := shell.Context{Dir: q.Action.Dir, Home: q.Home, Env: environment, Names: environmentNames}
	if len(q.Names) > 0 {
		c.Names = slices.DeleteFunc(slices.Concat(environmentNames, q.Names), secret)
	}
	if len(q.Action.Args) > 0 {
		return shell.ReadArgs(q.Action.Args, c)
	}
	return shell.Read(q.Action.Resource, c)
}

// combine makes one decision of many judgements.
func combine(parts []*judgement) bawn.Decision {
	worst, trace := parts[0], parts[0].steps
	if len(parts) > 1 {
		n := 0
		for _, j := range parts {
			n += len(j.steps)
		}
		trace = make([]bawn.Step, 0, n)
	}
	for _, j := range parts {
		if j.verdict < worst.verdict || j.verdict == worst.verdict && worst.source == bawn.Builtin && j.source != bawn.Builtin {
			worst = j // of two alike, the one that somebody wrote says more
		}
		if len(parts) > 1 {
			trace = append(trace, j.steps...)
		}
	}
	d := bawn.Decision{Verdict: worst.verdict, Reason: worst.reason, Rule: worst.rule, Source: worst.source, Trace: trace, Holds: worst.holds}
	for _, j := range parts {
		d.Single = d.Single || j.single
		if j.verdict == bawn.Ask && j.holds != d.Holds {
			d.Holds = "" // one yes can't be for both
		}
	}
	if d.Verdict != bawn.Ask || d.Single {
		d.Holds, d.Single = "", d.Verdict == bawn.Ask
	}
	return d
}

// A reading is one line on its way to a decision.
type reading struct {
	p    *Policy
	q    *Question
	line shell.Line
	git  bool // a git command is among them that relies on its pins
	// outward is the danger of the last command that is asked about where it connects.
	outward *danger
	// Room for what one command mostly has, which nothing keeps.
	subs [8]string
	at   [2]string
}

// inside reports whether a sandbox holds what a program can do to files and processes.
func (r *reading) inside() bool { return Change.Contains(r.q.Contained) }

// opaque is what can't be read with certainty. Where nothing contains it no rule allows
// it; inside it is a program like any other.
func (r *reading) opaque(o shell.Opaque) *judgement {
	j := begin(o.Text)
	k := part{effect: Change}
	v, why := r.q.base(k)
	j.set(stageDefault, v, "builtin:opaque", bawn.Builtin, why)
	if !r.inside() {
		j.lower(stageOpaque, bawn.Ask, "builtin:opaque", bawn.Builtin, "it can't be read with certainty: "+o.Reason)
		j.fixed = true
	}
	r.q.limits(k, j)
	return j
}

// command judges one simple command.
func (r *reading) command(c *shell.Command) *judgement {
	j := begin(r.text(c))
	var a *argv
	if len(c.Words) > 0 && c.Words[0].Literal() {
		made := newArgv(c.Words, r.subs[:0])
		a = &made
	}
	found, k := r.partOf(c)
	d, mayAllow := r.danger(a, c, k)
	r.effect(d, &k)
	j.effect, j.fixed = k.effect, d != nil
	r.first(d, k, j)
	ruled := a != nil && r.rules(a, j)
	if d != nil && !mayAllow && (k.effect != Change || !r.inside()) {
		j.lower(stageDangerous, bawn.Ask, d.rule, bawn.Builtin, d.why())
	}
	r.uses(c, found, k, j)
	if !r.inside() {
		r.bare(c, a, k, j)
	}
	if !ruled {
		r.learned(c, j)
	}
	r.q.limits(k, j)
	j.reach(Lookup(r.q.Mode, k.effect, r.q.Contained), r.q.destroying, stageDefault, stageDangerous)
	r.git = r.git || k.reader && a != nil && a.program == "git"
	return j
}

// first says what the table says.
func (r *reading) first(d *danger, k part, j *judgement) {
	v, why := r.q.base(k)
	rule, stage := "builtin:default", stageDefault
	if r.outward != nil && d == nil && v == bawn.Allow {
		why += "; it " + r.outward.reason + ", which its connection asks about"
	}
	if d != nil && k.effect != Change && v < bawn.Allow {
		rule, why = d.rule, d.reason+"; "+why
	}
	j.set(stage, v, rule, bawn.Builtin, why)
}

// effect is the row of the table that a danger belongs to.
func (r *reading) effect(d *danger, k *part) {
	switch {
	case d == nil:
	case d.is.effect == Destroy:
		k.effect = r.q.destroys()
	case d.is.effect > k.effect:
		k.effect = d.is.effect
	}
	if d != nil {
		k.reader, k.sends = false, k.sends || k.effect > Destroy
	}
}

// destroys is the row for what can't be had back: with a checkpoint it is a change.
func (q *Question) destroys() Effect {
	if q.Covered {
		return Change
	}
	return Destroy
}

// danger finds what a command is among the dangers that count here, and whether a rule
// may allow it. A reader has none.
func (r *reading) danger(a *argv, c *shell.Command, k part) (*danger, bool) {
	if a == nil || k.reader && !c.Builtin {
		return nil, true
	}
	r.outward = nil
	return r.p.known().dangers.find(a, func(d *danger) bool {
		switch {
		case !d.is.effect.Contains(r.q.Contained) || d.is.when == bawn.WhenAlways:
			return true
		case d.is.when != bawn.WhenUnasked:
			return false
		case r.connectionAsks():
			r.outward = d
			return false
		}
		return true
	})
}

// connectionAsks reports whether what leaves the session is asked about where it
// connects. A rule by which a person lets a host through opens a way without a question.
func (r *reading) connectionAsks() bool { return r.q.ConnectionAsks && !r.p.opensHosts }

// why is the reason, with where it counts.
func (d *danger) why() string {
	if d.is.when == bawn.WhenUncontained {
		return d.reason + " (where nothing contains it)"
	}
	return d.reason
}

// text is a command as it is shown in a trace: often just the line.
func (r *reading) text(c *shell.Command) string {
	rest := r.line.Canonical
	for i := range c.Words {
		after, ok := strings.CutPrefix(rest, c.Words[i].Text)
		if i < len(c.Words)-1 && ok {
			after, ok = strings.CutPrefix(after, " ")
		}
		if rest = after; !ok {
			return text(c)
		}
	}
	if rest != "" || len(c.Words) == 0 || len(c.Via) > 0 {
		return text(c)
	}
	return r.line.Canonical
}

// text is a command with what runs it.
func text(c *shell.Command) string {
	var b strings.Builder
	n := 0
	for i := range c.Words {
		n += len(c.Words[i].Text) + 1
	}
	b.Grow(n)
	for _, v := range c.Via {
		b.WriteString(v + " → ")
	}
	for i, w := range c.Words {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(w.Text)
	}
	if b.Len() == 0 {
		return "assignments and redirections"
	}
	return b.String()
}

// partOf sorts a command: a reader's or not, with what it reads.
func (r *reading) partOf(c *shell.Command) ([]finding, part) {
	for _, rd := range c.Redirects {
		if rd.Writes() && !devices[rd.Target.Text] {
			return nil, part{effect: Change}
		}
	}
	for _, a := range c.Assigns {
		if !r.harmless(a, len(c.Words) > 0) {
			return nil, part{effect: Change}
		}
	}
	reader := part{effect: Read, reader: true}
	if c.Builtin {
		reader.reader = c.Unclear == ""
	} else if len(c.Words) > 0 {
		m, ok := readerOf(c.Words)
		if reader.reader = ok && (c.Runs || !m.runs); reader.reader {
			return m.found, reader
		}
	}
	if !reader.reader {
		return nil, part{effect: Change}
	}
	return nil, reader
}

// harmless reports whether an assignment changes nothing that a program heeds: a
// variable of the shell's own in lower case, or one of a few that choose how text is
// shown.
func (r *reading) harmless(a shell.Assign, before bool) bool {
	if plainVariables.Has(a.Name) {
		return a.Value.Literal() && len(a.Value.Text) < 32 && plainValue(a.Value.Text)
	}
	return !a.Exported && !before && strings.ToLower(a.Name) == a.Name && !strings.HasSuffix(a.Name, "_proxy") && !slices.Contains(r.q.Names, a.Name)
}

// plainVariables are what may be set for a reader.
var plainVariables = shell.NewWordSet("LC_ALL LC_COLLATE LANG TZ NO_COLOR CLICOLOR COLUMNS LINES CI FORCE_COLOR")

func plainValue(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("._,+-", c))
	})
}

// rules applies the rules over commands. It reports whether one spoke.
func (r *reading) rules(a *argv, j *judgement) bool {
	lists := [2][]*rule{r.p.table.commands[a.program], r.p.table.commands[""]}
	w := winner(r.q, lists, bawn.Exec, func(rl *rule) bool { return rl.matchesCommand(a) })
	w.decide(j)
	return w.all != nil || w.project != nil
}

// bare asks about what only counts where nothing contains it: words that could be a
// danger, secrets, variables and loops.
func (r *reading) bare(c *shell.Command, a *argv, k part, j *judgement) {
	unknown := len(c.Words) > 0 && slices.ContainsFunc(c.Words[1:], func(w shell.Word) bool { return w.Glob || w.Vague != "" && len(w.Below) == 0 })
	if unknown && !k.reader && a != nil && r.p.known().dangers.possible(a.program) {
		j.lower(stageDangerous, bawn.Ask, "builtin:unknown-words", bawn.Builtin, "words that are not known can make "+a.program+" dangerous")
		j.fixed = true
	}
	for _, as := range c.Assigns {
		if !r.harmless(as, len(c.Words) > 0) {
			j.lower("variable", bawn.Ask, "builtin:variable", bawn.Builtin, as.Name+" may change what runs")
			j.fixed = true
		}
	}
	if c.Loop && (c.Background || len(c.Words) == 1 && endless[c.Words[0].Text]) {
		j.lower("loop", bawn.Ask, "builtin:loop", bawn.Builtin, "a loop may run without end, or start programs without waiting for them")
		j.fixed = true
	}
	r.secrets(c, j)
}

// endless are conditions of loops that never change.
var endless = map[string]bool{"true": true, ":": true, "false": true}

// uses judges every path that the command names.
func (r *reading) uses(c *shell.Command, found []finding, k part, j *judgement) {
	for _, f := range found {
		r.path(c, f.verb, f.word, j)
	}
	for _, rd := range c.Redirects {
		switch {
		case rd.Writes():
			r.path(c, writes, rd.Target, j)
		case rd.Reads():
			r.path(c, reads, rd.Target, j)
		}
	}
	if k.reader || len(c.Words) == 0 {
		return
	}
	for i, w := range c.Words {
		r.mentions(c, w.Text, j)
		if writesWord(c.Words, i) && w.Vague == "" {
			r.path(c, writes, w, j)
		}
	}
}

// writesWord reports whether a word names what a program is known to write or remove:
// where the name is protected, it is denied in words and not by the kernel alone.
func writesWord(words []shell.Word, i int) bool {
	if i == 0 || strings.HasPrefix(words[i].Text, "-") {
		return false
	}
	switch base(words[0].Text) {
	case "touch", "mkdir", "rm", "rmdir", "unlink", "mv", "tee", "truncate", "chmod", "chown":
		return true
	case "cp", "ln", "install", "rsync":
		return i == len(words)-1
	}
	return false
}

// path puts a use to the rules, in every directory where the command may run.
func (r *reading) path(c *shell.Command, v verb, w shell.Word, j *judgement) {
	if v == reads && w.Vague != "" {
		v = readsBelow
	}
	for _, name := range r.places(c, w) {
		switch {
		case name == "" && (v == looks || r.inside()):
			// a name and no content, or what the kernel decides about
		case name == "":
			j.lower(stageClaim, bawn.Ask, RulePath, bawn.Builtin, "which path it is about to "+v.String()+" is not known")
			j.fixed = true
		default:
			r.p.usePath(r.q, j, use{verb: v, path: name, pattern: w.Glob || w.Vague != "" && strings.ContainsAny(name, wildcards)})
		}
	}
}

// places are the absolute paths that a word can mean; "" for one that is not known.
// The next call overwrites them.
func (r *reading) places(c *shell.Command, w shell.Word) (out []string) {
	if w.Vague == "" && len(c.Dirs) == 1 && r.p.resolve == nil {
		return append(r.at[:0], r.absolute(w.Text, c.Dirs[0]))
	}
	values := []string{w.Text}
	if w.Vague != "" {
		if len(w.Below) == 0 {
			return []string{""}
		}
		values = w.Below // somewhere below, so everything below
	}
	dirs := c.Dirs
	if len(dirs) == 0 {
		dirs = []string{""}
	}
	for _, v := range values {
		for _, dir := range dirs {
			name := r.absolute(v, dir)
			out = append(out, name)
			if name != "" && r.p.resolve != nil && strings.Contains(v, "..") {
				out = append(out, r.p.resolve(unclean(v, dir))) // what ".." is above of depends on links
			}
		}
	}
	return out
}

// unclean makes a path absolute and leaves its ".." where they are.
func unclean(v, dir string) string {
	if strings.HasPrefix(v, "/") {
		return v
	}
	return dir + "/" + v
}

// absolute makes a path clean and absolute; "" when it can't be.
func (r *reading) absolute(v, dir string) string {
	name, err := fspath.Clean(v, dir, r.q.Home)
	if err != nil {
		return ""
	}
	return throughProc(name)
}

// throughProc undoes the links of /proc that lead back to the root.
func throughProc(name string) string {
	for _, self := range []string{"/proc/self/root", "/proc/thread-self/root", "/proc/1/root"} {
		if rest, ok := strings.CutPrefix(name, self+"/"); ok {
			return throughProc("/" + rest)
		}
	}
	return name
}

// mentions looks for names of people's rules and for protected ones in the words of a
// command of which nothing else is known. Inside, a whole word counts, or what stands
// behind "=": the kernel refuses the rest.
func (r *reading) mentions(c *shell.Command, word string, j *judgement) {
	apart := "=@:, '\"`()<>;"
	if r.inside() {
		apart = "="
	}
	around(word, apart, func(v string) {
		if !strings.ContainsAny(v, "/~.") || strings.HasPrefix(v, "-") || strings.Contains(v, "//") {
			return
		}
		for _, at := range r.places(c, shell.Word{Text: v}) {
			if at == "" {
				continue
			}
			r.p.eachName(use{path: at}, func(name string) { r.mention(name, j) })
		}
	})
}

// around calls f with the fields of a word between separators, and with the word itself.
func around(word, apart string, f func(string)) {
	for rest := word; rest != ""; {
		i := strings.IndexAny(rest, apart)
		if i < 0 {
			if len(rest) < len(word) {
				f(rest)
			}
			break
		}
		if i > 0 {
			f(rest[:i])
		}
		rest = rest[i+1:]
	}
	f(word)
}

func (r *reading) mention(name string, j *judgement) {
	if pr, ok := r.p.known().protectedBy(r.q, bawn.Read, name, false); ok {
		j.lower(stageProtected, bawn.Deny, "builtin:protected:"+pr.pattern, bawn.Builtin, pr.reason)
		j.fixed = true
	}
	r.p.table.paths.each(name, func(rl *rule) bool {
		if rl.Verdict < bawn.Allow && rl.counts(r.q) && rl.reads() && rl.matchesPath(r.q, name) && !r.allowed(name, rl) {
			j.lower(stageClaim, rl.Verdict, rl.ID, rl.Source, "it names "+name+": "+rl.why())
			j.fixed = true
		}
		return true
	})
}

// reads reports whether a rule about files is about whatever names them: one that
// speaks of nothing but writing says nothing of a word.
func (r *rule) reads() bool { return r.Source != bawn.Builtin || r.speaksOf(bawn.Read) }

// allowed reports whether a stronger rule allows to read the name.
func (r *reading) allowed(name string, than *rule) bool {
	w := r.p.rulesFor(r.q, bawn.Read, use{verb: reads, path: name})
	return w.all != nil && w.all != than && w.all.Verdict == bawn.Allow && w.all.Priority > than.Priority && than.Source != bawn.Managed && than.Source != bawn.Project
}

// secrets asks before a variable that holds a secret by its name is used.
func (r *reading) secrets(c *shell.Command, j *judgement) {
	check := func(w shell.Word) {
		for _, name := range w.Unset {
			if r.p.known().secret(name) {
				j.lower(stageSecret, bawn.Ask, "builtin:secret-variable", bawn.Builtin, "the variable "+name+" may hold a secret")
				j.fixed = true
			}
		}
	}
	for _, w := range c.Words {
		check(w)
	}
	for _, a := range c.Assigns {
		check(a.Value)
	}
	for _, rd := range c.Redirects {
		check(rd.Target)
		check(rd.Text)
	}
}

// learned lets what the human has taught answer where only the default spoke.
func (r *reading) learned(c *shell.Command, j *judgement) {
	if r.p.memory == nil || j.verdict != bawn.Ask || j.fixed || r.q.Taint.Any() || r.q.Autonomy < bawn.AutonomyModerate {
		return
	}
	s, ok := shapeOf(c)
	if !ok {
		return
	}
	v, sure, ok := r.p.memory.Recall(s)
	if ok && sure >= Sure && v <= bawn.Allow {
		j.set(stageLearned, v, "learned:"+s, bawn.Learned, "answered alike before: "+s)
	}
}
