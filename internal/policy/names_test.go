package policy

import (
	"testing"

	"github.com/bawn-dev/bawn"
)

// TestNames shows that a variable which a line is executed with is not taken
// for empty, also by a cached decision.
func TestNames(t *testing.T) {
	p, err := New(nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	q := Question{
		Action: bawn.Action{Kind: bawn.Command, Operation: bawn.Exec, Resource: "echo a > $PLACE/dev/null", Dir: "/w"},
		Mode:   bawn.ModeNormal, Autonomy: bawn.AutonomyModerate, Workspace: "/w",
	}
	for range 2 {
		q.Names = nil
		if d := p.Decide(&q); d.Verdict != bawn.Allow {
			t.Errorf("control: an empty variable: %v, %s", d.Verdict, d.Reason)
		}
		q.Names = []string{"PLACE"}
		if d := p.Decide(&q); d.Verdict != bawn.Ask {
			t.Errorf("a variable of which the value is not known: %v, %s", d.Verdict, d.Reason)
		}
	}
	q.Action.Resource, q.Names = "echo $API_TOKEN", []string{"API_TOKEN"}
	if d := p.Decide(&q); d.Rule != "builtin:secret-variable" {
		t.Errorf("a variable that may hold a secret: %v by %s", d.Verdict, d.Rule)
	}
}
