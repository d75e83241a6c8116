package shell

import (
	"mvdan.cc/sh/v3/syntax"
)

// testClause follows [[ … ]].
func (r *reader) testClause(c *syntax.TestClause, st *state) {
	cmd := Command{Stdin: st.stdin, Words: []Word{{Text: "[["}}}
	cmd.Builtin = true
	if severalElsewhere(c) {
		r.opaque("a test that is several commands, or writes a file, where [[ is not one of the shell's own words", c)
	}
	if !r.condition(c.X, &cmd, st) {
		r.opaque("a test can run what the values in it say", c)
	}
	r.add(cmd, st)
}

// severalElsewhere reports whether a shell that does not know [[, such as dash,
// takes the test for more than one command, or for one with a redirection.
func severalElsewhere(c *syntax.TestClause) (several bool) {
	syntax.Walk(c.X, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Word:
			return false // what is in it is followed by itself
		case *syntax.ParenTest:
			several = true
		case *syntax.BinaryTest:
			switch n.Op {
			case syntax.AndTest, syntax.OrTest, syntax.TsBefore, syntax.TsAfter:
				several = true
			}
		}
		return true
	})
	return several || c.Left.Line() != c.Right.Line()
}

// condition follows a condition, and reports whether it only compares texts
// and numbers and looks at files.
func (r *reader) condition(x syntax.TestExpr, cmd *Command, st *state) bool {
	switch x := x.(type) {
	case *syntax.Word:
		cmd.Words = append(cmd.Words, r.single(x, st))
		return true
	case *syntax.ParenTest:
		return r.condition(x.X, cmd, st)
	case *syntax.UnaryTest:
		cmd.Words = append(cmd.Words, Word{Text: x.Op.String()})
		ok := r.condition(x.X, cmd, st)
		return ok && x.Op != syntax.TsVarSet && x.Op != syntax.TsRefVar
	}
	b := x.(*syntax.BinaryTest) // there is no other
	at := len(cmd.Words)
	ok := r.condition(b.X, cmd, st)
	cmd.Words = append(cmd.Words, Word{Text: b.Op.String()})
	right := len(cmd.Words)
	ok = r.condition(b.Y, cmd, st) && ok
	return ok && r.compared(b.Op, cmd, at, right)
}

// compared reports whether a comparison evaluates nothing: numbers are
// evaluated, so both sides must be one.
func (r *reader) compared(op syntax.BinTestOperator, cmd *Command, left, right int) bool {
	switch op {
	case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
		return numeric(cmd.Words[left]) && numeric(cmd.Words[right])
	}
	return true
}
