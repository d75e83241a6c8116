package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// numeric reports whether a word is certainly a number.
func numeric(w Word) bool {
	return w.Vague == number && w.Text == "" || w.Literal() && digits(strings.TrimPrefix(w.Text, "-"))
}

// arithm reports whether an arithmetic expression computes with numbers only.
// Shells evaluate the values of variables as expressions again, and run the
// substitutions in them; so a variable counts only when it is certain to hold
// a number.
func (r *reader) arithm(x syntax.ArithmExpr, st *state) bool {
	switch x := x.(type) {
	case *syntax.Word:
		return r.operand(x, st)
	case *syntax.ParenArithm:
		return r.arithm(x.X, st)
	case *syntax.UnaryArithm:
		ok := r.arithm(x.X, st)
		if w, isName := x.X.(*syntax.Word); ok && isName && plainName(w.Lit()) && (x.Op == syntax.Inc || x.Op == syntax.Dec) {
			r.assignNumber(w.Lit(), st, x)
		}
		return ok
	case *syntax.BinaryArithm:
		name, isName := x.X.(*syntax.Word)
		if !isName || !setsArithm(x.Op) {
			left := r.arithm(x.X, st)
			return r.arithm(x.Y, st) && left
		}
		if !r.arithm(x.Y, st) || !plainName(name.Lit()) || x.Op != syntax.Assgn && !r.arithm(x.X, st) {
			return false
		}
		r.assignNumber(name.Lit(), st, x)
		return true
	}
	return x == nil
}

// assignNumber sets a variable to a number, or maybe does not: the operators
// && and ?: skip what they need not know. So it is a number for certain only
// if it was one before, or nothing.
func (r *reader) assignNumber(name string, st *state, n syntax.Node) {
	why := "set by arithmetic"
	if old := r.variable(st, name).word; numeric(old) || len(old.Unset) > 0 && old.Text == "" && old.Vague == "" {
		why = number
	}
	r.fillVariable(st, name, Word{Vague: why}, n)
}

// setsArithm reports whether an operator sets its left operand.
func setsArithm(op syntax.BinAritOperator) bool {
	s := op.String()
	return strings.HasSuffix(s, "=") && s != "==" && s != "!=" && s != "<=" && s != ">="
}

// operand judges one word of an expression.
func (r *reader) operand(w *syntax.Word, st *state) bool {
	if len(w.Parts) == 1 {
		if lit, ok := w.Parts[0].(*syntax.Lit); ok {
			if plainName(lit.Value) {
				return numeric(r.variable(st, lit.Value).word)
			}
			return constant(lit.Value)
		}
	}
	return numeric(r.single(w, st))
}

// constant accepts 10, 0x1f and 017.
func constant(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !(c >= '0' && c <= '9' || i > 0 && (c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' || i == 1 && c == 'x')) {
			return false
		}
	}
	return s != ""
}
