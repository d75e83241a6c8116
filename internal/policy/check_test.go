package policy

import (
	"testing"

	"github.com/bawn-dev/bawn"
)

// TestCheck: a rule can be tried without a policy, by its pattern and its own
// examples.
func TestCheck(t *testing.T) {
	good := bawn.Rule{ID: "x", Kind: bawn.Command, Pattern: "npm test *", Verdict: bawn.Allow, Source: bawn.User, Match: []string{"npm test"}, NotMatch: []string{"npm publish"}}
	if err := Check(good); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*bawn.Rule){
		"no pattern":           func(r *bawn.Rule) { r.Pattern = "" },
		"an example it misses": func(r *bawn.Rule) { r.Match = []string{"npm publish"} },
		"one it must not have": func(r *bawn.Rule) { r.NotMatch = []string{"npm test x"} },
	} {
		bad := good
		change(&bad)
		if Check(bad) == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestRunsAnything(t *testing.T) {
	for program, want := range map[string]bool{"sh": true, "python3": true, "git": true, "xargs": true, "ls": false, "cargo": false, "": false} {
		if RunsAnything(program) != want {
			t.Errorf("%q: want %v", program, want)
		}
	}
}

// TestUnknownWordsAreNotLearned: a shape of words that are not known would
// cover anything.
func TestUnknownWordsAreNotLearned(t *testing.T) {
	p := corpusPolicy(t)
	for line, want := range map[string]int{"mkdir a": 1, "mkdir a*": 0, `mkdir "$(date)"`: 0, "bash x.sh": 0, "./x": 0, "mkdir a > b": 0, "A=b mkdir a": 0} {
		q := ask4(line)
		if got := p.Shapes(&q); len(got) != want {
			t.Errorf("%q has the shapes %q, want %d", line, got, want)
		}
	}
}
