package shell

import (
	"errors"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// errComment says that the rest of a line may be no comment.
var errComment = errors.New(`a "#" in a word could be taken for a comment`)

// checkComments requires every "#" of a source to be within a word of its tree,
// or to begin a comment where every shell begins one: where a word could begin
// (POSIX.1-2024, Shell Command Language, 2.3 Token Recognition). Behind a
// quotation or an expansion the parser takes "$HOME#x" for a comment as soon as
// it stands within parentheses, and what follows on the line would run unseen.
func checkComments(source string, file *syntax.File) error {
	if !strings.Contains(source, "#") {
		return nil
	}
	inWord, backquotes := marks(source, file)
	for at := 0; at < len(source); at++ {
		switch {
		case source[at] != '#' || inWord[at]:
			continue
		case backquotes || !beginsWord(source, at): // within backquotes a comment ends with them
			return errComment
		}
		end := strings.IndexByte(source[at:], '\n')
		if end < 0 {
			return nil
		}
		at += end
	}
	return nil
}

// marks tells which bytes of a source are words by themselves, and not what is
// nested in them, and whether there are backquotes.
func marks(source string, file *syntax.File) (inWord []bool, backquotes bool) {
	inWord = make([]bool, len(source))
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Lit, *syntax.SglQuoted:
			mark(inWord, n.Pos(), n.End())
		case *syntax.ParamExp:
			mark(inWord, n.Pos(), operator(n))
		case *syntax.CmdSubst:
			backquotes = backquotes || n.Backquotes
		}
		return true
	})
	return inWord, backquotes
}

func mark(bytes []bool, from, to syntax.Pos) {
	for i := from.Offset(); i < min(to.Offset(), uint(len(bytes))); i++ {
		bytes[i] = true
	}
}

// operator is where a parameter expansion's own characters end and the first of
// what is nested in it begins.
func operator(n *syntax.ParamExp) syntax.Pos {
	end := n.End()
	first := func(inner syntax.Node) {
		if pos := inner.Pos(); pos.IsValid() && end.After(pos) {
			end = pos
		}
	}
	if n.Index != nil {
		first(n.Index)
	}
	if n.Slice != nil && n.Slice.Offset != nil {
		first(n.Slice.Offset)
	}
	if n.Repl != nil && n.Repl.Orig != nil {
		first(n.Repl.Orig)
	}
	if n.Exp != nil && n.Exp.Word != nil {
		first(n.Exp.Word)
	}
	return end
}

// beginsWord reports whether a word could begin at a place of a source for certain:
// at its start, or behind a blank or an operator that is not escaped. A ")" may end
// an expansion, and so does not count.
func beginsWord(source string, at int) bool {
	if at == 0 {
		return true
	}
	return strings.IndexByte(" \t\n;&|(", source[at-1]) >= 0 && (at == 1 || source[at-2] != '\\')
}
