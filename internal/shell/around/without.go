package around

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Without returns a line that does what text does, without words of an agent's
// own that a policy can't read (Claude Code, Gemini CLI), and whether it has any.
// What is left is for the policy to judge, all of it: of Claude Code's line the
// command and where its shell's directory is written to, of Gemini CLI's the
// command. What goes is what those words would have done: an earlier shell's
// functions and options, and the numbers of processes in the background.
func Without(text string) (string, bool) {
	if !strings.Contains(text, "eval ") && !strings.Contains(text, "_bgpids_file=") {
		return "", false
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		return "", false
	}
	if command, ok := ofGemini(file, text); ok {
		return command, true
	}
	return ofClaude(file, text)
}

// ofClaude writes the command as a group, which has the same input and the same
// effects on the shell as the text that is evaluated.
func ofClaude(file *syntax.File, text string) (string, bool) {
	_, command, ok := Evaluated(file)
	if !ok {
		return "", false
	}
	out, after := "", false
	for _, p := range chain(file.Stmts[0]) {
		s := p.Stmt
		switch words := Words(s); {
		case len(words) == 2 && words[0] == "eval":
			out, after = "{\n"+command+"\n}", true
			if len(s.Redirs) > 0 {
				out += " < /dev/null"
			}
		case after:
			out += " && " + source(s, text)
		}
	}
	return out, true
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
