package shell

import (
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// A mode says what a command's name may stand for.
type mode uint8

const (
	program mode = iota // a program only
	inShell             // a builtin of the shell, or a program
)

// reserved words are no names of commands where the parser and the shell
// agree. Those that bash reads as keywords are refused in every shell.
var reserved = NewWordSet("if then else elif fi do done case esac while until for select function coproc { } ! [[ ]] let nameref @test")

// badName says why a text can't be the name of a command.
func badName(name string) string {
	switch {
	case name == "" || strings.ContainsAny(name, "= \t\n") || strings.ContainsAny(name[:1], "-%"):
		return "the name of the command is a strange one"
	case strings.ContainsFunc(name, func(c rune) bool { return c >= utf8.RuneSelf || c < 0x20 }):
		return "the name of the command has letters that look like others"
	case reserved.Has(name):
		return "a keyword where a command is wanted"
	}
	return ""
}

// call follows a simple command.
func (r *reader) call(c *syntax.CallExpr, s *syntax.Stmt, st state) (yes, no state) {
	if r.held == len(r.states) {
		deep := st
		return r.callIn(c, s, &deep)
	}
	at := &r.states[r.held]
	r.held++
	*at = st
	yes, no = r.callIn(c, s, at)
	r.held--
	return yes, no
}

// callIn is call in a state that is the command's own.
func (r *reader) callIn(c *syntax.CallExpr, s *syntax.Stmt, st *state) (yes, no state) {
	cmd := Command{}
	name, why := "", ""
	if len(c.Args) > 0 {
		var pure bool
		name, pure = pureName(c.Args[0])
		why = badName(name)
		if !pure {
			why = "the name of the command is not a plain word"
			r.fields(nil, c.Args[0], st)
		}
		cmd.Words = append(make([]Word, 0, len(c.Args)), Word{Text: name})
		for _, w := range c.Args[1:] {
			cmd.Words = r.fields(cmd.Words, w, st)
		}
	}
	cmd.Redirects = r.redirects(s.Redirs, st)
	cmd.Stdin = input(cmd.Redirects, st.stdin)
	body, isFunc := st.lookup(name, true)
	sets := c.Args == nil || isFunc || r.context.Shell == POSIX && special.Has(name)
	r.assigns(c.Assigns, &cmd, st, sets, name == "read")
	switch {
	case len(c.Args) == 0:
		r.last = r.add(cmd, st)
		return *st, *st
	case why != "":
		r.opaque(why, c)
		st.dirs = nil
		return *st, *st
	case isFunc:
		yes, _ = r.callFunction(name, body.body, cmd.Words[1:], c, r.around(cmd, *st))
		for _, a := range cmd.Assigns {
			yes.vague(a.Name, "set for a function")
		}
		yes.stdin = st.stdin
		return yes, yes
	}
	r.node = c // substitutions in it have been followed
	return r.run(cmd, st, inShell)
}

// special are the builtins of dash that keep the assignments before them.
// POSIX.1-2024, XCU 2.15.
var special = NewWordSet(": . break continue eval exec exit export readonly return set shift times trap unset")

// assigns evaluates the assignments before a command, and makes them where
// they stay.
func (r *reader) assigns(list []*syntax.Assign, cmd *Command, st *state, stay, reads bool) {
	for _, a := range list {
		out, v := r.assignment(a, st)
		switch {
		case stay:
			r.assign(st, a.Name.Value, v, a)
			out.Exported = len(cmd.Words) > 0 || r.variable(st, a.Name.Value).exported
		case reads && a.Name.Value == "IFS" && v.word.Literal():
			// It splits what read gets, and nothing else.
		case steers(out.Name, out.Value):
			r.opaque("setting "+out.Name+" changes how a shell reads", a)
			out.Exported = true
		default:
			out.Exported = true
		}
		cmd.Assigns = append(cmd.Assigns, out)
	}
}

// around records the assignments and redirections of a function's call and is
// the state in which its body runs.
func (r *reader) around(cmd Command, st state) state {
	if len(cmd.Redirects) > 0 || len(cmd.Assigns) > 0 {
		bare := cmd
		bare.Words = nil
		r.add(bare, &st)
		st.stdin = shared(cmd.Stdin)
	}
	return st
}

// run follows a command whose words are known as far as they can be.
func (r *reader) run(cmd Command, st *state, m mode) (yes, no state) {
	name := cmd.Words[0].Text
	if b := builtinOf(name); m == inShell && b != nil && (r.context.Shell == Bash || !bashOnly.Has(name)) {
		return r.builtin(b, cmd, st)
	}
	if subscripts(cmd.Words) {
		r.record(Opaque{Reason: "a test can run what the values in it say", Text: escape(name)})
	}
	inner := wrapped(cmd.Words)
	cmd.Runs = len(inner) > 0
	i := r.add(cmd, st)
	if i < 0 {
		return *st, *st
	}
	r.printed(i, cmd)
	r.interpreter(cmd, st)
	for _, n := range inner {
		r.nested(n, cmd, *st)
	}
	r.last = i
	return *st, *st
}

// subscripts reports whether a test(1) may look at a variable by its name,
// which evaluates the subscript in it.
func subscripts(words []Word) bool {
	if name := words[0].Text; name != "test" && name != "[" {
		return false
	}
	for _, w := range words[1:] {
		if w.Text == "-v" || w.Text == "-R" || w.Vague != "" && w.Split {
			return true
		}
	}
	return false
}

// printed notes what echo and printf are certain to print.
func (r *reader) printed(i int, cmd Command) {
	if text, ok := output(cmd.Words); ok && len(cmd.Redirects) == 0 {
		if r.outputs == nil {
			r.outputs = map[int]string{}
		}
		r.outputs[i] = text
	}
}

// output is what a command prints, if that is certain from its words: those of
// echo without a backslash, or printf with %s and line feeds only.
func output(words []Word) (string, bool) {
	name := words[0].Text
	if name != "echo" && name != "printf" || len(words) == 1 {
		return "", false
	}
	text := make([]string, 0, len(words))
	for _, w := range words[1:] {
		if !w.Literal() || strings.Contains(w.Text, `\`) && (name == "echo" || len(text) > 0) {
			return "", false
		}
		text = append(text, w.Text)
	}
	if name == "printf" {
		return formatted(text[0], text[1:])
	}
	if strings.HasPrefix(text[0], "-") {
		return strings.Join(text[1:], " "), text[0] == "-n"
	}
	return strings.Join(text, " ") + "\n", true
}

// formatted is what printf(1) prints for a simple format.
func formatted(format string, args []string) (string, bool) {
	format = strings.ReplaceAll(format, `\n`, "\n")
	parts := strings.Split(format, "%s")
	if strings.ContainsAny(strings.Join(parts, ""), `\%`) {
		return "", false
	}
	var b strings.Builder
	for first := true; first || len(args) > 0 && len(parts) > 1; first = false {
		for i, p := range parts {
			b.WriteString(p)
			if i < len(parts)-1 && len(args) > 0 {
				b.WriteString(args[0])
				args = args[1:]
			}
		}
	}
	return b.String(), true
}
