package shell

import (
	"path"
	"reflect"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// nested follows a command or script that cmd runs.
func (r *reader) nested(n nested, cmd Command, st state) {
	via := path.Base(cmd.Words[0].Text)
	switch {
	case n.script:
		via += " -c"
	case via == "find":
		via += " -exec"
	}
	r.into(via, cmd, func() {
		inner := r.environment(n, cmd, st)
		if n.script {
			r.shellText(n, cmd, inner)
			return
		}
		for _, words := range r.supplied(n, cmd) {
			r.nestedArgs(words, n, cmd, inner)
		}
	})
}

// into is within for a command that has no node of its own.
func (r *reader) into(via string, cmd Command, f func()) {
	if r.depth >= MaxDepth {
		r.record(Opaque{Reason: "it is nested too deep", Text: escape(cmd.Words[0].Text)})
		return
	}
	r.depth++
	r.via = append(r.via, via)
	f()
	r.via = r.via[:len(r.via)-1]
	r.depth--
}

func (r *reader) nestedArgs(words []Word, n nested, cmd Command, st state) {
	if len(words) == 0 { // of "xargs -i" alone
		return
	}
	inner := Command{Words: words, Stdin: cmd.Stdin}
	if n.stdin {
		inner.Stdin = Stdin{From: File, Command: -1} // xargs has read it
	}
	if why := badName(words[0].Text); !words[0].Literal() || why != "" {
		r.record(Opaque{Reason: "the name of a command is not a plain word", Text: escape(words[0].Text)})
		return
	}
	r.run(inner, &st, program)
}

// keepers hand their environment on as it is, but for what they claim to set.
var keepers = NewWordSet("sh bash dash timeout nice nohup time xargs find stdbuf setsid ionice chrt env command exec fd")

// environment is what a program that cmd runs knows of the shell's state.
func (r *reader) environment(n nested, cmd Command, st state) state {
	inner := state{dirs: st.dirs, stdin: cmd.Stdin, lost: st.lost}
	for _, k := range names(st.vars) {
		if v, _ := st.lookup(k.name, false); !k.isFunc && v.exported {
			inner.bind(k.name, value{word: v.word, exported: true})
		}
	}
	for _, a := range cmd.Assigns {
		inner.bind(a.Name, value{word: a.Value, exported: true})
	}
	for _, w := range n.env {
		name, text, _ := strings.Cut(w.Text, "=")
		set := w
		set.Text = text
		inner.bind(name, value{word: set, exported: true})
		if steers(name, set) {
			r.record(Opaque{Reason: "setting " + name + " changes how a shell reads", Text: escape(w.Text)})
		}
	}
	if n.moves {
		inner.dirs = nil
	}
	if name := path.Base(cmd.Words[0].Text); !keepers.Has(name) || name == "env" && len(cmd.Words) > 1 && strings.HasPrefix(cmd.Words[1].Text, "-") {
		inner.forget("set or removed by " + name)
		for v := range r.context.Env {
			inner.bind(v, value{word: Word{Vague: inner.lost}, exported: true})
		}
		inner.bind("HOME", value{word: Word{Vague: inner.lost}, exported: true})
	}
	return inner
}

// supplied lists the commands that come of a nested one: its own words, with
// those that standard input or find adds.
func (r *reader) supplied(n nested, cmd Command) [][]Word {
	var items []Word
	switch {
	case n.stdin:
		items = r.items(cmd, n.replace != "")
	case n.replace != "":
		items = []Word{{Vague: "a path that " + path.Base(cmd.Words[0].Text) + " finds"}}
	default:
		return [][]Word{n.args}
	}
	if n.replace == "" {
		args := n.args
		if len(args) == 0 {
			args = []Word{{Text: "echo"}} // xargs alone
		}
		return [][]Word{append(args[:len(args):len(args)], items...)}
	}
	var out [][]Word
	for _, item := range items {
		item.Split = false
		words := make([]Word, len(n.args))
		for i, w := range n.args {
			words[i] = replaced(w, n.replace, item)
		}
		out = append(out, words)
	}
	return out
}

// replaced is w with every place that holds what replaced by item.
func replaced(w Word, what string, item Word) Word {
	before, after, found := strings.Cut(w.Text, what)
	switch {
	case !found:
		return w
	case item.Literal():
		w.Text = strings.ReplaceAll(w.Text, what, item.Text)
		return w
	}
	out := Word{Text: before, Vague: item.Vague}
	if before == "" && w.Literal() && !strings.Contains(after, "..") && !strings.Contains(after, what) {
		out.Below = item.Below
	}
	return out
}

// items are the words that xargs reads: known when its input is, and nothing
// in it is quoted.
func (r *reader) items(cmd Command, lines bool) []Word {
	unknown := []Word{{Vague: "what standard input says", Split: true}}
	for _, w := range cmd.Words[1:] {
		if !w.Literal() || strings.HasPrefix(w.Text, "-a") || strings.HasPrefix(w.Text, "--arg-file") {
			return unknown
		}
	}
	text := cmd.Stdin.Text.Text
	switch {
	case cmd.Stdin.From != Text, strings.ContainsAny(text, `'"\`), delimited(cmd.Words[1:]):
		return unknown
	}
	list := strings.Fields(text)
	if lines {
		list = strings.FieldsFunc(text, func(c rune) bool { return c == '\n' })
	}
	if len(list) > maxRounds && lines || len(list) > maxWords {
		return unknown
	}
	words := make([]Word, len(list))
	for i, s := range list {
		words[i].Text = strings.TrimLeft(s, " \t")
	}
	return words
}

// delimited reports whether xargs may separate its items by something other
// than white space: -0, -d, -E and the like. Any flag is taken for one but
// those that are known not to.
func delimited(words []Word) bool {
	for len(words) > 0 && len(words[0].Text) > 1 && words[0].Text[0] == '-' {
		flag := words[0].Text
		words = words[1:]
		switch {
		case strings.IndexByte("ILnPi", flag[1]) < 0 && strings.Trim(flag[1:], "rtx") != "":
			return true
		case len(flag) == 2 && strings.IndexByte("ILnP", flag[1]) >= 0 && len(words) > 0:
			words = words[1:]
		}
	}
	return false
}

// shellText follows the script of sh -c and the like.
func (r *reader) shellText(n nested, cmd Command, st state) {
	if !n.text.Literal() {
		r.record(Opaque{Reason: "a script that is not known", Text: escape(n.text.Text)})
		return
	}
	zero, params := Word{Vague: "the name of the shell"}, n.params
	if len(params) > 0 && !params[0].Split && !params[0].Glob {
		zero, params = params[0], params[1:]
	}
	st.setParams(zero, params)
	r.scripts(path.Base(cmd.Words[0].Text), n.text.Text, cmd, st)
}

// dialects are the shells that a program's name may stand for. What sh is
// differs between systems; what runs others hands text to sh.
func dialects(name string) []Dialect {
	switch name {
	case "bash", "rbash":
		return []Dialect{Bash}
	case "dash", "ash":
		return []Dialect{POSIX}
	case "zsh", "ksh", "mksh", "fish", "csh", "tcsh", "nu", "pwsh", "xonsh":
		return nil
	}
	return []Dialect{Bash, POSIX}
}

// scripts reads a text as every shell would that may run it. What they agree
// on is recorded once.
func (r *reader) scripts(name, text string, cmd Command, st state) {
	list := dialects(name)
	if len(list) == 0 {
		r.record(Opaque{Reason: name + " is a shell of another language", Text: escape(text)})
	}
	var before []Command
	for i, d := range list {
		commands, opaque := len(r.line.Commands), len(r.line.Opaque)
		r.script(text, d, st)
		if r.over {
			return
		}
		now := relative(r.line.Commands[commands:], commands)
		if i > 0 && reflect.DeepEqual(now, before) {
			r.line.Commands = r.line.Commands[:commands]
		}
		r.line.Opaque = dedupe(r.line.Opaque, opaque)
		before = now
	}
}

// relative is a copy of commands that count from base.
func relative(commands []Command, base int) []Command {
	out := append([]Command(nil), commands...)
	for i := range out {
		if out[i].Stdin.Command >= base {
			out[i].Stdin.Command -= base
		}
	}
	return out
}

// dedupe drops from list[from:] what is in front of it already.
func dedupe(list []Opaque, from int) []Opaque {
	out := list[:from]
	for _, o := range list[from:] {
		if !slices.Contains(out, o) {
			out = append(out, o)
		}
	}
	return out
}

// script reads a text that a shell runs as it is.
func (r *reader) script(text string, d Dialect, st state) (yes, no state) {
	reason := suspicious(text)
	var file *syntax.File
	if reason == "" {
		var err error
		if file, err = parse(text, d); err != nil {
			reason = "a script that can't be parsed: " + err.Error()
		}
	}
	if reason != "" {
		r.record(Opaque{Reason: reason, Text: escape(text)})
		return st, st
	}
	outer := *r
	r.source, r.context.Shell = text, d
	yes, no = r.list(file.Stmts, st)
	r.source, r.context.Shell = outer.source, outer.context.Shell
	return yes, no
}
