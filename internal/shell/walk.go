package shell

import (
	"fmt"
	"slices"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// A reader walks the tree of a line, or of a script in it.
type reader struct {
	line    Line
	context Context
	source  string   // of the tree that is walked
	via     []string // what runs the commands
	depth   int
	loops   int
	beside  int            // background jobs around
	outputs map[int]string // texts that commands are known to print
	node    syntax.Node    // the simple command that is followed
	last    int            // index of the command that was followed last, -1 when it was no single one
	inline  []*syntax.Stmt // bodies of functions that are being followed
	over    bool           // a limit was met; nothing more is recorded

	room   *room // of the line, until a command lies in it
	quick  quick
	states [2]state // of calls within each other; those of deeper ones are made
	held   int      // of states
}

// A room holds together what most lines have.
type room struct {
	commands [1]Command
	dirs     [1]string
}

// readers are used again: a reader is larger than what most lines leave. Nothing of a
// Line lies in its reader.
var readers = sync.Pool{New: func() any { return new(reader) }}

func newReader(source string, c Context) *reader {
	r := readers.Get().(*reader)
	r.line, r.context, r.source = Line{Source: source}, c, source
	return r
}

// end returns what was read, and gives the reader back.
func (r *reader) end() Line {
	line := r.line
	*r = reader{}
	readers.Put(r)
	return line
}

func (r *reader) start() state {
	var st state
	if r.context.Dir != "" {
		r.room = &room{dirs: [1]string{r.context.Dir}}
		st.dirs = r.room.dirs[:]
	}
	return st
}

// opaque records that a part of the line is not understood.
func (r *reader) opaque(reason string, n syntax.Node) {
	from, to := n.Pos().Offset(), n.End().Offset()
	text := ""
	if from <= to && to <= uint(len(r.source)) {
		text = r.source[from:to]
	}
	r.record(Opaque{Reason: reason, Text: escape(text)})
}

func (r *reader) record(o Opaque) {
	if !r.over {
		r.line.Opaque = append(r.line.Opaque, o)
	}
}

// add records a command and returns its index, or -1 when there are too many.
func (r *reader) add(c Command, st *state) int {
	if len(r.line.Commands) >= MaxCommands {
		r.record(Opaque{Reason: fmt.Sprintf("it runs more than %d commands", MaxCommands)})
		r.over = true
	}
	if r.over {
		return -1
	}
	c.Dirs, c.Via = st.dirs, slices.Clone(r.via)
	c.Loop, c.Background = r.loops > 0, r.beside > 0
	if r.room != nil {
		r.line.Commands, r.room = r.room.commands[:0], nil
	}
	r.line.Commands = append(r.line.Commands, c)
	return len(r.line.Commands) - 1
}

// within follows what lies one level deeper, unless that is too deep.
func (r *reader) within(via string, n syntax.Node, f func()) {
	if r.depth >= MaxDepth {
		r.opaque(fmt.Sprintf("it is nested deeper than %d levels", MaxDepth), n)
		return
	}
	r.depth++
	if via != "" {
		r.via = append(r.via, via)
	}
	f()
	if via != "" {
		r.via = r.via[:len(r.via)-1]
	}
	r.depth--
}

// list follows statements in order and returns what is known after them when
// the last succeeded, and when it failed.
func (r *reader) list(stmts []*syntax.Stmt, st state) (yes, no state) {
	yes, no = st, st
	for i, s := range stmts {
		if r.over {
			break
		}
		if i > 0 {
			yes = join(yes, no)
		}
		yes, no = r.stmt(s, yes)
	}
	return yes, no
}

// stmt follows one statement.
func (r *reader) stmt(s *syntax.Stmt, st state) (yes, no state) {
	switch {
	case s.Coprocess, s.Disown:
		r.opaque("a coprocess", s)
	case s.Background:
		r.beside++
		r.plain(s, st)
		r.beside--
		return st, st
	}
	yes, no = r.plain(s, st)
	if s.Negated {
		yes, no = no, yes
	}
	return yes, no
}

// plain follows a statement with its redirections.
func (r *reader) plain(s *syntax.Stmt, st state) (yes, no state) {
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		return r.call(c, s, st)
	case *syntax.BinaryCmd:
		if len(s.Redirs) == 0 {
			return r.binary(c, st)
		}
	}
	return r.further(s, st)
}

// further follows a statement that is neither a simple command nor several that are joined.
func (r *reader) further(s *syntax.Stmt, st state) (yes, no state) {
	if s.Cmd == nil {
		cmd := Command{}
		cmd.Redirects = r.redirects(s.Redirs, &st)
		cmd.Stdin = st.stdin
		r.add(cmd, &st)
		return st, st
	}
	outer := st.stdin
	if len(s.Redirs) > 0 {
		cmd := Command{Stdin: st.stdin}
		cmd.Redirects = r.redirects(s.Redirs, &st)
		r.add(cmd, &st)
		st.stdin = shared(input(cmd.Redirects, st.stdin))
	}
	yes, no = r.compound(s, st)
	if len(s.Redirs) > 0 {
		yes.stdin, no.stdin = outer, outer
	}
	return yes, no
}

// shared is the input of several commands: how much of it each reads is not
// known.
func shared(in Stdin) Stdin {
	if in.From == Text {
		return Stdin{From: File}
	}
	return in
}

func (r *reader) compound(s *syntax.Stmt, st state) (yes, no state) {
	switch c := s.Cmd.(type) {
	case *syntax.Block:
		r.within("", c, func() { yes, no = r.list(c.Stmts, st) })
		return yes, no
	case *syntax.Subshell:
		r.fork("", c, c.Stmts, st)
		return st, st
	case *syntax.IfClause:
		r.within("", c, func() { yes, no = r.ifClause(c, st) })
		return yes, no
	case *syntax.WhileClause:
		return r.while(c, st)
	case *syntax.ForClause:
		return r.forClause(c, st)
	case *syntax.CaseClause:
		return r.caseClause(c, st)
	case *syntax.TimeClause:
		return r.timed(c, st)
	case *syntax.FuncDecl:
		r.function(c, &st)
	case *syntax.DeclClause:
		r.declare(c, &st)
	case *syntax.TestClause:
		r.testClause(c, &st)
	case *syntax.ArithmCmd:
		if !r.arithm(c.X, &st) {
			r.opaque("arithmetic can run what the values in it say", c)
		}
	case *syntax.LetClause:
		r.opaque("shells and parsers read let differently", c)
	default: // CoprocClause; TestDecl is of another language; no parser gives a BinaryCmd redirections
		r.opaque("shells and parsers read a coprocess differently", c)
	}
	return st, st
}

// fork follows statements that change nothing for what comes after.
func (r *reader) fork(via string, n syntax.Node, stmts []*syntax.Stmt, st state) {
	r.within(via, n, func() { r.list(stmts, st) })
}

func (r *reader) binary(c *syntax.BinaryCmd, st state) (yes, no state) {
	switch c.Op {
	case syntax.AndStmt:
		yes, no = r.stmt(c.X, st)
		y, n := r.stmt(c.Y, yes)
		return y, join(no, n)
	case syntax.OrStmt:
		yes, no = r.stmt(c.X, st)
		y, n := r.stmt(c.Y, no)
		return join(yes, y), n
	}
	r.pipe(c, st)
	return st, st
}

// pipe follows a pipeline. Each side is a process of its own.
func (r *reader) pipe(c *syntax.BinaryCmd, st state) {
	for i, s := range stages(c, nil) {
		if _, simple := s.Cmd.(*syntax.CallExpr); i > 0 && !simple && st.stdin.From == Text {
			st.stdin = Stdin{From: Pipe, Command: st.stdin.Command}
		}
		r.last = -1
		r.stmt(s, st)
		st.stdin = r.written(s)
	}
}

// stages lists the statements of a pipeline in order.
func stages(c *syntax.BinaryCmd, to []*syntax.Stmt) []*syntax.Stmt {
	for _, s := range []*syntax.Stmt{c.X, c.Y} {
		if b, ok := s.Cmd.(*syntax.BinaryCmd); ok && b.Op == c.Op && len(s.Redirs) == 0 && !s.Negated {
			to = stages(b, to)
		} else {
			to = append(to, s)
		}
	}
	return to
}

// written is what a statement that was just followed hands to the next one.
// Only a simple command that runs no other is known to be its writer.
func (r *reader) written(s *syntax.Stmt) Stdin {
	if _, simple := s.Cmd.(*syntax.CallExpr); !simple || r.last < 0 || r.last != len(r.line.Commands)-1 {
		return Stdin{From: Pipe, Command: -1}
	}
	if text, ok := r.outputs[r.last]; ok && len(s.Redirs) == 0 {
		return Stdin{From: Text, Command: r.last, Text: Word{Text: text}}
	}
	return Stdin{From: Pipe, Command: r.last}
}

func (r *reader) ifClause(c *syntax.IfClause, st state) (yes, no state) {
	if len(c.Cond) == 0 { // else
		return r.list(c.Then, st)
	}
	yes, no = r.list(c.Cond, st)
	thenYes, thenNo := r.list(c.Then, yes)
	if c.Else == nil {
		return join(thenYes, no), thenNo
	}
	y, n := r.ifClause(c.Else, no)
	return join(thenYes, y), join(thenNo, n)
}

func (r *reader) caseClause(c *syntax.CaseClause, st state) (yes, no state) {
	r.within("", c, func() {
		r.single(c.Word, &st)
		yes, no = st, st
		for _, item := range c.Items {
			for _, p := range item.Patterns {
				r.single(p, &st)
			}
			y, n := r.list(item.Stmts, join(st, join(yes, no)))
			yes, no = join(yes, y), join(no, n)
		}
	})
	return yes, no
}

func (r *reader) timed(c *syntax.TimeClause, st state) (yes, no state) {
	yes, no = st, st
	if c.Stmt != nil {
		r.within("time", c, func() { yes, no = r.stmt(c.Stmt, st) })
	}
	return yes, no
}

// function remembers a function. Nothing runs until it is called.
func (r *reader) function(c *syntax.FuncDecl, st *state) {
	name := ""
	if c.Name != nil {
		name = c.Name.Value
	}
	switch {
	case r.loops > 0, len(r.inline) > 0:
		r.opaque("a function that another command defines as it runs", c)
	case builtinOf(name) != nil, reserved.Has(name), name == "command_not_found_handle", !plainName(name):
		r.opaque("a function with the name of something else", c)
	case c.RsrvWord:
		r.opaque("a function that is defined with the word function, which dash does not know", c)
	case !compound(c.Body):
		r.opaque("a function whose body is no compound command: shells disagree on where it ends", c)
	default:
		st.bind(name, value{isFunc: true, body: c.Body})
	}
}

// compound reports whether a function's body is what bash wants it to be; dash
// also takes one simple command, and what follows is no part of it.
func compound(body *syntax.Stmt) bool {
	switch body.Cmd.(type) {
	case *syntax.Block, *syntax.Subshell, *syntax.IfClause, *syntax.WhileClause, *syntax.ForClause, *syntax.CaseClause:
		return true
	}
	return false
}

// callFunction follows the body of a function in place of its call.
func (r *reader) callFunction(name string, body *syntax.Stmt, args []Word, n syntax.Node, st state) (yes, no state) {
	if body == nil || slices.Contains(r.inline, body) {
		r.opaque("what the function "+name+" does is not certain", n)
		st.forget("set by a function")
		st.dirs = nil
		return st, st
	}
	before := st
	r.inline = append(r.inline, body)
	st.setParams(Word{Vague: "the name of the shell"}, args)
	r.within("function "+name, n, func() { yes, no = r.stmt(body, st) })
	r.inline = r.inline[:len(r.inline)-1]
	yes = join(yes, no)
	yes.settle(assigned(body), before)
	r.last = -1
	return yes, yes
}
