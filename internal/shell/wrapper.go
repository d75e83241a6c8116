package shell

import (
	_ "embed"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A nested is a command that a command runs: an argv, or shell text.
type nested struct {
	args    []Word // of an argv
	text    Word   // of shell text
	script  bool   // text counts
	params  []Word // $0, $1 … of shell text
	env     []Word // NAME=VALUE that is set for it
	moves   bool   // it runs in another directory
	stdin   bool   // further words come from standard input (xargs)
	replace string // or take the place of this text in args (xargs -I, find's {})
}

// A wrapper is a program that runs another one.
type wrapper struct {
	subs    []string
	values  map[string]bool // flags that take a value
	scripts []string        // flags whose value is shell text
	before  int             // words before the command
	assigns bool            // and any number of NAME=VALUE
	runs    string          // "cmd", "script" or "-"
}

//go:embed wrappers.txt
var wrappersText string

// wrappers are the forms by the program's name.
var wrappers = sync.OnceValue(func() map[string][]wrapper {
	out := map[string][]wrapper{}
	for line := range strings.Lines(wrappersText) {
		if f := strings.Split(strings.TrimSpace(line), " | "); len(f) == 5 {
			for name := range strings.SplitSeq(f[0], ",") {
				words := strings.Fields(name)
				out[words[0]] = append(out[words[0]], wrapperOf(words[1:], f))
			}
		}
	}
	return out
})

func wrapperOf(subs, f []string) wrapper {
	w := wrapper{subs: subs, values: map[string]bool{}, assigns: f[3] == "=", runs: f[4]}
	for flag := range strings.FieldsSeq(f[1]) {
		w.values[flag] = flag != "-"
	}
	if f[2] != "-" {
		w.scripts = strings.Fields(f[2])
	}
	w.before, _ = strconv.Atoi(f[3]) // of "=" it is 0
	return w
}

// wrapped returns the commands that a command runs, as far as they are recognised.
func wrapped(words []Word) []nested {
	name := path.Base(words[0].Text)
	switch name {
	case "find", "gfind":
		return executed(words[1:], "-exec", "-execdir", "-ok", "-okdir")
	case "fd", "fdfind":
		return executed(words[1:], "-x", "-X", "--exec", "--exec-batch")
	}
	for _, w := range wrappers()[name] {
		if rest, ok := w.after(words[1:]); ok {
			return w.inner(name, rest)
		}
	}
	return nil
}

// after returns the words behind the subcommands.
func (w *wrapper) after(words []Word) ([]Word, bool) {
	for _, sub := range w.subs {
		if len(words) == 0 || !words[0].Literal() || words[0].Text != sub {
			return nil, false
		}
		words = words[1:]
	}
	return words, true
}

// executed finds what find and fd run.
func executed(words []Word, flags ...string) (out []nested) {
	for i := 0; i < len(words); i++ {
		if !words[i].Literal() || !slices.Contains(flags, words[i].Text) {
			continue
		}
		from := i + 1
		for i = from; i < len(words) && words[i].Text != ";" && words[i].Text != "+"; i++ {
		}
		if from < i {
			out = append(out, nested{args: words[from:i], replace: "{}"})
		}
	}
	return out
}

// inner finds the command behind a wrapper's own words.
func (w *wrapper) inner(name string, words []Word) []nested {
	n := nested{stdin: strings.HasSuffix(name, "xargs")}
	if text, rest, ok := w.scriptOf(words); ok {
		n.script, n.text, n.params = true, text, rest
		return []nested{n}
	}
	words = w.skip(&n, words)
	if w.runs == "-" || len(words) <= w.before {
		if n.stdin {
			return []nested{n} // xargs alone
		}
		return nil
	}
	words = words[w.before:]
	switch {
	case w.runs == "script" && name == "hyperfine":
		return scripts(words)
	case w.runs == "script":
		n.script, n.text = true, joined(words)
	default:
		n.args = words
	}
	return []nested{n}
}

// scripts are words of which each is a command line.
func scripts(words []Word) (out []nested) {
	for _, word := range words {
		if !strings.HasPrefix(word.Text, "-") {
			out = append(out, nested{script: true, text: word})
		}
	}
	return out
}

// joined is a text of words with blanks between them.
func joined(words []Word) Word {
	out := Word{}
	for i, w := range words {
		if !w.Literal() {
			return Word{Vague: "words that are not known"}
		}
		if i > 0 {
			out.Text += " "
		}
		out.Text += w.Text
	}
	return out
}

// scriptOf finds the value of a flag that holds shell text, and the words behind it.
func (w *wrapper) scriptOf(words []Word) (text Word, rest []Word, ok bool) {
	for i := 0; i < len(words) && words[i].Text != "--"; i++ {
		t := words[i].Text
		name, value, attached := strings.Cut(t, "=")
		for _, flag := range w.scripts {
			switch {
			case attached && name == flag:
				return Word{Text: value, Vague: words[i].Vague, Unset: words[i].Unset}, words[i+1:], true
			case t != flag && !bundled(t, flag):
			default:
				return w.firstOperand(words[i+1:])
			}
		}
		if w.values[t] {
			i++
		}
	}
	return Word{}, nil, false
}

// bundled reports whether a bundle of one-letter flags holds a flag.
func bundled(t, flag string) bool {
	return len(flag) == 2 && len(t) > 2 && t[0] == '-' && t[1] != '-' && strings.IndexByte(t[1:], flag[1]) >= 0
}

// firstOperand is the first word that is no flag: what "sh -c -e TEXT" runs.
func (w *wrapper) firstOperand(words []Word) (Word, []Word, bool) {
	for i := 0; i < len(words); i++ {
		t := words[i].Text
		switch {
		case t == "--" && i+1 < len(words):
			return words[i+1], words[i+2:], true
		case !strings.HasPrefix(t, "-") || !words[i].Literal():
			return words[i], words[i+1:], true
		case w.values[t]:
			i++
		}
	}
	return Word{}, nil, false
}

// skip takes a wrapper's own flags and assignments off.
func (w *wrapper) skip(n *nested, words []Word) []Word {
	for len(words) > 0 {
		t := words[0].Text
		switch {
		case t == "--":
			return words[1:]
		case len(t) > 1 && t[0] == '-':
			n.moves = n.moves || t == "-C" || strings.HasPrefix(t, "--chdir")
			if n.stdin && (t == "-I" || strings.HasPrefix(t, "-I") || strings.HasPrefix(t, "-i") || strings.HasPrefix(t, "--replace")) {
				n.replace = placeholder(words)
			}
			if w.values[t] && len(words) > 1 {
				words = words[1:]
			}
		case w.assigns && strings.Contains(t, "=") && !words[0].Glob:
			n.env = append(n.env, words[0])
		default:
			return words
		}
		words = words[1:]
	}
	return nil
}

// placeholder is the text that xargs replaces.
func placeholder(words []Word) string {
	t := words[0].Text
	switch {
	case t == "-I" && len(words) > 1:
		return words[1].Text
	case strings.HasPrefix(t, "--replace="):
		return t[len("--replace="):]
	case len(t) > 2 && t[1] != '-':
		return t[2:]
	}
	return "{}"
}
