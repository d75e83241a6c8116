// Package around recognises the words that agents put around a command for a
// shell. They restore the settings of an earlier shell and record the final
// working directory.
package around

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Evaluated finds the command in a line such as
//
//	source SNAPSHOT 2>/dev/null || true && { …; } >/dev/null 2>&1 || true && eval 'COMMAND' < /dev/null && pwd -P >| FILE
//
// Every other part has to be of the agent's own, by its form.
func Evaluated(file *syntax.File) (eval *syntax.Word, command string, ok bool) {
	if len(file.Stmts) != 1 {
		return nil, "", false
	}
	for _, part := range chain(file.Stmts[0]) {
		stmt := part.Stmt
		words := Words(stmt)
		switch {
		case part.or && !slices.Equal(words, []string{"true"}): // it would not always run
			return nil, "", false
		case len(words) == 2 && words[0] == "eval" && eval == nil && redirected(stmt, "", "</dev/null"):
			eval, command = stmt.Cmd.(*syntax.CallExpr).Args[1], words[1]
		case !agentsOwn(stmt, words):
			return nil, "", false
		}
	}
	return eval, command, eval != nil
}

// A part of a list, and whether it stands behind ||.
type part struct {
	*syntax.Stmt
	or bool
}

// chain is a list that && and || join, in its order.
func chain(s *syntax.Stmt) []part {
	b, is := s.Cmd.(*syntax.BinaryCmd)
	if !is || b.Op != syntax.AndStmt && b.Op != syntax.OrStmt || len(s.Redirs) > 0 || s.Background || s.Negated {
		return []part{{Stmt: s}}
	}
	right := chain(b.Y)
	right[0].or = b.Op == syntax.OrStmt
	return append(chain(b.X), right...)
}

// agentsOwn reports whether a part of a line is one that Claude Code puts around
// commands.
func agentsOwn(s *syntax.Stmt, words []string) bool {
	if block, is := s.Cmd.(*syntax.Block); is {
		return redirected(s, "", ">/dev/null 2>&1") && !s.Background && !s.Coprocess && !s.Negated && !slices.ContainsFunc(block.Stmts, func(in *syntax.Stmt) bool {
			return slices.ContainsFunc(chain(in), func(p part) bool {
				return !Plain(p.Stmt) || !settles(Words(p.Stmt))
			})
		})
	}
	switch {
	case settles(words):
		return redirected(s, "", "2>/dev/null")
	case len(words) == 2 && words[0] == "source":
		return redirected(s, "", "2>/dev/null") && isSnapshot(words[1])
	case len(words) == 1 && words[0] == "true":
		return redirected(s, "")
	}
	return slices.Equal(words, []string{"pwd", "-P"}) && (redirected(s, "") || tellsDirectory(s))
}

// isSnapshot reports whether a file is one in which Claude Code keeps a shell.
func isSnapshot(file string) bool {
	dir, name := path.Split(file)
	return path.Clean(dir)+"/" == dir && path.Base(dir) == "shell-snapshots" && strings.HasPrefix(name, "snapshot-")
}

// settles reports whether words only take a shell's options, aliases and
// functions back.
func settles(words []string) bool {
	if len(words) < 3 || words[0] != `\builtin` {
		return false
	}
	switch words[1] {
	case "shopt":
		return words[2] == "-u"
	case "unset":
		return words[2] == "-f"
	case "setopt":
		return !slices.ContainsFunc(words[2:], func(w string) bool { return !strings.HasPrefix(w, "NO_") })
	}
	return words[1] == "unalias"
}

// tellsDirectory reports whether all that a statement writes is a file in which
// Claude Code finds the directory of its shell.
func tellsDirectory(s *syntax.Stmt) bool {
	if len(s.Redirs) != 1 || s.Redirs[0].Op != syntax.RdrClob || s.Redirs[0].N != nil {
		return false
	}
	file, ok := literal(s.Redirs[0].Word)
	name := path.Base(file)
	return ok && strings.HasPrefix(file, "/tmp/") && path.Clean(file) == file &&
		(strings.HasPrefix(name, "cwd-") || strings.HasPrefix(name, "claude-") && strings.HasSuffix(name, "-cwd"))
}

// redirected reports whether a statement's redirections are, in their order and
// to the letter, one of those.
func redirected(s *syntax.Stmt, forms ...string) bool {
	var list []string
	for _, r := range s.Redirs {
		to, ok := literal(r.Word)
		if !ok || r.Hdoc != nil {
			return false
		}
		form := r.Op.String() + to
		if r.N != nil {
			form = r.N.Value + form
		}
		list = append(list, form)
	}
	return slices.Contains(forms, strings.Join(list, " "))
}

// Words are the words of a plain call of which every one is known as it
// stands; nil for all else.
func Words(s *syntax.Stmt) (words []string) {
	call, is := s.Cmd.(*syntax.CallExpr)
	if !is || s.Background || s.Coprocess || s.Negated || len(call.Assigns) > 0 {
		return nil
	}
	for _, w := range call.Args {
		text, ok := literal(w)
		if !ok {
			return nil
		}
		words = append(words, text)
	}
	return words
}

// literal is the text of a word without expansions. A backslash outside of
// quotes stays, so that such a word is no other's.
func literal(w *syntax.Word) (string, bool) {
	var b strings.Builder
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			if strings.ContainsAny(p.Value, "*?[~{") && p.Value != "[" {
				return "", false
			}
			b.WriteString(p.Value)
		case *syntax.SglQuoted:
			if p.Dollar {
				return "", false
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			for _, in := range p.Parts {
				lit, is := in.(*syntax.Lit)
				if !is || strings.Contains(lit.Value, `\`) {
					return "", false
				}
				b.WriteString(lit.Value)
			}
		default:
			return "", false
		}
	}
	return b.String(), true
}

// Plain reports whether nothing is redirected, negated or in the background.
func Plain(s *syntax.Stmt) bool {
	return len(s.Redirs) == 0 && !s.Background && !s.Coprocess && !s.Negated
}
