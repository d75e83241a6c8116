package shell

import (
	"path"
	"slices"

	"mvdan.cc/sh/v3/syntax"
)

// A state is what is known of a shell at one point of the line. It is copied
// where the shell forks.
type state struct {
	vars   *binding
	dirs   []string   // nil: unknown
	stack  [][]string // of pushd, the innermost last
	params []Word
	given  bool   // params are known; otherwise nothing sets them
	lost   string // why variables that nothing in the line sets may be set
	dead   bool   // it has ended by exit
	stdin  Stdin
}

// A binding is one variable or function, in front of those that were known
// before. Bindings never change, so that copies of a state share them.
type binding struct {
	name  string
	value value
	next  *binding
}

// A value is a variable's or a function's.
type value struct {
	word     Word
	elems    []Word // of an array
	array    bool
	exported bool
	frozen   bool // read-only
	isFunc   bool
	body     *syntax.Stmt // of a function; nil when it is not certain
}

func (st *state) lookup(name string, isFunc bool) (value, bool) {
	for b := st.vars; b != nil; b = b.next {
		if b.name == name && b.value.isFunc == isFunc {
			return b.value, true
		}
	}
	return value{}, false
}

func (st *state) bind(name string, v value) {
	st.vars = &binding{name, v, st.vars}
}

// vague makes a variable unknown.
func (st *state) vague(name, why string) {
	old, _ := st.lookup(name, false)
	st.bind(name, value{word: Word{Vague: why}, exported: old.exported, frozen: old.frozen})
}

// forget makes every variable unknown; functions stay.
func (st *state) forget(why string) {
	st.lost = why
	for _, name := range names(st.vars) {
		if !name.isFunc {
			st.vague(name.name, why)
		}
	}
	st.params, st.given = nil, false
}

// setParams sets $0 and the parameters, unless words hide how many there are.
func (st *state) setParams(zero Word, params []Word) {
	for _, w := range params {
		if w.Split || w.Glob {
			st.loseParams()
			return
		}
	}
	st.params, st.given = append([]Word{zero}, params...), true
}

func (st *state) loseParams() {
	st.params, st.given, st.lost = nil, false, "a parameter of the shell"
}

// A key names a variable or a function.
type key struct {
	name   string
	isFunc bool
}

// names lists what is bound.
func names(b *binding) []key {
	seen := map[key]bool{}
	var out []key
	for ; b != nil; b = b.next {
		if k := (key{b.name, b.value.isFunc}); !seen[k] {
			seen[k] = true
			out = append(out, k)
		}
	}
	return out
}

// join is what is known when either of two states may be the case.
func join(a, b state) state {
	if a.dead {
		return b
	}
	if b.dead {
		return a
	}
	out := a
	out.dirs = union(a.dirs, b.dirs)
	if !slices.EqualFunc(a.stack, b.stack, slices.Equal) {
		out.stack = nil
	}
	if a.given != b.given || !equalWords(a.params, b.params) {
		out.loseParams()
	}
	if b.lost != "" {
		out.lost = b.lost
	}
	if a.stdin.From != b.stdin.From {
		out.stdin = Stdin{From: File}
	}
	if a.vars != b.vars {
		joinVars(&out, a, b)
	}
	return out
}

func joinVars(out *state, a, b state) {
	for _, k := range names(b.vars) {
		mine, ok := a.lookup(k.name, k.isFunc)
		theirs, _ := b.lookup(k.name, k.isFunc)
		if ok && mine.equal(theirs) {
			continue
		}
		out.bind(k.name, uncertain(mine, theirs))
	}
	for _, k := range names(a.vars) {
		if theirs, ok := b.lookup(k.name, k.isFunc); !ok {
			mine, _ := a.lookup(k.name, k.isFunc)
			out.bind(k.name, uncertain(mine, theirs))
		}
	}
}

func uncertain(a, b value) value {
	why := "set in a branch"
	if numeric(a.word) && numeric(b.word) {
		why = number
	}
	return value{
		word: Word{Vague: why}, isFunc: a.isFunc || b.isFunc,
		exported: a.exported || b.exported, frozen: a.frozen || b.frozen,
	}
}

func (v value) equal(w value) bool {
	return equalWord(v.word, w.word) && equalWords(v.elems, w.elems) && v.array == w.array &&
		v.exported == w.exported && v.frozen == w.frozen && v.isFunc == w.isFunc && v.body == w.body
}

func equalWords(a, b []Word) bool { return slices.EqualFunc(a, b, equalWord) }

func equalWord(a, b Word) bool {
	return a.Text == b.Text && a.Glob == b.Glob && a.Vague == b.Vague && a.Split == b.Split &&
		slices.Equal(a.Unset, b.Unset) && slices.Equal(a.Below, b.Below)
}

// union is all directories of both, or nil when either is unknown.
func union(a, b []string) []string {
	if a == nil || b == nil {
		return nil
	}
	out := slices.Clip(a)
	for _, d := range b {
		if !slices.Contains(out, d) {
			out = append(out, d)
		}
	}
	if len(out) > maxDirs {
		return nil
	}
	return out
}

// enter returns where cd(1) leads from dirs: nil when that is not known.
func enter(dirs []string, to Word) []string {
	if !to.Literal() || to.Text == "" {
		return nil
	}
	if path.IsAbs(to.Text) {
		return []string{path.Clean(to.Text)}
	}
	var out []string
	for _, d := range dirs {
		if next := path.Join(d, to.Text); !slices.Contains(out, next) {
			out = append(out, next)
		}
	}
	return out
}
