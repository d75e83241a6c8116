//go:build linux || darwin

package sessionsocket

import (
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/executor"
	"github.com/bawn-dev/bawn/internal/intent"
	"github.com/bawn-dev/bawn/internal/shell"
	"github.com/bawn-dev/bawn/internal/shell/around"
	"github.com/bawn-dev/bawn/internal/shell/invocation"
)

// A line is an intent on its way to a command: its judged form, and how that is
// executed.
type line struct {
	call      invocation.Invocation
	statement bool
	text      string      // canonical, of a text that is judged by itself; "" where argv is
	action    bawn.Action // Kind, Operation, Resource, Args
	asked     string      // the guest's own text, where that is another
	around    around.Line // what its agent has put around the text
	shell     string      // the program
	ticket    string      // name of the ticket that it gets where it is allowed
}

// readLine reads the guest's command. The error is for the guest.
//
// A text without parameters is judged as a command line, and its canonical form
// is executed under a shell that reads it as it was judged. All else is judged,
// and executed, as an argv, in which a text is canonical too. Words that agents
// put around their commands are left away before a text is judged.
func readLine(x *intent.Exec, vars func(text string) variables) (*line, *refusal) {
	call, err := invocation.Parse(x.Argv)
	if err != nil {
		return nil, &refusal{RuleShell, err.Error(), "start other programs through a shell of the session: sh -c '…'"}
	}
	l := &line{call: call, statement: x.Statement, shell: "/bin/" + call.Shell}
	l.action = bawn.Action{Kind: bawn.Command, Operation: bawn.Exec}
	text := call.Text
	if call.Source == invocation.Text {
		if own, some := around.Without(text); some {
			l.around, text = own, own.Command
		}
		if text, err = shell.Canonical(text, shell.Bash); err != nil {
			return nil, &refusal{RuleText, err.Error(), "write it so that bash reads it, and long texts to a file in several commands"}
		}
		if text == "" {
			text = ":" // there is nothing to do; a comment, or blanks
		}
	}
	head := vars(text).head(text, x.Dir)
	switch {
	case l.statement && call.Source != invocation.Text:
		return nil, &refusal{RuleMessage, "a statement has no text", "speak the protocol of this version"}
	case call.Source == invocation.Text && (l.statement || l.plain()):
		l.asText(head + l.prefix() + text)
	default:
		l.asArgs(call.Argv(l.shell, head+l.around.Around(text)))
	}
	if call.Source == invocation.Text && call.Text != l.text {
		l.asked = call.Text
	}
	return l, nil
}

// plain reports whether a text means the same as a command line does: nothing
// gives it parameters, another language or other rules.
func (l *line) plain() bool {
	return len(l.call.Params) == 0 && !l.call.Odd && l.call.Shell != "zsh" && l.call.Shell != "ksh"
}

// prefix gives a statement the options and parameters of its shell.
func (l *line) prefix() string {
	if !l.statement {
		return ""
	}
	out := ""
	if o := l.call.Options; len(o) > 0 {
		out = "set " + quoted(o) + "\n"
	}
	if p := l.call.Params; len(p) > 0 {
		out += "set -- " + quoted(p) + "\n"
	}
	return out
}

func (l *line) asText(text string) {
	l.text, l.action.Resource = text, text
	if l.call.Shell != "bash" && !alike(text) {
		l.shell = "/bin/bash"
	}
}

func (l *line) asArgs(argv []string) {
	l.action.Args, l.action.Resource = argv, quoted(argv)
}

// alike reports whether a text runs the same commands under dash as it does
// under bash. Lines are judged as bash reads them.
func alike(text string) bool {
	a, b := shell.Read(text, shell.Context{}), shell.Read(text, shell.Context{Shell: shell.POSIX})
	return len(b.Opaque) == 0 && a.Canonical == b.Canonical && reflect.DeepEqual(a.Commands, b.Commands)
}

// argv is executed after the decision d.
func (l *line) argv(d bawn.Decision) []string {
	if l.text == "" {
		return l.action.Args
	}
	text := d.Canonical
	if text == "" {
		text = l.text // a human has allowed it, who saw this
	}
	text = l.around.Around(text)
	if l.statement {
		return executor.StatementArgv(l.shell, text)
	}
	call := l.call
	call.Shell = path.Base(l.shell)
	return append(call.Argv(l.shell, text), zero(l.call))
}

// zero is the $0 of the guest's shell, if it is a shell's name.
func zero(call invocation.Invocation) string {
	if slices.Contains([]string{"/bin/" + call.Shell, "/usr/bin/" + call.Shell}, call.Zero) {
		return call.Zero
	}
	return call.Shell
}

// quoted writes words as a shell reads them.
func quoted(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		q, err := syntax.Quote(w, syntax.LangBash)
		if err != nil {
			q = "''" // a NUL, which check has refused
		}
		out[i] = q
	}
	return strings.Join(out, " ")
}

// Variables are those that a command gets besides the zone's own: a policy
// takes unknown ones for empty.
type variables map[string]string

// head puts assignments before a text for the variables that it may use, so
// that it is judged with the values that it runs with: those it names, or all
// if it runs text that is only composed later.
func (v variables) head(text, dir string) string {
	if len(v) == 0 || text == "" {
		return ""
	}
	used := names(text)
	l := shell.Read(text, shell.Context{Dir: dir})
	all := len(l.Opaque) > 0 || slices.ContainsFunc(l.Commands, func(c shell.Command) bool { return len(c.Via) > 0 })
	var out []string
	for _, name := range slices.Sorted(maps.Keys(v)) {
		if used[name] || all {
			out = append(out, name+"="+v[name])
		}
	}
	if len(out) == 0 {
		return ""
	}
	return "export " + assignments(out) + "\n"
}

// names are the names that a text may use.
func names(text string) map[string]bool {
	used := map[string]bool{}
	for _, name := range strings.FieldsFunc(text, func(c rune) bool { return !inName(c) }) {
		used[strings.TrimLeft(name, "0123456789")] = true
	}
	return used
}

// assigned are the variables that a text sets in its own words.
func assigned(text string) map[string]bool {
	set := map[string]bool{}
	for _, c := range shell.Read(text, shell.Context{}).Commands {
		for _, a := range c.Assigns {
			set[a.Name] = true
		}
	}
	return set
}

func inName(c rune) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}

// isName reports whether a shell takes s for the name of a variable.
func isName(s string) bool {
	return s != "" && (s[0] < '0' || s[0] > '9') && !strings.ContainsFunc(s, func(c rune) bool { return !inName(c) })
}

// assignments writes NAME=value so that only the value is quoted.
func assignments(list []string) string {
	out := make([]string, len(list))
	for i, kv := range list {
		name, value, _ := strings.Cut(kv, "=")
		out[i] = name + "=" + quoted([]string{value})
	}
	return strings.Join(out, " ")
}

// known are variables of which the policy expects that their values are not
// known, or that only the zone itself sets.
var known = []string{
	"PATH", "HOME", "PWD", "OLDPWD", "SHLVL", "_", "SHELL", "USER", "LOGNAME", "HOSTNAME", "TMPDIR", "TERM", "LANG",
}
