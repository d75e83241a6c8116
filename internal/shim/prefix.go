//go:build linux || darwin

package shim

import (
	"cmp"
	"context"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"mvdan.cc/sh/v3/syntax"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/hook"
	"github.com/bawn-dev/bawn/internal/intent"
	"github.com/bawn-dev/bawn/internal/shell/around"
)

// PrefixName is the name under which this program starts the commands of an
// agent that puts a program in front of them.
const PrefixName = "bawn-prefix"

// prefixShell reads lines as they are judged.
const prefixShell = "/bin/bash"

// PrefixCall returns the command line that this program is to start where it
// was shown to the guest as PrefixName and called with one argument. The words
// of other calls are bawn's own.
func PrefixCall(argv []string) (line string, ok bool) {
	if len(argv) != 2 {
		return "", false
	}
	self, err := os.Executable()
	if err != nil || path.Base(self) != PrefixName {
		return "", false
	}
	return argv[1], true
}

// Prefix has a command line judged at the session socket and becomes the
// shell that runs exactly what was judged. It returns where that is denied, or
// fails: nothing has run then.
//
// Claude Code starts so what its Bash tool runs, but also its hooks and the MCP
// servers of its settings. The agent puts its own words around a tool's
// command, which restore its shell's settings and directory. They are left
// unchanged, and the command is judged. A line that calls Bawn's hook is not
// judged: it is who judges.
func Prefix(line string, environ []string) int { return prefix(line, environ, Socket, execute) }

// execute becomes the shell.
func execute(argv, environ []string) error { return syscall.Exec(prefixShell, argv, environ) }

func prefix(line string, environ []string, socket string, run func(argv, environ []string) error) int {
	s := &front{name: "bawn"}
	text, env, code := s.approved(line, socket)
	if code != 0 {
		return code
	}
	err := run([]string{"bash", "-c", text}, with(environ, env))
	s.say("error: " + prefixShell + ": " + err.Error())
	return codeDenied
}

// approved returns what may run in place of line, with the variables that it
// needs.
func (s *front) approved(line, socket string) (text string, env []string, code int) {
	w, err := unwrap(line)
	if err != nil {
		s.say("denied: the command can't be read: " + err.Error())
		return "", nil, codeDenied
	}
	if w.hook {
		return w.text(""), nil, 0
	}
	dir, err := directory()
	if err != nil {
		return "", nil, s.usage(err)
	}
	v, err := judge(context.Background(), intent.Judge{
		Agent: "claude", Tool: "shell prefix", Dir: dir, Mayask: true, Contained: true,
		Actions: []intent.Act{{Kind: bawn.Command.String(), Operation: bawn.Exec.String(), Resource: w.command}},
	}, socket)
	switch {
	case err != nil:
		s.say("denied: " + err.Error())
		return "", nil, codeDenied
	case v.Verdict != bawn.Allow.String() || v.Canonical == "":
		refused(&intent.Refusal{Rule: v.Rule, Reason: cmp.Or(v.Reason, "the session socket has judged another thing"), Remedy: v.Remedy})
		return "", nil, codeDenied
	}
	return w.text(v.Canonical), v.Env, 0
}

// with sets further variables, which win.
func with(environ, more []string) []string {
	out := slices.Clone(environ)
	for _, kv := range more {
		name, _, _ := strings.Cut(kv, "=")
		out = slices.DeleteFunc(out, func(old string) bool { return strings.HasPrefix(old, name+"=") })
	}
	return append(out, more...)
}

// A wrapped line is one that an agent starts through its prefix.
type wrapped struct {
	file    *syntax.File
	eval    *syntax.Word // whose text is the command; nil where the whole line is
	command string
	hook    bool // it calls Bawn's own hook and nothing else
}

// text is the line with another command in it.
func (w *wrapped) text(command string) string {
	if w.eval == nil && !w.hook {
		return command
	}
	if w.eval != nil {
		w.eval.Parts = []syntax.WordPart{&syntax.Lit{Value: "'" + strings.ReplaceAll(command, "'", `'"'"'`) + "'"}}
	}
	var b strings.Builder
	if syntax.NewPrinter().Print(&b, w.file) != nil { // a strings.Builder takes everything
		return "exit 126"
	}
	return b.String()
}

// unwrap takes the agent's own words apart from the command.
func unwrap(line string) (*wrapped, error) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(line), "")
	if err != nil {
		return nil, err
	}
	w := &wrapped{file: file, command: line}
	if program, _ := ownHook(file, line); program != nil {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		program.Parts = []syntax.WordPart{&syntax.SglQuoted{Value: self}} // whichever bawn the line names
		w.hook = true
		return w, nil
	}
	if eval, command, ok := around.Evaluated(file); ok {
		w.eval, w.command = eval, command
	}
	return w, nil
}

// ownHook returns the program and the arguments of a line that is a call of
// Bawn's hook, alone or with the very words that say no where it fails.
func ownHook(file *syntax.File, line string) (program *syntax.Word, args []string) {
	if len(file.Stmts) != 1 {
		return nil, nil
	}
	s := file.Stmts[0]
	if b, is := s.Cmd.(*syntax.BinaryCmd); is && b.Op == syntax.OrStmt && around.Plain(s) {
		if strings.TrimSpace(line[b.X.End().Offset():]) != strings.TrimSpace(hook.OrDeny) {
			return nil, nil
		}
		s = b.X
	}
	words := around.Words(s)
	if len(words) < 3 || path.Base(words[0]) != "bawn" || words[1] != "hook" || !around.Plain(s) {
		return nil, nil
	}
	return s.Cmd.(*syntax.CallExpr).Args[0], words[1:]
}
