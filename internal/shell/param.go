package shell

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// shellSets are variables that the shell itself sets, so they are neither empty
// nor known. Those that hold numbers are true. bash(1), Shell Variables.
var shellSets = map[string]bool{
	"?": true, "$": true, "!": true, "#": true, "-": false, "_": false, "0": false,
	"UID": true, "EUID": true, "PPID": true, "RANDOM": true, "SRANDOM": true, "SECONDS": true, "LINENO": true,
	"SHLVL": true, "OPTIND": true, "EPOCHSECONDS": true, "COLUMNS": true, "LINES": true,
	"EPOCHREALTIME": false, "GROUPS": false, "HOSTNAME": false, "HOSTTYPE": false, "MACHTYPE": false, "OSTYPE": false,
	"IFS": false, "PS1": false, "PS2": false, "PS4": false, "PATH": false, "SHELL": false, "TERM": false, "OLDPWD": false,
	"SHELLOPTS": false, "DIRSTACK": false, "PIPESTATUS": false, "FUNCNAME": false, "REPLY": false, "OPTARG": false,
	"OPTERR": true, "COMP_WORDBREAKS": false, "MAPFILE": false, "COPROC": false, "HISTCMD": true, "LANG": false,
}

// home is the value of HOME.
func (r *reader) home(st *state) (string, bool) {
	v := r.variable(st, "HOME")
	return v.word.Text, v.word.Literal() && v.word.Text != ""
}

// variable is the value of a variable, wherever it was set.
func (r *reader) variable(st *state, name string) value {
	if v, ok := st.lookup(name, false); ok {
		return v
	}
	c := &r.context
	if text, ok := c.Env[name]; ok {
		return value{word: Word{Text: text}, exported: true}
	}
	switch {
	case name == "HOME" && c.Home != "":
		return value{word: Word{Text: c.Home}, exported: true}
	case name == "HOME", name == "PWD" && len(st.dirs) != 1, contains(c.Names, name), strings.HasPrefix(name, "BASH"):
		return value{word: Word{Vague: "the value of " + name}, exported: true}
	case name == "PWD":
		return value{word: Word{Text: st.dirs[0]}, exported: true}
	}
	if isNumber, ok := shellSets[name]; ok {
		if isNumber {
			return value{word: Word{Vague: number}}
		}
		return value{word: Word{Vague: "the value of " + name}}
	}
	if st.lost != "" {
		return value{word: Word{Vague: st.lost}}
	}
	return value{word: Word{Unset: []string{name}}}
}

func contains(list []string, s string) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}

// param adds what a parameter expands to.
func (b *builder) param(p *syntax.ParamExp, quoted bool) {
	if why := b.r.treacherous(p); why != "" {
		b.r.opaque(why, p)
		b.unknown("a value that could not be read", !quoted, nil)
		return
	}
	values := b.r.parameter(p, b.st)
	b.partial.Split = b.partial.Split || b.splits && isAt(p) && len(values) == 1 && !values[0].Literal()
	switch {
	case p.Length:
		b.unknown(number, false, nil)
	case p.Slice != nil:
		b.slice(p, quoted)
	case p.Repl != nil:
		b.pattern2(p.Repl.Orig, p.Repl.With)
		b.derived(values, quoted)
	case p.Exp != nil:
		b.operator(p, values, quoted)
	default:
		b.addAll(values, quoted, quoted && star(p))
	}
}

// star reports whether p joins all its words to one: $* and ${a[*]}.
func star(p *syntax.ParamExp) bool {
	w, ok := p.Index.(*syntax.Word)
	return p.Param.Value == "*" || ok && w.Lit() == "*"
}

// treacherous says why an expansion may run what a value says.
func (r *reader) treacherous(p *syntax.ParamExp) string {
	switch {
	case p.Excl, p.Names != 0:
		return "an indirect expansion reads the variable that a value names"
	case p.Exp != nil && p.Exp.Op == syntax.OtherParamOps:
		return "an expansion by @ can run what a value says"
	case p.Param == nil, p.Width, p.IsSet, p.Flags != nil, p.NestedParam != nil, len(p.Modifiers) > 0:
		return "an expansion of another shell"
	}
	if w, ok := p.Index.(*syntax.Word); p.Index != nil && !(ok && subscript(w.Lit())) {
		return "a subscript can run what the values in it say"
	}
	return ""
}

func subscript(s string) bool { return s == "@" || s == "*" || digits(s) }

// parameter lists the values of a parameter: of "$@" and arrays any number.
func (r *reader) parameter(p *syntax.ParamExp, st *state) []Word {
	name := p.Param.Value
	switch {
	case name == "@" || name == "*":
		if st.given {
			return st.params[1:]
		}
	case digits(name) && st.given:
		n, err := strconv.Atoi(name)
		if err != nil || n >= len(st.params) {
			return []Word{{}} // it is empty
		}
		return st.params[n : n+1]
	}
	v := r.variable(st, name)
	if !v.array {
		return []Word{v.word}
	}
	index := "0"
	if w, ok := p.Index.(*syntax.Word); ok {
		index = w.Lit()
	}
	if index == "@" || index == "*" {
		return v.elems
	}
	n, err := strconv.Atoi(index)
	if err != nil || n >= len(v.elems) {
		return []Word{{}}
	}
	return v.elems[n : n+1]
}

// addAll adds values, each a word of its own unless they are joined to one.
func (b *builder) addAll(values []Word, quoted, joined bool) {
	for _, v := range values {
		if v.Split && !joined {
			b.unknown(v.Vague, true, nil) // how many they are is not known
			return
		}
	}
	for i, v := range values {
		switch {
		case i > 0 && b.splits && !joined:
			b.next()
		case v.Split && joined: // maybe none, and then without a blank
			b.unknown(v.Vague, false, nil)
			continue
		case i > 0:
			b.literal(" ")
		}
		b.add(v, quoted)
	}
}

// derived adds something that is made of values: not known unless they are
// empty.
func (b *builder) derived(values []Word, quoted bool) {
	for _, v := range values {
		if len(v.Unset) > 0 && v.Text == "" && v.Vague == "" {
			b.add(v, quoted)
		} else {
			b.unknown("a part of a value", !quoted, nil)
		}
	}
}

// pattern2 follows what stands in patterns, for what it runs.
func (b *builder) pattern2(words ...*syntax.Word) {
	for _, w := range words {
		if w != nil {
			b.r.single(w, b.st)
		}
	}
}

func (b *builder) slice(p *syntax.ParamExp, quoted bool) {
	for _, x := range []syntax.ArithmExpr{p.Slice.Offset, p.Slice.Length} {
		if x != nil && !b.r.arithm(x, b.st) {
			b.r.opaque("arithmetic can run what the values in it say", p)
		}
	}
	b.derived(b.r.parameter(p, b.st), quoted)
}

// operator adds what ${NAME:-WORD} and its kin expand to.
func (b *builder) operator(p *syntax.ParamExp, values []Word, quoted bool) {
	var other Word
	if p.Exp.Word != nil {
		other = b.r.single(p.Exp.Word, b.st)
	}
	op := p.Exp.Op
	v := Word{}
	for i, one := range values {
		if v = one; i > 0 {
			v = Word{Vague: "several values"}
			break
		}
	}
	unset := len(v.Unset) > 0 && v.Text == "" || len(values) == 0
	empty := unset || v.Literal() && v.Text == ""
	colon := op == syntax.DefaultUnsetOrNull || op == syntax.AssignUnsetOrNull || op == syntax.AlternateUnsetOrNull
	absent := unset || colon && empty
	switch op {
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
		b.orDefault(p, v, other, absent, quoted)
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		b.alternate(v, other, absent, quoted)
	case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		b.addAll(values, quoted, true)
	default:
		b.derived(values, quoted)
	}
}

// orDefault adds v, or other where v is absent.
func (b *builder) orDefault(p *syntax.ParamExp, v, other Word, absent, quoted bool) {
	assigns := p.Exp.Op == syntax.AssignUnset || p.Exp.Op == syntax.AssignUnsetOrNull
	switch {
	case v.Vague != "":
		b.unknown(v.Vague, !quoted && (v.Vague != number || other.Text != ""), nil)
	case !absent:
		b.add(v, quoted)
		return
	default:
		other.Unset = append(other.Unset[:len(other.Unset):len(other.Unset)], v.Unset...)
		b.add(other, quoted)
	}
	if assigns {
		if v.Vague != "" {
			other = Word{Vague: v.Vague}
		}
		b.r.fillVariable(b.st, p.Param.Value, other, p)
	}
}

// alternate adds other unless v is absent.
func (b *builder) alternate(v, other Word, absent, quoted bool) {
	switch {
	case v.Vague != "":
		b.unknown(v.Vague, !quoted, nil)
	case absent:
		b.add(Word{Unset: v.Unset}, quoted)
	default:
		b.add(other, quoted)
	}
}
