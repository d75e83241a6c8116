package around

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A Line is a command, and the agent's words around it that are not judged: they
// only give the command empty input and record its shell's final directory.
type Line struct {
	Command string
	null    bool     // it reads /dev/null
	after   []string // statements that follow if it succeeds
}

// Around puts the agent's words around a command again.
func (l Line) Around(command string) string {
	if !l.null && len(l.after) == 0 {
		return command
	}
	out := "{\n" + command + "\n}"
	if l.null {
		out += " < /dev/null"
	}
	for _, s := range l.after {
		out += " && " + s
	}
	return out
}

// Without takes words of an agent's own (Claude Code, Gemini CLI) away from a line,
// and says whether it has any. The command is for the policy to judge. What goes for
// good is an earlier shell's functions and options, and the numbers of processes in
// the background; the rest is in the Line. It differs each time, so nothing that is
// remembered of a command may hold it.
func Without(text string) (Line, bool) {
	if !strings.Contains(text, "eval ") && !strings.Contains(text, "_bgpids_file=") && !strings.HasPrefix(text, snapshotVariable) {
		return Line{}, false
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		return Line{}, false
	}
	if takesSnapshot(file) {
		return Line{Command: ":"}, true
	}
	if command, ok := ofGemini(file, text); ok {
		return Line{Command: command}, true
	}
	return ofClaude(file, text)
}

// ofClaude finds the command as the text that is evaluated. As a group it has the
// same input and the same effects on the shell.
func ofClaude(file *syntax.File, text string) (l Line, ok bool) {
	if _, l.Command, ok = Evaluated(file); !ok {
		return Line{}, false
	}
	after := false
	for _, p := range chain(file.Stmts[0]) {
		s := p.Stmt
		switch words := Words(s); {
		case len(words) == 2 && words[0] == "eval":
			after, l.null = true, len(s.Redirs) > 0
		case after:
			l.after = append(l.after, source(s, text))
		}
	}
	return l, true
}

// snapshotVariable begins the script by which Claude Code keeps its user's shell.
const snapshotVariable = "SNAPSHOT_FILE="

// takesSnapshot reports whether a text is that script. It is for the agent's own
// shell, which has the user's. It is not executed, and Claude Code goes on
// without a snapshot.
func takesSnapshot(file *syntax.File) bool {
	if len(file.Stmts) < 2 || !assigns(file.Stmts[0], strings.TrimSuffix(snapshotVariable, "=")) {
		return false
	}
	name, ok := literal(file.Stmts[0].Cmd.(*syntax.CallExpr).Assigns[0].Value)
	return ok && isSnapshot(name)
}

// ofGemini finds the command in
//
//	shopt -u …; _bgpids_file='FILE'
//	(
//	  trap 'jobs -p > "$_bgpids_file"' EXIT
//	COMMAND
//	)
//	__code=$?
//	exit $__code
func ofGemini(file *syntax.File, text string) (string, bool) {
	list := file.Stmts
	if len(list) > 0 && isShopt(list[0]) {
		list = list[1:]
	}
	if len(list) != 4 || !assigns(list[0], "_bgpids_file") || source(list[2], text) != "__code=$?" || source(list[3], text) != "exit $__code" {
		return "", false
	}
	sub, is := list[1].Cmd.(*syntax.Subshell)
	if !is || !Plain(list[1]) || len(sub.Stmts) < 2 || source(sub.Stmts[0], text) != `trap 'jobs -p > "$_bgpids_file"' EXIT` {
		return "", false
	}
	command := text[sub.Stmts[0].End().Offset():sub.Rparen.Offset()]
	return strings.TrimSpace(command), true
}

// isShopt reports whether a statement takes options of bash back.
func isShopt(s *syntax.Stmt) bool {
	words := Words(s)
	return Plain(s) && len(words) > 2 && words[0] == "shopt" && words[1] == "-u"
}

// assigns reports whether a statement sets one variable, to a known value.
func assigns(s *syntax.Stmt, name string) bool {
	call, is := s.Cmd.(*syntax.CallExpr)
	if !is || !Plain(s) || len(call.Args) > 0 || len(call.Assigns) != 1 {
		return false
	}
	a := call.Assigns[0]
	if a.Append || a.Naked || a.Index != nil || a.Array != nil || a.Value == nil || a.Name.Value != name {
		return false
	}
	_, ok := literal(a.Value)
	return ok
}

// source is what a statement is in the text.
func source(s *syntax.Stmt, text string) string {
	return text[s.Pos().Offset():min(s.End().Offset(), uint(len(text)))]
}
