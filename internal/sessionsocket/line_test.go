//go:build linux || darwin

package sessionsocket

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/intent"
)

// TestAgentsWordsAreNotRemembered: a command that an agent starts twice is the same
// action, so that an answer for the session holds again, though each time the agent
// writes its shell's directory to another file. What is executed has those words.
func TestAgentsWordsAreNotRemembered(t *testing.T) {
	read := func(file string) *line {
		text := `\builtin shopt -u extglob 2>/dev/null || true && eval 'make deploy' < /dev/null && pwd -P >| ` + file
		l, r := readLine(&intent.Exec{Argv: []string{"/bin/bash", "-c", text}, Dir: "/w"}, func(string) variables { return nil })
		if r != nil {
			t.Fatal(r.reason)
		}
		return l
	}
	a, b := read("/tmp/claude-ab12-cwd"), read("/tmp/claude-cd34-cwd")
	if diff := cmp.Diff(a.action, b.action); diff != "" || a.action.Resource != "make deploy" {
		t.Errorf("the action is %q (-first +second):\n%s", a.action.Resource, diff)
	}
	argv := b.argv(bawn.Decision{Canonical: "make deploy"})
	if want := "{\nmake deploy\n} < /dev/null && pwd -P >| /tmp/claude-cd34-cwd"; !slices.Contains(argv, want) {
		t.Errorf("executed is %q, want %q", argv, want)
	}
	if elsewhere := read("/home/u/.ssh/claude-x-cwd"); !strings.Contains(elsewhere.action.Resource, "claude-x-cwd") {
		t.Errorf("what writes elsewhere is judged as %q", elsewhere.action.Resource)
	}
}
