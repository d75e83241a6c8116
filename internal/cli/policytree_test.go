package cli

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/bawn-dev/bawn/internal/policy"
)

// explained explains a line in a home of its own.
func explained(t *testing.T, line string) *explanation {
	t.Helper()
	d, err := newDecider(emptyHome(t), situation{})
	if err != nil {
		t.Fatal(err)
	}
	x, err := d.explain("command", "", []string{line})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// TestExplanationIsWrapped: no line is longer than the terminal, what goes on
// stands below where it began, and nothing is lost. What is to be copied is
// not wrapped.
func TestExplanationIsWrapped(t *testing.T) {
	x := explained(t, "find . -name '*.o' -exec sh -c 'go test ./... && make' ';'")
	wide := x.text(0)
	for _, columns := range []int{60, 80, 100} {
		narrow := x.text(columns)
		for line := range strings.Lines(narrow) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > columns && strings.ContainsAny(strings.TrimSpace(line), " ") && !strings.Contains(line, " = ") {
				t.Errorf("%d columns at %d: %s", n, columns, line)
			}
		}
		if got, want := strings.Fields(narrow), strings.Fields(wide); strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("at %d columns the text is another: %s", columns, narrow)
		}
	}
	for _, columns := range []int{1, 10, 24} {
		if got := x.text(columns); strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(wide), " ") {
			t.Errorf("at %d columns the text is another: %s", columns, got)
		}
	}
}

// TestAdviceIsNeeded: what is suggested allows, and without any one of the
// rules it does not.
func TestAdviceIsNeeded(t *testing.T) {
	for _, tt := range []struct {
		line  string
		rules int
	}{
		{"git push", 1}, {"cp a /opt/b", 2}, {"npm install && cp a /opt/b && cat .env", 4}, {"frobnicate -x a", 1}, {"ls", 0},
		{"rm -rf x", 0}, {"cat ~/.ssh/id_rsa", 0}, {"eval \"$X\"", 0}, {"cp $(date) x", 0}, {"frobnicate *.o", 0}, {"sudo ls", 0},
	} {
		x := explained(t, tt.line)
		if len(x.advice.rules) != tt.rules {
			t.Errorf("%s: %+v; want %d rules", tt.line, x.advice, tt.rules)
			continue
		}
		if asks := x.decision.Verdict != 2; asks && tt.rules == 0 && x.advice.none == "" {
			t.Errorf("%s: no rule and no reason", tt.line)
		}
		for i := range x.advice.rules {
			s := suggester{q: x.question, opts: policy.Options{Resolve: resolveLinks}}
			if _, ok := s.try(x.advice.rules); !ok {
				t.Errorf("%s: the rules do not allow it", tt.line)
			}
			fewer := append(append(s.found, x.advice.rules[:i]...), x.advice.rules[i+1:]...)
			if _, ok := s.try(fewer); ok {
				t.Errorf("%s: %s is not needed", tt.line, x.advice.rules[i].ID)
			}
		}
	}
}
