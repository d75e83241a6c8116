package policy

import (
	"testing"

	"github.com/bawn-dev/bawn"
)

// Held speaks for people alone: what the built-in rules or the mode deny or ask about it leaves to
// others, and other kinds of actions.
func TestHeld(t *testing.T) {
	command := func(line string) *Question {
		return &Question{Action: bawn.Action{Kind: bawn.Command, Operation: bawn.Exec, Resource: line}, Mode: bawn.ModePlan, Autonomy: bawn.AutonomyNone, Workspace: "/p", Home: "/home/u", System: "linux"}
	}
	none, err := New(nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	some, err := New([]bawn.Rule{{ID: "user:1", Kind: bawn.Command, Pattern: "id *", Verdict: bawn.Deny, Priority: 10, Source: bawn.User}, {ID: "user:2", Kind: bawn.Command, Pattern: "make deploy *", Verdict: bawn.Ask, Priority: 10, Source: bawn.User}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, contained := range []bool{false, true} {
		q := command("make deploy")
		q.Contained = within(contained)
		q.Mode, q.Autonomy = bawn.ModeNormal, bawn.AutonomyModerate
		if d, got := some.Held(q); !got || d.Verdict != bawn.Ask || d.Rule != "user:2" {
			t.Errorf("what a person wants to be asked about: %t, %+v", got, d)
		}
	}
	for line, want := range map[string]bool{"id": true, "make": false, "/usr/bin/id -u": true, "git push --force": false, "cat /home/u/.ssh/id_rsa": false, "ls": false} {
		if d, got := some.Held(command(line)); got != want || got && d.Rule != "user:1" {
			t.Errorf("%q: %t, %+v; want %t", line, got, d, want)
		}
		if _, got := none.Held(command(line)); got {
			t.Errorf("%q is forbidden by nobody", line)
		}
	}
	path := command("id")
	path.Action.Kind, path.Action.Operation = bawn.Filesystem, bawn.Read
	if _, got := some.Held(path); got {
		t.Error("a file is forbidden by a rule about commands")
	}
}
