package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// steering are variables that change how the shell reads or runs what comes
// after. bash(1), Shell Variables.
var steering = map[string]bool{
	"IFS": true, "PS0": true, "PS4": true, "ENV": true, "SHELLOPTS": true, "PROMPT_COMMAND": true, "CDPATH": true, "GLOBIGNORE": true,
	"EXECIGNORE": true, "PWD": true, "OLDPWD": true, "DIRSTACK": true, "POSIXLY_CORRECT": true, "FUNCNEST": true, "HISTFILE": true,
	"TIMEFORMAT": true, "GROUPS": true, "FIGNORE": true, "UID": true, "EUID": true, "PPID": true, "FUNCNAME": true, "OPTIND": true,
}

// locales are those in which a shell reads bytes as the parser does.
var locales = map[string]bool{"": true, "C": true, "POSIX": true, "C.UTF-8": true, "C.utf8": true, "en_US.UTF-8": true, "en_US.utf8": true}

// steers says why setting a variable changes what the rest of the line means.
func steers(name string, w Word) bool {
	locale := name == "LANG" || strings.HasPrefix(name, "LC_")
	return steering[name] || strings.HasPrefix(name, "BASH") || locale && !(w.Literal() && locales[w.Text])
}

// inherited are variables that sessions have, so that programs see what is
// assigned to them.
var inherited = map[string]bool{"PATH": true, "HOME": true, "TERM": true, "USER": true, "LOGNAME": true, "SHELL": true, "LANG": true, "TMPDIR": true}

// pinned reports whether a variable may be one of those with which the caller
// keeps git from running what a repository names.
func pinned(name string) bool { return strings.HasPrefix(name, "GIT_") }

// assign sets a variable in st.
func (r *reader) assign(st *state, name string, v value, n syntax.Node) {
	old := r.variable(st, name)
	switch {
	case old.frozen:
		r.opaque("a read-only variable is set", n)
	case steers(name, v.word):
		r.opaque("setting "+name+" changes how the shell reads what follows", n)
	}
	v.exported = v.exported || old.exported || inherited[name]
	st.bind(name, v)
}

// fillVariable sets a variable by other means than an assignment that the line
// shows. Programs must not see it.
func (r *reader) fillVariable(st *state, name string, w Word, n syntax.Node) {
	r.assign(st, name, value{word: w}, n)
	if v, _ := st.lookup(name, false); v.exported || pinned(name) {
		r.opaque("it sets "+name+", which programs see", n)
	}
}

// assignment evaluates NAME=VALUE and says what it sets. It is opaque for what
// evaluates a subscript.
func (r *reader) assignment(a *syntax.Assign, st *state) (Assign, value) {
	out := Assign{Name: a.Name.Value}
	var v value
	switch {
	case a.Index != nil:
		r.opaque("a subscript can run what the values in it say", a)
		v.word.Vague = "an element of an array"
	case a.Array != nil:
		v = r.array(a, st)
	case a.Value != nil:
		v.word = r.single(a.Value, st)
	}
	if a.Append {
		v = value{word: r.appended(a, v, st), array: v.array}
		if v.array {
			v.elems, v.array = nil, false
		}
	}
	out.Value = v.word
	if v.array {
		out.Value = Word{Vague: "an array"}
	}
	return out, v
}

// appended is what NAME+=VALUE gives.
func (r *reader) appended(a *syntax.Assign, v value, st *state) Word {
	old := r.variable(st, a.Name.Value)
	if !old.array && !v.array && v.word.Literal() && old.word.Vague == "" && !old.word.Glob {
		return Word{Text: old.word.Text + v.word.Text}
	}
	return Word{Vague: "several values"}
}

func (r *reader) array(a *syntax.Assign, st *state) value {
	v := value{array: true}
	for _, e := range a.Array.Elems {
		if e.Index != nil || e.Value == nil {
			r.opaque("a subscript can run what the values in it say", a)
			continue
		}
		v.elems = r.fields(v.elems, e.Value, st)
	}
	for i, w := range v.elems {
		if w.Split || w.Glob || len(w.Unset) > 0 {
			// How many elements this is, is not known.
			v.elems = append(v.elems[:i:i], Word{Vague: "elements of an array", Split: true})
			break
		}
	}
	return v
}

// declare follows export, declare and their kin, which the parser reads as
// keywords.
func (r *reader) declare(d *syntax.DeclClause, st *state) {
	name := d.Variant.Value
	cmd := Command{Stdin: st.stdin, Words: []Word{{Text: name}}}
	kind := declaration{exported: name == "export", frozen: name == "readonly"}
	before := *st
	for _, a := range d.Args {
		if a.Name == nil {
			w := r.single(a.Value, st)
			cmd.Words = append(cmd.Words, w)
			kind.flag(w)
		} else {
			assign, v := r.assignment(a, st)
			word := assign.Value
			word.Text = a.Name.Value + "=" + word.Text
			if a.Naked {
				word = Word{Text: a.Name.Value}
				v = r.variable(st, a.Name.Value)
				assign.Value = v.word
			}
			cmd.Words = append(cmd.Words, word)
			kind.apply(r, st, &cmd, assign, v, a)
		}
	}
	cmd.Builtin, cmd.Unclear = true, kind.unclear(name, len(cmd.Assigns))
	if kind.strange {
		r.opaque("a declaration that changes how values are read", d)
	}
	r.add(cmd, &before)
}

// A declaration is what the flags of declare and its kin say.
type declaration struct {
	exported, frozen bool
	lists            bool // it prints variables
	strange          bool // integers, references, case: values are read differently
}

func (k *declaration) flag(w Word) {
	if !w.Literal() || len(w.Text) < 2 {
		k.strange = true
		return
	}
	for _, c := range w.Text[1:] {
		switch {
		case w.Text == "--":
		case c == 'x' && w.Text[0] == '-':
			k.exported = true
		case c == 'r' && w.Text[0] == '-':
			k.frozen = true
		case c == 'p', c == 'f', c == 'F':
			k.lists = true
		case c == 'a' || c == 'g':
		default:
			k.strange = true
		}
	}
}

// apply sets one variable.
func (k *declaration) apply(r *reader, st *state, cmd *Command, a Assign, v value, n syntax.Node) {
	v.exported = v.exported || k.exported
	r.assign(st, a.Name, v, n)
	now, _ := st.lookup(a.Name, false)
	now.frozen = k.frozen
	st.bind(a.Name, now)
	a.Exported = now.exported
	cmd.Assigns = append(cmd.Assigns, a)
}

// unclear says why the declaration may show what is secret.
func (k *declaration) unclear(name string, assigns int) string {
	if k.lists || assigns == 0 {
		return name + " prints variables, which may be secret, or functions"
	}
	return ""
}
