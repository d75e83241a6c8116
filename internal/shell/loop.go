package shell

import (
	"mvdan.cc/sh/v3/syntax"
)

// number is why a value is vague that is a number all the same.
const number = "a number"

// changes are what a part of a line may change in the shell that runs it.
type changes struct {
	names   map[string]bool // variables; true: set by arithmetic only
	called  []string        // programs, or functions
	all     bool            // any variable
	dirs    bool            // the working directory
	params  bool
	returns bool
	locals  map[string]bool
}

// assigned looks through nodes for what they may change. It finds too much
// rather than too little.
func assigned(nodes ...syntax.Node) changes {
	c := changes{names: map[string]bool{}, locals: map[string]bool{}}
	for _, n := range nodes {
		syntax.Walk(n, c.visit)
	}
	return c
}

func (c *changes) visit(n syntax.Node) bool {
	switch n := n.(type) {
	case *syntax.Subshell, *syntax.CmdSubst, *syntax.ProcSubst:
		return false
	case *syntax.Stmt:
		return !n.Background
	case *syntax.BinaryCmd:
		return n.Op == syntax.AndStmt || n.Op == syntax.OrStmt
	case *syntax.Assign:
		c.assign(n)
	case *syntax.WordIter:
		c.set(n.Name.Value, false)
	case *syntax.ParamExp:
		if n.Exp != nil && (n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull) {
			c.set(n.Param.Value, false)
		}
	case *syntax.BinaryArithm:
		c.arithm(n.X)
	case *syntax.UnaryArithm:
		c.arithm(n.X)
	case *syntax.Redirect:
		if n.N != nil && n.N.Value != "" && n.N.Value[0] == '{' {
			c.set(n.N.Value[1:len(n.N.Value)-1], true)
		}
	case *syntax.DeclClause:
		c.declared(n)
	case *syntax.CallExpr:
		c.call(n)
	}
	return true
}

func (c *changes) set(name string, arithmetic bool) {
	old, ok := c.names[name]
	c.names[name] = arithmetic && (old || !ok)
}

func (c *changes) assign(a *syntax.Assign) {
	if a.Name == nil {
		return
	}
	numeric := false
	if a.Value != nil && !a.Append && len(a.Value.Parts) == 1 {
		_, numeric = a.Value.Parts[0].(*syntax.ArithmExp)
	}
	c.set(a.Name.Value, numeric)
}

// arithm takes an operand that an arithmetic operator may set.
func (c *changes) arithm(x syntax.ArithmExpr) {
	if w, ok := x.(*syntax.Word); ok && plainName(w.Lit()) {
		c.set(w.Lit(), true)
	}
}

func (c *changes) declared(d *syntax.DeclClause) {
	if d.Variant.Value == "export" || d.Variant.Value == "readonly" {
		return
	}
	for _, a := range d.Args {
		if a.Name != nil {
			c.locals[a.Name.Value] = true
		}
	}
}

// call takes a command that may be a builtin or a function.
func (c *changes) call(call *syntax.CallExpr) {
	for i, w := range call.Args {
		name, ok := pureName(w)
		switch {
		case !ok && i == 0:
			c.all, c.dirs = true, true
		case name == "cd", name == "pushd", name == "popd":
			c.dirs = true
		case name == "shift", name == "set":
			c.params = true
		case name == "return":
			c.returns = true
		case name == "eval", name == "source", name == ".":
			c.all, c.dirs = true, true
		case builtinOf(name) == nil && i == 0:
			c.called = append(c.called, name)
			return
		case plainName(name):
			c.set(name, false) // by read, unset, export …
		}
	}
}

// blur makes unknown in st what c may change, before any number of rounds.
func (st *state) blur(c changes) {
	for _, name := range c.called {
		_, isFunc := st.lookup(name, true)
		c.all = c.all || isFunc
	}
	if c.all {
		st.forget("changed in a loop or function")
	}
	for name, arithmetic := range c.names {
		if old, _ := st.lookup(name, false); arithmetic && numeric(old.word) {
			st.vague(name, number)
		} else {
			st.vague(name, "changed in a loop or function")
		}
	}
	if c.dirs || c.all {
		st.dirs, st.stack = nil, nil
	}
	if c.params {
		st.loseParams()
	}
}

// settle makes unknown in st what a function that returned may have left.
func (st *state) settle(c changes, before state) {
	if c.returns {
		st.blur(c)
	}
	for name := range c.locals {
		st.vague(name, "local to a function")
	}
	st.params, st.given = before.params, before.given
}

// while follows the condition and the body of a loop once, for all rounds.
func (r *reader) while(c *syntax.WhileClause, st state) (yes, no state) {
	r.within("", c, func() {
		st.blur(assigned(c))
		r.loops++
		yes, no = r.list(c.Cond, st)
		if c.Until {
			yes, no = no, yes
		}
		y, n := r.list(c.Do, yes)
		r.loops--
		st = join(st, join(join(yes, no), join(y, n)))
		st.blur(assigned(c))
	})
	return st, st
}

func (r *reader) forClause(c *syntax.ForClause, st state) (yes, no state) {
	r.within("", c, func() {
		switch loop := c.Loop.(type) {
		case *syntax.WordIter:
			r.forWords(c, loop, &st)
		case *syntax.CStyleLoop:
			r.forArithm(c, loop, &st)
		}
	})
	return st, st
}

// forWords follows a loop over words: round by round when they are few and
// known, else once.
func (r *reader) forWords(c *syntax.ForClause, loop *syntax.WordIter, st *state) {
	items := []Word{{Vague: "a parameter of the script", Split: true}}
	if loop.InPos.IsValid() {
		items = items[:0]
		for _, w := range loop.Items {
			items = r.fields(items, w, st)
		}
	} else if st.given {
		items = st.params[1:]
	}
	if len(items) > maxRounds || c.Select {
		items = []Word{{Vague: "one of many words"}}
	}
	change := assigned(c)
	st.blur(change)
	r.loops++
	after := *st
	for _, item := range items {
		round := *st
		item.Split = false // a round gets one of its words
		r.fillVariable(&round, loop.Name.Value, item, loop)
		after = join(after, join(r.list(c.Do, round)))
	}
	r.loops--
	*st = after
	st.blur(change)
}

func (r *reader) forArithm(c *syntax.ForClause, loop *syntax.CStyleLoop, st *state) {
	ok := loop.Init == nil || r.arithm(loop.Init, st)
	change := assigned(c)
	st.blur(change)
	r.loops++
	ok = ok && (loop.Cond == nil || r.arithm(loop.Cond, st))
	after := join(r.list(c.Do, *st))
	ok = ok && (loop.Post == nil || r.arithm(loop.Post, &after))
	r.loops--
	*st = join(*st, after)
	st.blur(change)
	if !ok {
		r.opaque("arithmetic can run what the values in it say", loop)
	}
}
