package policy

import (
	"slices"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
)

// TestShapes: what an answer is remembered under, and what is asked each time.
func TestShapes(t *testing.T) {
	p := withRules(t, Options{})
	for _, tt := range []struct{ line, want string }{
		{"touch a/b", "touch a/*"},
		{"touch a/c", "touch a/*"},
		{"touch b/c", "touch b/*"},
		{"sort -u -o out in", "sort -u -o out in"},
		{"go test -run=X ./pkg/x", "go test -run=X pkg/*"},
		{"cargo build --release && touch a", "cargo build --release,touch a"},
		{"ls", ""}, // allowed: nothing is asked
		{"ls && touch a", "touch a"},
		{"rm a", ""}, {"rm -r a", ""}, {"frob", "frob"}, {"frob ../x", ""}, {"frob /x", ""}, {"let x", ""}, {"git commit -m x", ""}, {"sh -c 'touch a'", ""}, {"env touch a", ""}, {"python3 x.py", ""}, {"./run.sh", ""},
		{"touch a > b", ""}, {"CI=1 touch a", ""}, {"touch $X", ""}, {"touch *.go", ""}, {"touch x*.go", ""}, {"touch d/zz*", ""}, {"touch ~/.ssh/x", ""}, {"touch a && frob", "touch a,frob"}, {"touch \"$GH_TOKEN\"", ""}, {"nice touch a", ""}, {"/usr/bin/touch a", ""},
	} {
		q := ask4(tt.line)
		if got := strings.Join(p.Shapes(&q), ","); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.line, got, tt.want)
		}
	}
	tainted := ask4("touch a")
	tainted.Taint.Untrusted = true
	file := fileAction(bawn.Write, "a")
	for _, q := range []Question{tainted, file} {
		if s := p.Shapes(&q); s != nil {
			t.Errorf("%+v has the shapes %q", q, s)
		}
	}
}

// answers is a memory by shape.
type answers map[string]struct {
	v    bawn.Verdict
	sure float64
}

func (a answers) Recall(s string) (bawn.Verdict, float64, bool) {
	x, ok := a[s]
	return x.v, x.sure, ok
}

// TestLearned: what the human has taught answers where only the default would
// ask, and nowhere else.
func TestLearned(t *testing.T) {
	const shape = "touch a"
	for _, tt := range []struct {
		name   string
		line   string
		rules  []string
		v      bawn.Verdict
		sure   float64
		change func(*Question)
		want   bawn.Verdict
	}{
		{"yes", "touch a", nil, bawn.Allow, 6.0 / 7, nil, bawn.Allow},
		{"no", "touch a", nil, bawn.Deny, 1, nil, bawn.Deny},
		{"not sure", "touch a", nil, bawn.Allow, 0.849, nil, bawn.Ask},
		{"no verdict", "touch a", nil, 7, 1, nil, bawn.Ask},
		{"another directory", "touch d/a", nil, bawn.Allow, 1, nil, bawn.Ask},
		{"a rule asks", "touch a", []string{"a user command ask | touch *"}, bawn.Allow, 1, nil, bawn.Ask},
		{"a rule denies", "touch a", []string{"a user command deny | touch *"}, bawn.Allow, 1, nil, bawn.Deny},
		{"a project's rule asks", "touch a", []string{"a project command ask | touch *"}, bawn.Allow, 1, nil, bawn.Ask},
		{"tainted", "touch a", nil, bawn.Allow, 1, func(q *Question) { q.Taint.Private = true }, bawn.Ask},
		{"limited", "touch a", nil, bawn.Allow, 1, func(q *Question) { q.Autonomy = bawn.AutonomyLimited }, bawn.Deny},
		{"plan", "touch a", nil, bawn.Allow, 1, func(q *Question) { q.Mode = bawn.ModePlan }, bawn.Deny},
		{"strict", "touch a", nil, bawn.Allow, 1, func(q *Question) { q.Mode = bawn.ModeStrict }, bawn.Ask},
		{"a part of a line", "touch a && rm b", nil, bawn.Allow, 1, nil, bawn.Ask},
		{"dangerous", "rm -r x", nil, bawn.Allow, 1, nil, bawn.Ask},
	} {
		p := withRules(t, Options{Memory: answers{shape: {tt.v, tt.sure}, "rm -r x": {tt.v, tt.sure}}}, rulesOf(tt.rules...)...)
		q := ask4(tt.line)
		if tt.change != nil {
			tt.change(&q)
		}
		d := p.Decide(&q)
		if d.Verdict != tt.want || (d.Source == bawn.Learned) != (tt.want == tt.v && tt.sure >= Sure && (tt.name == "yes" || tt.name == "no")) {
			t.Errorf("%s: %v by %q, want %v", tt.name, d.Verdict, d.Rule, tt.want)
		}
		if tt.name == "yes" && !slices.ContainsFunc(d.Trace, func(s bawn.Step) bool { return s.Stage == stageLearned }) {
			t.Error("the trace does not tell of what was learned")
		}
	}
}

func TestWild(t *testing.T) {
	for _, tt := range []struct {
		pattern, text string
		want          bool
	}{
		{"", "", true}, {"", "a", false}, {"a", "a", true}, {"a", "b", false}, {"a", "", false}, {"*", "", true}, {"*", "abc", true}, {"a*", "abc", true}, {"*c", "abc", true}, {"a*c", "abcbc", true}, {"a*c", "abcb", false},
		{"**", "x", true}, {"a**", "a", true}, {"*a*b*", "xxaxxbxx", true}, {"*a*b*", "xxbxxaxx", false}, {"a?", "ab", false},
	} {
		if got := wild(tt.pattern, tt.text); got != tt.want {
			t.Errorf("wild(%q, %q) = %t", tt.pattern, tt.text, got)
		}
	}
}

func TestShapePatterns(t *testing.T) {
	for _, tt := range []struct {
		pattern, line string
		want          bool
	}{
		{"x", "x", true}, {"x", "x y", false}, {"x", "x *.go", false}, {"x y", "x $(y)", false}, {"x *", "x y z", true}, {"x sub*", "x sub y", true}, {"x sub*", "x suby", false}, {"* -a", "any -a", true}, {"a,b", "b", true}, {"p*", "python", true},
		{"x -a", "x -ba", true}, {"x -a", "x --a", false}, {"x -a", "x -- -a", false}, {"x --all *", "x --al y", true}, {"x --all *", "x --a y", false}, {"x --all *", "x --all=y", true}, {"x --all *", "x --alles y", false}, {"x -race", "x -race", true},
		{"x -", "x", false}, {"x one two", "x one two", true}, {"x two one", "x one two", false}, {"x to=*", "x to=y", true}, {"x to=*", "x from=y", false}, {"x !-n *", "x y", true}, {"x !-n *", "x -n y", false}, {"x a,b *", "x b c", true}, {"git log *", "git -C d log", true}, {"git log *", "git show log", false},
	} {
		s, err := parseShape(tt.pattern)
		if err != nil {
			t.Fatal(err)
		}
		got := slices.ContainsFunc(commandsOf(tt.line), func(a argv) bool { return s.matches(&a) && (s.open || s.closed(&a)) })
		if got != tt.want {
			t.Errorf("%q matches %q: %t, want %t", tt.pattern, tt.line, got, tt.want)
		}
	}
}
