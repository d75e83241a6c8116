package shell

import (
	"path"
	"reflect"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/bawn-dev/bawn/internal/shell/grammar"
)

// nested follows a command or script that cmd runs.
func (r *reader) nested(n grammar.Nested, cmd Command, st state) {
	via := path.Base(cmd.Words[0].Text)
	switch {
	case n.IsScript:
		via += " -c"
	case via == "find":
		via += " -exec"
	}
	r.into(via, cmd, func() {
		inner := r.environment(cmd, st)
		if n.IsScript {
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
		r.record(Opaque{Reason: "it is nested too deep", Text: escape(cmd.Words[0].Text), Offset: cmd.Offset})
		return
	}
	r.depth++
	r.via = append(r.via, via)
	f()
	r.via = r.via[:len(r.via)-1]
	r.depth--
}

func (r *reader) nestedArgs(words []grammar.Word, n grammar.Nested, cmd Command, st state) {
	if len(words) == 0 {
		return
	}
	inner := Command{Words: words, Offset: cmd.Offset, Stdin: cmd.Stdin}
	if n.Stdin {
		inner.Stdin = Stdin{From: File, Command: -1} // xargs has read it
	}
	if why := badName(words[0].Text); !words[0].Literal() || why != "" {
		r.record(Opaque{Reason: "the name of a command is not a plain word", Text: escape(words[0].Text), Offset: cmd.Offset})
		return
	}
	r.run(inner, &st, program)
}

// keepers hand their environment on as it is, but for what they claim to set.
var keepers = grammar.NewWordSet("sh bash dash timeout nice nohup time xargs find stdbuf setsid ionice chrt env command exec fd")

// environment is what a program that cmd runs knows of the shell's state.
func (r *reader) environment(cmd Command, st state) state {
	inner := state{dirs: nestedDirs(cmd, st.dirs), stdin: cmd.Stdin, lost: st.lost}
	for _, k := range names(st.vars) {
		if v, _ := st.lookup(k.name, false); !k.isFunc && v.exported {
			inner.bind(k.name, value{word: v.word, exported: true})
		}
	}
	for _, a := range cmd.Assigns {
		inner.bind(a.Name, value{word: a.Value, exported: true})
	}
	for _, c := range cmd.Meaning.Claims {
		if name, text, ok := strings.Cut(c.Value.Text, "="); ok && c.Verb == grammar.Setenv {
			w := c.Value
			w.Text = text
			inner.bind(name, value{word: w, exported: true})
			if steers(name, w) {
				r.record(Opaque{Reason: "setting " + name + " changes how a shell reads", Text: escape(c.Value.Text), Offset: cmd.Offset})
			}
		}
	}
	if name := path.Base(cmd.Words[0].Text); !keepers.Has(name) || name == "env" && len(cmd.Words) > 1 && strings.HasPrefix(cmd.Words[1].Text, "-") {
		inner.forget("set or removed by " + name)
		for v := range r.context.Env {
			inner.bind(v, value{word: grammar.Word{Vague: inner.lost}, exported: true})
		}
		inner.bind("HOME", value{word: grammar.Word{Vague: inner.lost}, exported: true})
	}
	return inner
}

// nestedDirs are the directories in which cmd runs others: its own, unless it
// enters one.
func nestedDirs(cmd Command, dirs []string) []string {
	for _, c := range cmd.Meaning.Claims {
		if c.Verb == grammar.Enter {
			for _, d := range c.Dir {
				dirs = enter(dirs, d)
			}
			dirs = enter(dirs, c.Value)
		}
	}
	return dirs
}

// supplied lists the commands that come of a nested one: its own words, with
// those that standard input or find adds.
func (r *reader) supplied(n grammar.Nested, cmd Command) [][]grammar.Word {
	var items []grammar.Word
	switch {
	case n.Below != nil:
		items = []grammar.Word{{Vague: "a path that find finds", Below: n.Below}}
	case n.Stdin:
		items = r.items(cmd, n.Replace != "")
	case n.Replace != "":
		items = []grammar.Word{{Vague: "what it is replaced by"}}
	default:
		return [][]grammar.Word{n.Args}
	}
	if n.Replace == "" {
		args := n.Args
		if len(args) == 0 {
			args = []grammar.Word{{Text: "echo"}} // xargs alone
		}
		return [][]grammar.Word{append(args[:len(args):len(args)], items...)}
	}
	var out [][]grammar.Word
	for _, item := range items {
		item.Split = false
		words := make([]grammar.Word, len(n.Args))
		for i, w := range n.Args {
			words[i] = replaced(w, n.Replace, item)
		}
		out = append(out, words)
	}
	return out
}

// replaced is w with every place that holds what replaced by item.
func replaced(w grammar.Word, what string, item grammar.Word) grammar.Word {
	before, after, found := strings.Cut(w.Text, what)
	switch {
	case !found:
		return w
	case item.Literal():
		w.Text = strings.ReplaceAll(w.Text, what, item.Text)
		return w
	}
	out := grammar.Word{Text: before, Vague: item.Vague}
	if before == "" && w.Literal() && !strings.Contains(after, "..") && !strings.Contains(after, what) {
		out.Below = item.Below
	}
	return out
}

// items are the words that xargs reads: known when its input is, and nothing
// in it is quoted.
func (r *reader) items(cmd Command, lines bool) []grammar.Word {
	unknown := []grammar.Word{{Vague: "what standard input says", Split: true}}
	for _, w := range cmd.Words[1:] {
		if !w.Literal() || strings.HasPrefix(w.Text, "-a") || strings.HasPrefix(w.Text, "--arg-file") {
			return unknown
		}
	}
	text := cmd.Stdin.Text.Text
	switch {
	case cmd.Stdin.From == Pipe && cmd.Stdin.Command >= 0:
		if below := r.below(cmd.Stdin.Command); below != nil {
			return []grammar.Word{{Vague: "paths that a search finds", Split: true, Below: below}}
		}
		return unknown
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
	words := make([]grammar.Word, len(list))
	for i, s := range list {
		words[i].Text = strings.TrimLeft(s, " \t")
	}
	return words
}

// delimited reports whether xargs may separate its items by something other
// than white space: -0, -d, -E and the like. Any flag is taken for one but
// those that are known not to.
func delimited(words []grammar.Word) bool {
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

// finders print paths, one a line, when they have one of these flags. An
// empty list means always.
var finders = map[string]string{"find": "", "fd": "", "rg": "lL", "grep": "lL", "ls": ""}

// filters pass lines on as they are.
var filters = grammar.NewWordSet("grep egrep fgrep sort head tail uniq tac shuf")

// below are the directories in which the paths lie that a command prints, nil
// when that is not known.
func (r *reader) below(i int) []string {
	c := r.line.Commands[i]
	if len(c.Words) == 0 { // assignments or redirections, which print nothing
		return nil
	}
	name := c.Words[0].Text
	for _, w := range c.Words {
		if !w.Literal() {
			return nil
		}
	}
	if filters.Has(name) && c.Stdin.From == Pipe && c.Stdin.Command >= 0 && c.Stdin.Command < i && !shows(c.Words, "oncbH") {
		return r.below(c.Stdin.Command)
	}
	flags, ok := finders[name]
	switch {
	case name == "git":
		if len(c.Words) < 2 || c.Words[1].Text != "ls-files" {
			return nil
		}
	case !ok, flags != "" && !shows(c.Words, flags) && !files(c.Words), c.Unproven != "", len(c.Meaning.Nested) > 0:
		return nil
	case name == "ls" && shows(c.Words, "lsigon"), name == "find" && printing(c.Words):
		return nil
	}
	out := slices.Clone(c.Meaning.Finds)
	for _, claim := range c.Meaning.Claims {
		if claim.Verb == grammar.Look || claim.Verb == grammar.Read || claim.Verb == grammar.ReadTree {
			out = append(out, claim.Value.Text)
		}
	}
	if len(out) == len(c.Meaning.Finds) || name == "ls" || name == "git" {
		out = append(out, ".")
	}
	return out
}

// shows reports whether a bundle of one-letter flags holds one of letters.
func shows(words []grammar.Word, letters string) bool {
	for _, w := range words[1:] {
		if len(w.Text) > 1 && w.Text[0] == '-' && w.Text[1] != '-' && strings.ContainsAny(w.Text[1:], letters) {
			return true
		}
	}
	return false
}

func files(words []grammar.Word) bool {
	for _, w := range words {
		if w.Text == "--files" || strings.HasPrefix(w.Text, "--files-with") {
			return true
		}
	}
	return false
}

// printing reports whether find prints more than paths.
func printing(words []grammar.Word) bool {
	for _, w := range words {
		if w.Text == "-printf" || w.Text == "-ls" {
			return true
		}
	}
	return false
}

// shellText follows the script of sh -c and the like.
func (r *reader) shellText(n grammar.Nested, cmd Command, st state) {
	if !n.Script.Literal() {
		r.record(Opaque{Reason: "a script that is not known", Text: escape(n.Script.Text), Offset: cmd.Offset})
		return
	}
	zero, params := grammar.Word{Vague: "the name of the shell"}, n.Params
	if len(params) > 0 && !params[0].Split && !params[0].Glob {
		zero, params = params[0], params[1:]
	}
	st.setParams(zero, params)
	r.scripts(path.Base(cmd.Words[0].Text), n.Script.Text, cmd, st)
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
		r.record(Opaque{Reason: name + " is a shell of another language", Text: escape(text), Offset: cmd.Offset})
	}
	var before []Command
	for i, d := range list {
		commands, opaque := len(r.line.Commands), len(r.line.Opaque)
		r.script(text, d, cmd.Offset, st)
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
func (r *reader) script(text string, d Dialect, offset int, st state) (yes, no state) {
	reason, _ := suspicious(text)
	var file *syntax.File
	if reason == "" {
		var err error
		if file, err = parse(text, d); err != nil {
			reason = "a script that can't be parsed: " + err.Error()
		}
	}
	if reason != "" {
		r.record(Opaque{Reason: reason, Text: escape(text), Offset: offset})
		return st, st
	}
	outer := *r
	r.source, r.offset, r.context.Shell = text, offset, d
	yes, no = r.list(file.Stmts, st)
	r.source, r.offset, r.context.Shell = outer.source, outer.offset, outer.context.Shell
	return yes, no
}
