package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// maxSimple bounds a line that is read without the parser, in bytes.
const maxSimple = 512

// leaders are first words that make a line more than a command and its words, in any
// dialect.
var leaders = NewWordSet("if then else elif fi for while until do done case esac select in function time coproc declare local export readonly typeset nameref let")

// A quick reads the most common lines: commands of plain and quoted words with one space
// between them, joined by && || | and ;, with redirections behind the words. It makes
// the tree and the text that the parser and the printer make (FuzzSimple).
type quick struct {
	source string
	at     int
	out    []byte // what is printed so far, where it is not the source
	done   int    // how much of the source that stands for

	parts [10]syntax.WordPart
	lits  [10]syntax.Lit
	words [10]syntax.Word
	args  [10]*syntax.Word
	nPart int
	nWord int
	free  []*syntax.Word
	stmts [1]*syntax.Stmt
	calls [2]callNode
	nCall int
	joins [1]joinNode
	nJoin int
}

// A callNode holds the nodes of a command together.
type callNode struct {
	stmt syntax.Stmt
	expr syntax.CallExpr
}

// A joinNode holds the nodes of two statements that are joined.
type joinNode struct {
	stmt syntax.Stmt
	cmd  syntax.BinaryCmd
}

// read returns the statements of such a line and its canonical text; nil for any other. It
// is called once. The statements lie in q.
func (q *quick) read(source string) (stmts []*syntax.Stmt, canonical string) {
	if source == "" || len(source) > maxSimple {
		return nil, ""
	}
	q.source = source
	q.free, stmts = q.args[:0], q.stmts[:0]
	for {
		s := q.list()
		if s == nil {
			return nil, ""
		}
		stmts = append(stmts, s)
		if q.at == len(source) {
			break
		}
		if s.Semicolon = at(q.at); !q.eat("; ") {
			return nil, ""
		}
		q.print(q.at-2, "\n")
	}
	if q.done == 0 {
		return stmts, source
	}
	return stmts, string(append(q.out, source[q.done:]...))
}

func at(offset int) syntax.Pos { return syntax.NewPos(uint(offset), 1, uint(offset)+1) }

// eat takes a text that comes next.
func (q *quick) eat(text string) bool {
	ok := strings.HasPrefix(q.source[q.at:], text)
	if ok {
		q.at += len(text)
	}
	return ok
}

// print has text printed in place of the source from an offset to here.
func (q *quick) print(from int, text string) {
	q.out = append(append(q.out, q.source[q.done:from]...), text...)
	q.done = q.at
}

// list reads pipelines that && and || join. Both bind alike, the left first.
func (q *quick) list() *syntax.Stmt {
	s := q.pipeline()
	for s != nil {
		op, from := syntax.AndStmt, q.at+1
		if !q.eat(" && ") {
			if op = syntax.OrStmt; !q.eat(" || ") {
				break
			}
		}
		s = q.chained(s, op, from, q.pipeline())
	}
	return s
}

func (q *quick) pipeline() *syntax.Stmt {
	s := q.command()
	for s != nil {
		from := q.at + 1
		if !q.eat(" | ") {
			break
		}
		s = q.chained(s, syntax.Pipe, from, q.command())
	}
	return s
}

func (q *quick) chained(x *syntax.Stmt, op syntax.BinCmdOperator, from int, y *syntax.Stmt) *syntax.Stmt {
	if y == nil {
		return nil
	}
	j := next(q.joins[:], &q.nJoin)
	j.cmd = syntax.BinaryCmd{OpPos: at(from), Op: op, X: x, Y: y}
	j.stmt.Position, j.stmt.Cmd = x.Position, &j.cmd
	return &j.stmt
}

// next is the next of a few nodes that are there, or one that is made.
func next[T any](few []T, used *int) *T {
	if *used == len(few) {
		return new(T)
	}
	*used++
	return &few[*used-1]
}

// command reads words, and then redirections.
func (q *quick) command() *syntax.Stmt {
	c := next(q.calls[:], &q.nCall)
	c.stmt.Position, c.stmt.Cmd = at(q.at), &c.expr
	args := q.free
	for first := true; ; first = false {
		switch {
		case !first && q.redirects():
			x := q.redirect()
			if x == nil {
				return nil
			}
			c.stmt.Redirs = append(c.stmt.Redirs, x)
		case c.stmt.Redirs != nil:
			return nil // a word behind a redirection
		default:
			w := q.word()
			if w == nil || first && !leads(w) {
				return nil
			}
			args = append(args, w)
		}
		if rest := q.source[q.at:]; len(rest) < 3 || rest[0] != ' ' || rest[1] == '|' || rest[1] == '&' {
			if len(rest) == 2 && rest[0] == ' ' { // a word of one letter
				q.at++
				continue
			}
			break
		}
		q.at++
	}
	q.free = args[len(args):]
	c.expr.Args = args[:len(args):len(args)]
	return &c.stmt
}

// leads reports whether a word can be a command's name, and nothing else.
func leads(w *syntax.Word) bool {
	lit, ok := w.Parts[0].(*syntax.Lit)
	return ok && strings.IndexByte(lit.Value, '=') < 0 && (len(w.Parts) > 1 || !leaders.Has(lit.Value))
}

// redirects reports whether a redirection comes next.
func (q *quick) redirects() bool {
	rest := q.source[q.at:]
	if len(rest) > 1 && rest[0] >= '0' && rest[0] <= '9' {
		rest = rest[1:]
	}
	return rest != "" && (rest[0] == '>' || rest[0] == '<')
}

func (q *quick) redirect() *syntax.Redirect {
	x := &syntax.Redirect{}
	if c := q.source[q.at]; c != '>' && c != '<' {
		x.N = &syntax.Lit{ValuePos: at(q.at), ValueEnd: at(q.at + 1), Value: q.source[q.at : q.at+1]}
		q.at++
	}
	x.OpPos = at(q.at)
	switch {
	case q.eat(">&1"), q.eat(">&2"):
		x.Op = syntax.DplOut
		q.at--
	case q.eat(">>"):
		x.Op = syntax.AppOut
	case q.eat(">"):
		x.Op = syntax.RdrOut
	case q.eat("<"):
		x.Op = syntax.RdrIn
	}
	if x.Op != syntax.DplOut && q.eat(" ") {
		q.print(q.at-1, "")
	}
	if x.Word = q.word(); x.Word == nil {
		return nil
	}
	return x
}

// word reads one word; nil where a character could mean something.
func (q *quick) word() *syntax.Word {
	if q.nWord == len(q.words) {
		return nil
	}
	w := &q.words[q.nWord]
	q.nWord++
	from := q.nPart
	for q.at < len(q.source) && q.source[q.at] != ' ' && q.source[q.at] != ';' {
		if q.nPart == len(q.parts) || !q.part(q.nPart) {
			return nil
		}
		q.nPart++
	}
	if w.Parts = q.parts[from:q.nPart:q.nPart]; len(w.Parts) == 0 {
		return nil
	}
	return w
}

// part reads what stands quoted, or plain, into the n-th part.
func (q *quick) part(n int) bool {
	start, lit := q.at, &q.lits[n]
	switch quote := q.source[q.at]; quote {
	case '\'', '"':
		i := strings.IndexByte(q.source[q.at+1:], quote)
		if i < 0 {
			return false
		}
		text, end := q.source[start+1:start+1+i], start+1+i
		for j := range len(text) {
			if c := text[j]; c < ' ' || c > '~' || quote == '"' && strings.IndexByte("$`\\!", c) >= 0 {
				return false
			}
		}
		if q.at = end + 1; quote == '\'' {
			q.parts[n] = &syntax.SglQuoted{Left: at(start), Right: at(end), Value: text}
			return true
		}
		d := &syntax.DblQuoted{Left: at(start), Right: at(end)}
		if *lit = (syntax.Lit{ValuePos: at(start + 1), ValueEnd: at(end), Value: text}); text != "" {
			d.Parts = []syntax.WordPart{lit}
		}
		q.parts[n] = d
		return true
	}
	for q.at < len(q.source) && plainCharacters[q.source[q.at]] {
		q.at++
	}
	*lit = syntax.Lit{ValuePos: at(start), ValueEnd: at(q.at), Value: q.source[start:q.at]}
	q.parts[n] = lit
	return q.at > start
}

// plainCharacters mean nothing to any shell, wherever they stand.
var plainCharacters = func() (set [256]bool) {
	for _, c := range []byte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:,+@%") {
		set[c] = true
	}
	return set
}()
