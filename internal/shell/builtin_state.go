package shell

import (
	"strconv"
	"strings"
)

// cd changes the directory, or fails and leaves it.
func cd(r *reader, args []Word, st *state) outcome {
	before := *st
	flags, args, ok := options(args, "LPe@")
	to := Word{Vague: "the home directory"}
	switch home, isKnown := r.home(st); {
	case !ok || len(args) > 1:
		st.dirs = nil
		return outcome{unclear: "where it leads is not known", failed: &before}
	case len(args) == 1 && args[0].Text == "-":
		to.Vague = "the directory before"
	case len(args) == 1:
		to = args[0]
	case isKnown:
		to = Word{Text: home}
	}
	if strings.Contains(flags, "P") && strings.Contains(to.Text, "..") {
		to = Word{Vague: "a parent that links lead to"}
	}
	st.dirs = enter(st.dirs, to)
	return outcome{failed: &before}
}

// pushd is cd that remembers where it came from.
func pushd(r *reader, args []Word, st *state) outcome {
	before := *st
	if len(args) != 1 || !args[0].Literal() || strings.ContainsAny(args[0].Text[:min(1, len(args[0].Text))], "+-") {
		st.dirs, st.stack = nil, nil
		return outcome{failed: &before, unclear: "where it leads is not known"}
	}
	o := cd(r, args, st)
	st.stack = append(st.stack[:len(st.stack):len(st.stack)], before.dirs)
	return o
}

func popd(_ *reader, args []Word, st *state) outcome {
	before := *st
	st.dirs = nil
	if n := len(st.stack); n > 0 && len(args) == 0 {
		st.dirs, st.stack = st.stack[n-1], st.stack[:n-1]
		return outcome{failed: &before}
	}
	st.stack = nil
	return outcome{failed: &before, unclear: "where it leads is not known"}
}

func dirs(_ *reader, args []Word, st *state) outcome {
	if _, rest, ok := options(args, "lpv"); !ok || len(rest) > 0 {
		st.stack = nil
		return outcome{unclear: "what it does to the stack of directories is not known"}
	}
	return outcome{}
}

// exports is export and its kin where the parser sees a plain command: in
// dash, and behind command or a backslash.
func exports(r *reader, args []Word, st *state) outcome {
	if len(args) == 0 || !known(args) || strings.HasPrefix(args[0].Text, "-") {
		return outcome{opaque: "which variables it changes or prints is not known"}
	}
	var o outcome
	for _, w := range args {
		name, text, sets := strings.Cut(w.Text, "=")
		if !plainName(name) {
			return outcome{opaque: "a subscript can run what the values in it say"}
		}
		v := r.variable(st, name)
		if sets {
			v = value{word: Word{Text: text}}
		}
		v.exported = true
		r.assign(st, name, v, r.node)
		o.unclear = "programs see the variable " + name
	}
	return o
}

// setFlags and setNames are options of the shell that change neither how the
// line is read nor what its words mean.
const setFlags = "euxvCf"

var setNames = NewWordSet("errexit nounset xtrace verbose noclobber noglob pipefail")

// sets changes options of the shell, or its parameters.
func sets(_ *reader, args []Word, st *state) outcome {
	if len(args) == 0 {
		return outcome{unclear: "set prints all variables, which may be secret"}
	}
	for i := 0; i < len(args); i++ {
		w := args[i]
		switch flags := strings.TrimLeft(w.Text, "+-"); {
		case w.Literal() && w.Text == "--":
			st.setParams(Word{Vague: "the name of the shell"}, args[i+1:])
			return outcome{}
		case !w.Literal() || len(flags) != len(w.Text)-1 || flags == "":
			return outcome{opaque: "it sets parameters to what is not known"}
		case strings.Trim(strings.TrimSuffix(flags, "o"), setFlags) != "":
			return outcome{opaque: "an option of the shell that changes what words mean"}
		case strings.HasSuffix(flags, "o"):
			if i++; i >= len(args) || !args[i].Literal() || !setNames.Has(args[i].Text) {
				return outcome{opaque: "an option of the shell that changes what words mean"}
			}
		}
	}
	return outcome{}
}

var shoptNames = NewWordSet("nullglob globstar failglob nocaseglob inherit_errexit extglob")

// shoptOff may be switched off, which is what is taken for granted, or says
// something of prompts only. Agents begin each line so.
var shoptOff = NewWordSet("promptvars dotglob nocasematch")

func shopts(_ *reader, args []Word, _ *state) outcome {
	flags, names, ok := options(args, "suqp")
	for _, w := range names {
		ok = ok && w.Literal() && (shoptNames.Has(w.Text) || flags == "u" && shoptOff.Has(w.Text))
	}
	if !ok {
		return outcome{opaque: "an option of the shell that changes what words mean"}
	}
	return outcome{}
}

func shift(_ *reader, args []Word, st *state) outcome {
	n := 1
	if len(args) == 1 && args[0].Literal() && digits(args[0].Text) {
		n, _ = strconv.Atoi(args[0].Text) // too long a number is too many
	} else if len(args) > 0 {
		st.loseParams()
		return outcome{unclear: "its number is not known"}
	}
	if st.given && n >= 0 && n < len(st.params) {
		st.params = append([]Word{st.params[0]}, st.params[1+n:]...)
	}
	return outcome{}
}

func unset(_ *reader, args []Word, st *state) outcome {
	flags, names, ok := options(args, "v")
	if !ok || !known(names) || flags != "" && strings.Trim(flags, "v") != "" {
		return outcome{opaque: "what it removes is not known"}
	}
	for _, w := range names {
		if !plainName(w.Text) || steers(w.Text, Word{}) {
			return outcome{opaque: "a subscript can run what the values in it say"}
		}
		if w.Text == "PATH" || pinned(w.Text) {
			return outcome{opaque: "without " + w.Text + " other programs may run"} // without PATH, those of the current directory
		}
		if v, isFunc := st.lookup(w.Text, true); isFunc {
			st.bind(w.Text, value{isFunc: v.isFunc}) // which of the two goes is not certain
		}
		st.bind(w.Text, value{word: Word{Unset: []string{w.Text}}, exported: true})
	}
	return outcome{}
}

// fill makes variables unknown that a builtin fills.
func (r *reader) fill(st *state, names []Word, why string) outcome {
	for _, w := range names {
		if !w.Literal() || !plainName(w.Text) {
			return outcome{opaque: "a subscript can run what the values in it say"}
		}
		r.fillVariable(st, w.Text, Word{Vague: why}, r.node)
	}
	return outcome{}
}

// valued takes flags that take a value, and flags that do not.
func valued(args []Word, plain, values string) (rest, given []Word, ok bool) {
	for len(args) > 0 {
		w := args[0]
		if !w.Literal() || len(w.Text) < 2 || w.Text[0] != '-' {
			return args, given, w.Literal() || w.Text != "" && w.Text[0] != '-'
		}
		args = args[1:]
		if w.Text == "--" {
			return args, given, true
		}
		i := strings.IndexAny(w.Text[1:], values)
		switch {
		case i < 0 && strings.Trim(w.Text[1:], plain) == "":
		case i < 0 || strings.Trim(w.Text[1:1+i], plain) != "":
			return nil, nil, false
		case i < len(w.Text)-2: // attached
		case len(args) == 0:
			return nil, nil, false
		default:
			given = append(given, args[0])
			args = args[1:]
		}
	}
	return nil, given, true
}

func read(r *reader, args []Word, st *state) outcome {
	names, _, ok := valued(args, "res", "dinNptu")
	if !ok {
		return outcome{opaque: "which variables it sets is not known"}
	}
	return r.fill(st, names, "what it reads")
}

func mapfile(r *reader, args []Word, st *state) outcome {
	names, values, ok := valued(args, "t", "dnOsu")
	if !ok || !known(values) {
		return outcome{opaque: "it can run what it is given"}
	}
	return r.fill(st, names, "what it reads")
}

func getopts(r *reader, args []Word, st *state) outcome {
	if len(args) < 2 || !args[0].Literal() {
		return outcome{opaque: "which variables it sets is not known"}
	}
	st.bind("OPTARG", value{word: Word{Vague: "an option's value"}})
	return r.fill(st, args[1:2], "an option")
}

// printf sets a variable by -v, and evaluates its subscript.
func printf(r *reader, args []Word, st *state) outcome {
	if len(args) > 1 && args[0].Literal() && args[0].Text == "-v" {
		return r.fill(st, args[1:2], "what printf prints")
	}
	if len(args) == 0 || !args[0].Literal() && args[0].Text == "" || strings.HasPrefix(args[0].Text, "-") && args[0].Text != "--" {
		return outcome{opaque: "the format could set a variable"}
	}
	return outcome{}
}

func hash(_ *reader, args []Word, _ *state) outcome {
	if _, _, ok := options(args, "tlrd"); !ok {
		return outcome{opaque: "it changes what names of programs mean"}
	}
	return outcome{}
}

func wait(_ *reader, args []Word, _ *state) outcome {
	_, ids, ok := options(args, "nf")
	for _, w := range ids {
		ok = ok && (numeric(w) || w.Literal() && strings.HasPrefix(w.Text, "%"))
	}
	if !ok {
		return outcome{opaque: "a subscript can run what the values in it say"}
	}
	return outcome{}
}

// ulimit evaluates limits as arithmetic.
func ulimit(_ *reader, args []Word, _ *state) outcome {
	_, limits, ok := options(args, "abcdefiklmnpqrstuvxPRTHS")
	for _, w := range limits {
		ok = ok && w.Literal() && (digits(w.Text) || w.Text == "unlimited" || w.Text == "hard" || w.Text == "soft")
	}
	if !ok {
		return outcome{opaque: "a limit can run what the values in it say"}
	}
	return outcome{}
}

func umask(_ *reader, args []Word, _ *state) outcome {
	if !known(args) {
		return outcome{unclear: "the mask is not known"}
	}
	return outcome{}
}

func history(_ *reader, args []Word, _ *state) outcome {
	if len(args) > 1 || len(args) == 1 && !numeric(args[0]) {
		return outcome{opaque: "it changes or runs what was entered before"}
	}
	if len(args) == 0 {
		return outcome{unclear: "all that was entered before may hold secrets"}
	}
	return outcome{}
}
