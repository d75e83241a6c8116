package policy

import (
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/fspath"
	"github.com/bawn-dev/bawn/internal/shell"
	"github.com/bawn-dev/bawn/internal/shell/grammar"
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
	d := combine(r.judge())
	d.Canonical = r.line.Canonical
	if r.git {
		d.Env = gitPins
	}
	return d
}

// judge judges every part of the line: first what can't be read, then the
// commands in their order. There is at least one.
func (r *reading) judge() (parts []*judgement) {
	for _, o := range r.line.Opaque {
		parts = append(parts, r.opaque(o))
	}
	for i := range r.line.Commands {
		parts = append(parts, r.command(&r.line.Commands[i]))
	}
	if len(parts) == 0 {
		j := begin("nothing")
		v, why := r.q.base(part{class: ReadOnly, proven: true})
		j.set(stageDefault, v, "builtin:default", bawn.Builtin, why)
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
	worst := parts[0]
	var trace []bawn.Step
	for _, j := range parts {
		if j.verdict < worst.verdict || j.verdict == worst.verdict && worst.source == bawn.Builtin && j.source != bawn.Builtin {
			worst = j // of two alike, the one that somebody wrote says more
		}
		trace = append(trace, j.steps...)
	}
	return bawn.Decision{Verdict: worst.verdict, Reason: worst.reason, Rule: worst.rule, Source: worst.source, Trace: trace}
}

// A reading is one line on its way to a decision, with what its earlier
// commands have done.
type reading struct {
	p       *Policy
	q       *Question
	line    shell.Line
	planted []string // paths written by the line that something could execute
	data    []string // names of all files that it has written
	linked  bool     // the line makes links or moves directories
	leads   bool     // a link that it makes leads out of the workspace
	git     bool     // a git command is among them, which relies on its pins
}

// opaque is never allowed without a human, whatever rules say.
func (r *reading) opaque(o shell.Opaque) *judgement {
	j := begin(o.Text)
	v, why := r.q.base(part{class: Destructive})
	j.set(stageDefault, v, "builtin:opaque", bawn.Builtin, why)
	j.lower(stageOpaque, bawn.Ask, "builtin:opaque", bawn.Builtin, "it can't be read with certainty: "+o.Reason)
	j.fixed = true
	r.limits(part{class: Destructive}, j)
	return j
}

// command judges one simple command.
func (r *reading) command(c *shell.Command) *judgement {
	j := begin(text(c))
	kind := r.kindOf(c)
	v, why := r.q.base(kind)
	if c.Unproven != "" && !kind.proven {
		why += ": " + c.Unproven
	}
	j.set(stageDefault, v, "builtin:default", bawn.Builtin, why)
	ruled := false
	if len(c.Words) > 0 && c.Words[0].Literal() {
		a := newArgv(c.Words)
		ruled = r.rules(&a, j)
		r.danger(&a, c, j)
	}
	r.uses(c, j)
	r.secrets(c, j)
	r.settings(c, j)
	r.sameLine(c, kind, j)
	r.input(c, j)
	if !ruled {
		r.learned(c, kind, j)
	}
	r.limits(kind, j)
	r.git = r.git || c.Unproven == "" && strings.HasPrefix(c.Meaning.Form, "git ")
	return j
}

// text is a command as it is shown in a trace.
func text(c *shell.Command) string {
	var b strings.Builder
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

// kindOf sorts a command by its effect and by what it claims.
func (r *reading) kindOf(c *shell.Command) part {
	k := part{class: ReadOnly, proven: true} // bare assignments and redirections
	if len(c.Words) > 0 {
		k = partOf(c.Meaning.Effect)
		if c.Unproven != "" || !k.proven {
			return part{class: Destructive, changes: true, sends: true}
		}
	}
	for _, cl := range c.Meaning.Claims {
		switch {
		case cl.Verb == grammar.Delete && !strings.HasPrefix(c.Meaning.Form, "git "), changes(cl.Verb) && cl.Value.Vague != "":
			k.class = Destructive // also what is written to all files that something finds
		case cl.Verb == grammar.WriteTree:
			k.wild = writesTrees
		}
		if k.class == ReadOnly && changes(cl.Verb) && !devices[cl.Value.Text] {
			k.class, k.changes = LocalMutation, true
		}
	}
	for _, rd := range c.Redirects {
		switch {
		case !rd.Writes() || devices[rd.Target.Text]:
		case rd.Target.Vague != "":
			k.class = Destructive
		case k.class == ReadOnly:
			k.class, k.changes = LocalMutation, true
		}
	}
	return k
}

func changes(v grammar.Verb) bool {
	return v == grammar.Write || v == grammar.WriteTree || v == grammar.Move
}

// rules applies the rules over commands. It reports whether one spoke.
func (r *reading) rules(a *argv, j *judgement) bool {
	lists := [2][]*rule{r.p.table.commands[a.program], r.p.table.commands[""]}
	w := winner(lists, bawn.Exec, func(rl *rule) bool { return rl.matchesCommand(a) })
	w.decide(j)
	return w.all != nil || w.project != nil
}

// danger asks for what is dangerous, and for what could be: a word that is
// not known, or stands for names of files, of a program that has dangers.
func (r *reading) danger(a *argv, c *shell.Command, j *judgement) {
	if c.Unproven == "" && c.Meaning.Informs {
		return // a program that only prints its help is not dangerous
	}
	if d, ok := r.p.known().dangers.find(a); ok {
		j.lower(stageDangerous, bawn.Ask, d.name(), bawn.Builtin, d.reason)
		j.fixed = true
		return
	}
	unknown := slices.ContainsFunc(c.Words[1:], func(w grammar.Word) bool { return w.Glob || w.Vague != "" && len(w.Below) == 0 })
	if unknown && c.Unproven != "" && r.p.known().dangers.possible(a.program) {
		j.lower(stageDangerous, bawn.Ask, "builtin:unknown-words", bawn.Builtin, "words that are not known can make "+a.program+" dangerous")
		j.fixed = true
	}
}

// uses judges every path and host that the command names.
func (r *reading) uses(c *shell.Command, j *judgement) {
	for _, cl := range c.Meaning.Claims {
		r.claim(c, cl, j)
	}
	r.movesAway(c, j)
	for _, rd := range c.Redirects {
		r.redirect(c, rd, j)
	}
	if c.Unproven == "" || len(c.Words) == 0 {
		return
	}
	for _, w := range c.Words {
		r.mentions(c, w.Text, j)
	}
}

func (r *reading) claim(c *shell.Command, cl grammar.Claim, j *judgement) {
	switch cl.Verb {
	case grammar.Connect:
		r.p.useHost(r.q, j, cl.Value.Text)
	case grammar.Setenv:
		name, value, _ := strings.Cut(cl.Value.Text, "=")
		r.setting(name, value, cl.Value.Literal(), j)
	case grammar.Enter:
		if changesDirectory[c.Words[0].Text] {
			cl.Verb = grammar.Look // what is used there is judged by itself
		}
		r.path(c, cl, j)
	default:
		r.path(c, cl, j)
	}
}

var changesDirectory = map[string]bool{"cd": true, "pushd": true, "popd": true}

func (r *reading) redirect(c *shell.Command, rd shell.Redirect, j *judgement) {
	verb := grammar.Verb(0)
	switch {
	case rd.Writes():
		verb = grammar.Write
	case rd.Reads():
		verb = grammar.Read
	default:
		return
	}
	r.path(c, grammar.Claim{Verb: verb, Value: rd.Target}, j)
}

// path puts a claim to the rules, in every directory where the command may
// run.
func (r *reading) path(c *shell.Command, cl grammar.Claim, j *judgement) {
	if cl.Verb == grammar.Read && cl.Value.Vague != "" {
		cl.Verb = grammar.ReadTree
	}
	for _, name := range r.places(c, cl) {
		if name == "" && cl.Verb == grammar.Look {
			continue // a name and no content, whichever it is
		}
		if name == "" {
			j.lower(stageClaim, bawn.Ask, RulePath, bawn.Builtin, "which path it is about to "+cl.Verb.String()+" is not known")
			j.fixed = true
			continue
		}
		r.p.usePath(r.q, j, use{verb: cl.Verb, path: name, pattern: cl.Value.Glob || cl.Value.Vague != "" && strings.ContainsAny(name, wildcards)})
	}
}

// places are the absolute paths that a claim can mean; "" for one that is not
// known.
func (r *reading) places(c *shell.Command, cl grammar.Claim) (out []string) {
	values := []string{cl.Value.Text}
	if cl.Value.Vague != "" {
		if len(cl.Value.Below) == 0 {
			return []string{""}
		}
		values = cl.Value.Below // somewhere below, so everything below
	}
	dirs := c.Dirs
	if len(dirs) == 0 {
		dirs = []string{""}
	}
	for _, v := range values {
		for _, dir := range dirs {
			for _, d := range cl.Dir {
				dir = r.absolute(d.Text, dir)
			}
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

// mentions looks for protected paths in the words of a command of which
// nothing else is known.
func (r *reading) mentions(c *shell.Command, word string, j *judgement) {
	for _, v := range append(strings.FieldsFunc(word, func(c rune) bool { return strings.ContainsRune("=@:, '\"`()<>;", c) }), word) {
		if !strings.ContainsAny(v, "/~.") || strings.HasPrefix(v, "-") || strings.Contains(v, "//") {
			continue
		}
		for _, name := range r.places(c, grammar.Claim{Value: grammar.Word{Text: v}}) {
			if pr, ok := r.p.known().protectedBy(r.q, bawn.Read, name, false); ok && name != "" {
				j.lower(stageProtected, bawn.Deny, "builtin:protected:"+pr.pattern, bawn.Builtin, pr.reason)
				j.fixed = true
			}
		}
	}
}

// secrets asks before a variable that holds a secret by its name is used.
func (r *reading) secrets(c *shell.Command, j *judgement) {
	check := func(w grammar.Word) {
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

// settings judges the variables that are set.
func (r *reading) settings(c *shell.Command, j *judgement) {
	for _, a := range c.Assigns {
		if a.Exported || len(c.Words) > 0 {
			if len(c.Words) > 0 && silent[c.Words[0].Text] {
				continue
			}
			r.setting(a.Name, a.Value.Text, a.Value.Literal(), j)
			continue
		}
		for _, e := range r.p.known().environ() {
			if !e.allow && wild(e.name, a.Name) {
				r.setting(a.Name, a.Value.Text, a.Value.Literal(), j)
				break
			}
		}
	}
}

// silent are programs that heed no variable that a line can set.
var silent = map[string]bool{"echo": true, "true": true, "false": true, ":": true, "printf": true}

func (r *reading) setting(name, value string, known bool, j *judgement) {
	v, why := r.p.known().setting(name, value, known)
	j.fixed = j.fixed || v < bawn.Allow
	j.lower("variable", v, "builtin:variable", bawn.Builtin, why)
}

// learned lets what the human has taught answer where only the default spoke.
func (r *reading) learned(c *shell.Command, k part, j *judgement) {
	if r.p.memory == nil || j.verdict != bawn.Ask || j.fixed || r.q.Taint.Any() || r.q.Autonomy < bawn.AutonomyModerate {
		return
	}
	s, ok := shapeOf(c, k)
	if !ok {
		return
	}
	v, sure, ok := r.p.memory.Recall(s)
	if ok && sure >= Sure && v <= bawn.Allow {
		j.set(stageLearned, v, "learned:"+s, bawn.Learned, "answered alike before: "+s)
	}
}

// limits applies what mode and autonomy say of every verdict, also of one
// that a rule gave.
func (r *reading) limits(k part, j *judgement) { r.q.limits(k, j) }

func (q *Question) limits(k part, j *judgement) {
	switch {
	case q.Mode > bawn.ModePermissive || q.Autonomy > bawn.AutonomyFull:
		j.lower(stageMode, bawn.Deny, "builtin:mode", bawn.Builtin, "the mode or autonomy is none that exists")
	case q.Mode == bawn.ModePlan && k.class != ReadOnly:
		j.lower(stageMode, bawn.Deny, "builtin:mode", bawn.Builtin, "plan mode: look, do not touch")
	case q.Mode == bawn.ModeStrict:
		j.lower(stageMode, bawn.Ask, "builtin:mode", bawn.Builtin, "strict mode: every action asks")
	}
	if q.Autonomy <= bawn.AutonomyLimited && j.verdict == bawn.Ask && q.Mode != bawn.ModeStrict {
		j.lower(stageMode, bawn.Deny, "builtin:autonomy", bawn.Builtin, q.Autonomy.String()+" autonomy: a question is a no")
	}
}
