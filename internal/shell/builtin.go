package shell

import (
	"strings"
)

// An outcome is what a builtin does, besides what it changes in the state.
type outcome struct {
	unclear  string // why it may do more than look
	opaque   string // why nothing after it can be judged either
	failed   *state // what holds when it fails; nil: the same
	runs     []Word // a command that it runs
	mode     mode   // and what that command's name may stand for
	script   string // text that the shell runs
	isScript bool
}

// A builtin reads its words and changes the state. bash(1), SHELL BUILTIN
// COMMANDS.
type builtin func(r *reader, args []Word, st *state) outcome

// builtinOf is the builtin of bash or dash with a name, or nil. Those that are
// programs too, and change nothing in the shell, are left to the grammar: echo,
// test, true, kill.
func builtinOf(name string) builtin {
	switch name {
	case "cd":
		return cd
	case "pushd":
		return pushd
	case "popd":
		return popd
	case "dirs":
		return dirs
	case "exit":
		return exit
	case "return", "break", "continue":
		return plainly
	case "eval":
		return eval
	case ".", "source":
		return source
	case "exec":
		return execute
	case "command":
		return command
	case "builtin":
		return builtinWord
	case "export", "readonly", "local", "declare", "typeset":
		return exports
	case "set":
		return sets
	case "shopt":
		return shopts
	case "shift":
		return shift
	case "unset":
		return unset
	}
	return plainerBuiltin(name)
}

// plainerBuiltin are the builtins that only fill variables, look or are
// refused.
func plainerBuiltin(name string) builtin {
	switch name {
	case "read":
		return read
	case "mapfile", "readarray":
		return mapfile
	case "getopts":
		return getopts
	case "printf":
		return printf
	case "hash":
		return hash
	case "wait":
		return wait
	case "ulimit":
		return ulimit
	case "umask":
		return umask
	case "history":
		return history
	case "trap":
		return trap
	case "type", "help", "times", "jobs", "pwd", "caller", ":":
		return looks
	case "alias", "unalias", "enable", "complete", "compgen", "compopt", "bind", "fc":
		return unsafe
	case "bg", "fg", "disown", "suspend", "logout":
		return jobControl
	}
	return nil
}

// bashOnly are no builtins of dash.
var bashOnly = NewWordSet("source builtin declare typeset enable shopt mapfile readarray pushd popd dirs complete compgen compopt bind disown caller " +
	"suspend logout help")

// builtin follows a builtin.
func (r *reader) builtin(b builtin, cmd Command, st *state) (yes, no state) {
	before := *st
	name := cmd.Words[0].Text
	o := b(r, cmd.Words[1:], st)
	st.dead = st.dead && len(cmd.Redirects) == 0 // a failed one prevents it from running
	cmd.Builtin, cmd.Runs, cmd.Unclear = true, o.runs != nil || o.isScript, o.unclear+o.opaque
	if o.opaque != "" {
		r.record(Opaque{Reason: o.opaque, Text: escape(name)})
	}
	i := r.add(cmd, &before)
	if i < 0 {
		return *st, *st
	}
	r.printed(i, cmd)
	yes, no = *st, *st
	if o.failed != nil {
		no = *o.failed
	}
	switch {
	case o.runs != nil:
		yes, no = r.wrapped(name, o, cmd, *st)
	case o.isScript:
		r.into(name, cmd, func() { yes, no = r.script(o.script, r.context.Shell, *st) })
	case name == "exec" && len(cmd.Words) == 1 && len(cmd.Redirects) > 0:
		yes.stdin = shared(cmd.Stdin)
		no = yes
	}
	r.last = i
	return yes, no
}

// wrapped follows the command of command, builtin and exec.
func (r *reader) wrapped(name string, o outcome, cmd Command, st state) (yes, no state) {
	yes, no = st, st
	inner := Command{Words: o.runs, Stdin: cmd.Stdin, Assigns: cmd.Assigns, Redirects: cmd.Redirects}
	if why := badName(o.runs[0].Text); !o.runs[0].Literal() || why != "" {
		r.record(Opaque{Reason: "the name of a command is not a plain word", Text: escape(o.runs[0].Text)})
		return yes, no
	}
	r.into(name, cmd, func() { yes, no = r.run(inner, &st, o.mode) })
	return yes, no
}

// known reports whether all words are.
func known(words []Word) bool {
	for _, w := range words {
		if !w.Literal() {
			return false
		}
	}
	return true
}

// options takes leading flags that hold letters of allowed only, up to "--".
// It reports whether nothing else looks like a flag.
func options(args []Word, allowed string) (flags string, rest []Word, ok bool) {
	for len(args) > 0 {
		w := args[0]
		switch {
		case w.Vague != "" && w.Text == "" && !numeric(w), w.Glob, len(w.Unset) > 0 && w.Text == "" && len(args) > 1:
			return flags, args, false
		case w.Text == "--" && w.Literal():
			return flags, args[1:], true
		case len(w.Text) < 2 || w.Text[0] != '-':
			return flags, args, true
		case !w.Literal() || strings.Trim(w.Text[1:], allowed) != "":
			return flags, args, false
		}
		flags += w.Text[1:]
		args = args[1:]
	}
	return flags, args, true
}

func looks(_ *reader, _ []Word, _ *state) outcome { return outcome{} }

// plainly takes at most a number.
func plainly(_ *reader, args []Word, _ *state) outcome {
	if len(args) > 1 || len(args) == 1 && !numeric(args[0]) {
		return outcome{unclear: "its number is not known"}
	}
	return outcome{}
}

// exit ends the shell. With words that are not known it does so, or it complains
// about them and goes on.
func exit(r *reader, args []Word, st *state) outcome {
	st.dead = plainly(r, args, st).unclear == ""
	return outcome{}
}

func unsafe(_ *reader, _ []Word, st *state) outcome {
	st.dirs = nil
	return outcome{opaque: "it changes what other words of the shell mean, or runs what it is given"}
}

func jobControl(_ *reader, _ []Word, _ *state) outcome {
	return outcome{unclear: "it changes what runs in the background"}
}

// trap lists, ignores or restores signals; text that runs later is opaque.
func trap(_ *reader, args []Word, _ *state) outcome {
	_, args, ok := options(args, "lp")
	switch {
	case ok && len(args) == 0:
		return outcome{}
	case ok && args[0].Literal() && (args[0].Text == "" || args[0].Text == "-"):
		return outcome{}
	}
	return outcome{opaque: "a trap runs text at another time"}
}

// eval runs its words, joined by blanks.
func eval(_ *reader, args []Word, st *state) outcome {
	if !known(args) {
		st.forget("changed by eval")
		st.dirs = nil
		return outcome{opaque: "it runs text that is not known"}
	}
	texts := make([]string, len(args))
	for i, w := range args {
		texts[i] = w.Text
	}
	return outcome{script: strings.Join(texts, " "), isScript: true}
}

// source runs a file in this shell. The file is the repository's code. What it
// does to the shell's directory and functions it could do itself under the same
// containment, so only variables are forgotten.
func source(_ *reader, args []Word, st *state) outcome {
	if len(args) == 0 {
		return outcome{unclear: "it names no file"}
	}
	file := args[0]
	if file.Vague != "" || inputName(file) || strings.HasPrefix(file.Text, "-") || file.Glob {
		return outcome{opaque: "it runs a file that is not known"}
	}
	if file.Text != "" && !strings.Contains(file.Text, "/") {
		return outcome{opaque: "it is looked for in PATH; write ./" + file.Text}
	}
	st.forget("set by " + file.Text)
	return outcome{unclear: "it runs " + file.Text}
}

// execute replaces the shell by a command, or redirects what follows.
func execute(_ *reader, args []Word, _ *state) outcome {
	_, args, ok := options(args, "l")
	if !ok {
		return outcome{opaque: "exec gives a program another name or environment"}
	}
	if len(args) == 0 {
		return outcome{}
	}
	return outcome{runs: args, mode: program}
}

// command runs a program or builtin, or says where it is.
func command(_ *reader, args []Word, _ *state) outcome {
	flags, args, ok := options(args, "pvV")
	switch {
	case !ok:
		return outcome{opaque: "its flags are not known"}
	case strings.ContainsAny(flags, "vV") && len(flags) > 1:
		return outcome{unclear: "command is asked to look and to run"}
	case strings.ContainsAny(flags, "vV"), len(args) == 0:
		return outcome{}
	}
	return outcome{runs: args, mode: inShell}
}

func builtinWord(_ *reader, args []Word, _ *state) outcome {
	_, args, ok := options(args, "")
	if !ok {
		return outcome{opaque: "its flags are not known"}
	}
	if len(args) == 0 {
		return outcome{}
	}
	return outcome{runs: args, mode: inShell}
}
