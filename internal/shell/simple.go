package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// maxSimple bounds the words of a line that is read without the parser.
const maxSimple = 8

// leaders are first words that make a line more than a command and its words, in any
// dialect.
var leaders = NewWordSet("if then else elif fi for while until do done case esac select in function time coproc declare local export readonly typeset nameref let")

// simple reads the most common line, a command with words of letters, digits and a few
// signs that mean nothing to a shell, with one space between them. It returns the tree
// that the parser makes, which is printed as the line itself; nil for any other line.
func simple(source string) []*syntax.Stmt {
	if !simpleText(source) {
		return nil
	}
	if strings.Count(source, " ") >= maxSimple {
		return nil
	}
	c := &simpleLine{}
	n := 0
	for from := 0; from <= len(source); n++ {
		end := len(source)
		if i := strings.IndexByte(source[from:], ' '); i >= 0 {
			end = from + i
		}
		text := source[from:end]
		if text == "" || n == 0 && (leaders.Has(text) || strings.IndexByte(text, '=') >= 0) {
			return nil
		}
		w := &c.words[n]
		w.lit = syntax.Lit{ValuePos: at(from), ValueEnd: at(end), Value: text}
		w.part[0] = &w.lit
		w.word.Parts = w.part[:]
		c.args[n] = &w.word
		from = end + 1
	}
	c.expr.Args = c.args[:n:n]
	c.stmt.Position, c.stmt.Cmd = at(0), &c.expr
	c.stmts[0] = &c.stmt
	return c.stmts[:]
}

// A simpleLine holds the nodes of a tree together.
type simpleLine struct {
	stmts [1]*syntax.Stmt
	stmt  syntax.Stmt
	expr  syntax.CallExpr
	args  [maxSimple]*syntax.Word
	words [maxSimple]struct {
		word syntax.Word
		lit  syntax.Lit
		part [1]syntax.WordPart
	}
}

func at(offset int) syntax.Pos { return syntax.NewPos(uint(offset), 1, uint(offset)+1) }

// simpleText reports whether a line has no character that could mean something.
func simpleText(source string) bool {
	if source == "" || len(source) > 512 {
		return false
	}
	for i := range len(source) {
		c := source[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte(" -_./=:,+@%", c) >= 0) {
			return false
		}
	}
	return true
}
