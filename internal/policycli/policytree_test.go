package policycli

import (
	"strings"
	"testing"
	"unicode/utf8"
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
