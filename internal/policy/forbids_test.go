package policy

import (
	"testing"

	"github.com/bawn-dev/bawn"
)

// Forbids speaks for people alone: what the built-in rules or the mode deny it leaves to
// others, and other kinds of actions.
func TestForbids(t *testing.T) {
	command := func(line string) *Question {
		return &Question{Action: bawn.Action{Kind: bawn.Command, Operation: bawn.Exec, Resource: line}, Mode: bawn.ModePlan, Autonomy: bawn.AutonomyNone, Workspace: "/p", Home: "/home/u", System: "linux"}
	}
	none, err := New(nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	some, err := New([]bawn.Rule{{ID: "user:1", Kind: bawn.Command, Pattern: "id *", Verdict: bawn.Deny, Priority: 10, Source: bawn.User}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]bool{"id": true, "/usr/bin/id -u": true, "git push --force": false, "cat /home/u/.ssh/id_rsa": false, "ls": false} {
		if d, got := some.Forbids(command(line)); got != want || got && d.Rule != "user:1" {
			t.Errorf("%q: %t, %+v; want %t", line, got, d, want)
		}
		if _, got := none.Forbids(command(line)); got {
			t.Errorf("%q is forbidden by nobody", line)
		}
	}
	path := command("id")
	path.Action.Kind, path.Action.Operation = bawn.Filesystem, bawn.Read
	if _, got := some.Forbids(path); got {
		t.Error("a file is forbidden by a rule about commands")
	}
}
