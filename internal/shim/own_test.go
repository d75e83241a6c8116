//go:build linux || darwin

package shim

import (
	"slices"
	"testing"
)

// TestOwn shows which lines are for bawn itself: what holds anything else is a
// command like any other, and is judged.
func TestOwn(t *testing.T) {
	for line, want := range map[string][]string{
		"bawn request --allow a.test --why 'two words'": {"request", "--allow", "a.test", "--why", "two words"},
		`bawn request -- git push "origin" main 2>&1`:   {"request", "--", "git", "push", "origin", "main"},
		"bawn run -- make":                    {"run", "--", "make"},
		"bawn why --json":                     {"why", "--json"},
		"bawn why | sh":                       nil,
		"bawn approve abcd":                   nil,
		"bawn request --allow a.test; rm x":   nil,
		"bawn request --allow $(id)":          nil,
		"bawn request --allow $HOST":          nil,
		"bawn request --allow a.test > f":     nil,
		"bawn request --allow a.test 2>f":     nil,
		"bawn request --allow a.test | tee f": nil,
		"bawn request --allow a.test &":       nil,
		"X=1 bawn request --allow a.test":     nil,
		"env bawn request --allow a.test":     nil,
		"bawn() { rm x; }; bawn request":      nil,
		"bawn":                                nil,
	} {
		if got, _ := Own([]string{"sh", "-c", line}); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
	if got, _ := Own([]string{"sh", "-c", "bawn request --allow $1", "sh", "a.test"}); got != nil {
		t.Errorf("parameters: %q", got)
	}
	if got, _ := Own([]string{"sh", "bawn", "request"}); got != nil {
		t.Errorf("a script: %q", got)
	}
}
