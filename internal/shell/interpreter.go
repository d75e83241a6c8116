package shell

import (
	"path"
	"strings"
)

// An interpreter runs what it reads when its words name no program.
type interpreter struct {
	shell  bool
	given  string // flags after which it reads no program from standard input
	valued string // one-letter flags that take a value
	always bool   // reads commands from standard input even with operands
}

var interpreters = map[string]interpreter{
	"sh": {true, "c", "oO", false}, "bash": {true, "c", "oO", false}, "dash": {true, "c", "o", false}, "ash": {true, "c", "o", false},
	"zsh": {true, "c", "o", false}, "ksh": {true, "c", "o", false}, "mksh": {true, "c", "o", false}, "rbash": {true, "c", "oO", false},
	"fish": {true, "c", "C", false}, "csh": {true, "c", "", false}, "tcsh": {true, "c", "", false}, "nu": {true, "c", "", false},
	"pwsh": {true, "cCfF", "", false}, "xonsh": {true, "c", "", false}, "busybox": {}, "toybox": {},
	"python": {false, "cmVh", "WX", false}, "pypy": {false, "cmVh", "WX", false}, "perl": {false, "eEvVh", "", false},
	"ruby": {false, "evh", "rIEC", false}, "node": {false, "epvh", "rC", false}, "nodejs": {false, "epvh", "rC", false},
	"deno": {}, "bun": {}, "php": {false, "rvhim", "dc", false}, "lua": {false, "ev", "l", false}, "luajit": {false, "ev", "l", false},
	"tclsh": {}, "wish": {}, "expect": {false, "c", "", false}, "osascript": {false, "e", "l", false}, "Rscript": {false, "e", "", false},
	"R": {false, "ef", "", true}, "ghci": {}, "irb": {}, "guile": {false, "cev", "", false}, "scheme": {}, "sbcl": {},
	"julia": {false, "eEvh", "", false}, "elixir": {false, "ev", "", false}, "erl": {}, "gdb": {always: true}, "lldb": {always: true},
	"sqlite3": {always: true}, "psql": {given: "cfVl", always: true}, "mysql": {given: "eV", always: true}, "mariadb": {given: "eV", always: true},
	"mongosh": {always: true}, "redis-cli": {always: true}, "ed": {always: true}, "ex": {always: true}, "vi": {always: true}, "vim": {always: true},
	"at": {given: "lrdcV", always: true}, "batch": {always: true}, "parallel": {always: true}, "ftp": {always: true}, "sftp": {always: true},
	"ssh": {given: "V", always: true}, "telnet": {always: true}, "crontab": {given: "lr", always: true}, "su": {given: "c", always: true},
}

// interpreterOf finds an interpreter by its name, with or without a version.
func interpreterOf(name string) (interpreter, bool) {
	if it, ok := interpreters[name]; ok {
		return it, true
	}
	it, ok := interpreters[strings.TrimRight(name, "0123456789.-")]
	return it, ok
}

// interpreter makes a command opaque that runs what it reads, unless it is a
// shell and the text is known: that is read too.
func (r *reader) interpreter(cmd Command, st *state) {
	name := path.Base(cmd.Words[0].Text)
	it, ok := interpreterOf(name)
	if !ok {
		if programFromInput(cmd.Words) {
			r.record(Opaque{Reason: name + " runs what it reads", Text: escape(name)})
		}
		return
	}
	rest, reads := it.reads(cmd.Words[1:])
	if it.always && cmd.Stdin.From == Inherited || !reads {
		return
	}
	if it.shell && cmd.Stdin.From == Text && len(cmd.Via) <= MaxDepth && rest != nil {
		r.into(name, cmd, func() {
			inner := r.environment(nested{}, cmd, *st)
			inner.stdin = Stdin{From: File, Command: -1}
			inner.setParams(rest[0], rest[1:])
			r.scripts(name, cmd.Stdin.Text.Text, cmd, inner)
		})
		return
	}
	r.record(Opaque{Reason: name + " runs what it reads", Text: escape(name)})
}

// reads reports whether words make it run what it reads, and with which
// parameters: nil when that is not certain.
func (it interpreter) reads(words []Word) (params []Word, reads bool) {
	params = []Word{{Vague: "the name of the shell"}}
	for i := 0; i < len(words); i++ {
		w := words[i]
		switch {
		case inputName(w), w.Split:
			return nil, true // a word that may be empty leaves it with its input
		case !strings.HasPrefix(w.Text, "-") && !strings.HasPrefix(w.Text, "+"), !w.Literal():
			if it.always {
				continue
			}
			return nil, len(w.Below) > 0 && w.Below[0] == "/dev/fd"
		case w.Text == "-s" && it.shell:
			return append(params, words[i+1:]...), true
		case strings.HasPrefix(w.Text, "--"):
			if w.Text == "--version" || w.Text == "--help" || w.Text == "--eval" || w.Text == "--command" || w.Text == "--print" {
				return nil, false
			}
			params = nil
		case strings.ContainsAny(w.Text[1:], it.given):
			return nil, false
		case strings.ContainsAny(w.Text[len(w.Text)-1:], it.valued):
			i++
			params = nil
		case strings.Trim(w.Text[1:], "eux") != "":
			params = nil
		}
	}
	return params, true
}

// inputName reports whether a word names standard input, or a descriptor.
func inputName(w Word) bool {
	return w.Literal() && (w.Text == "-" || strings.HasPrefix(w.Text, "/dev/stdin") || strings.HasPrefix(w.Text, "/dev/fd/") ||
		strings.HasPrefix(w.Text, "/proc/self/fd/"))
}

// programFromInput reports whether a program reads its program by -f from
// standard input.
func programFromInput(words []Word) bool {
	switch path.Base(words[0].Text) {
	case "awk", "gawk", "mawk", "nawk", "sed", "gsed", "make", "gmake", "bc", "dc", "jq":
	default:
		return false
	}
	for i, w := range words[1:] {
		if inputName(w) && (words[i].Text == "-f" || strings.HasPrefix(words[i].Text, "--f")) {
			return true
		}
		if flag, value, ok := strings.Cut(w.Text, "="); ok && strings.HasPrefix(flag, "--f") && inputName(Word{Text: value}) || w.Text == "-f-" {
			return true
		}
	}
	return false
}
