package cli

import (
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
)

// TestEditorsYesHoldsOnce: what the human at the editor has said yes to is not
// asked again where it is executed, once, in those words and that directory.
func TestEditorsYesHoldsOnce(t *testing.T) {
	run := func(text, dir string, args ...string) bawn.Action {
		return bawn.Action{Kind: bawn.Command, Operation: bawn.Exec, Resource: text, Dir: dir, Args: args}
	}
	q := &acpAsks{yes: map[said]time.Time{}}
	q.permitted(run("make   deploy > log", "/w"))
	for _, other := range []bawn.Action{
		run("make deploy", "/w"), run("make deploy >log", "/w/sub"), run("make deploy >log", "/w", "make"), run("make deploy >log; ls", "/w"),
		{Kind: bawn.Tool, Operation: bawn.Call, Resource: "make deploy >log", Dir: "/w2"},
	} {
		if q.spend(&other) {
			t.Errorf("the yes holds for %+v", other)
		}
	}
	q.permitted(run("make   deploy > log", "/w"))
	same := run("make deploy >log", "/w")
	if first, second := q.spend(&same), q.spend(&same); !first || second {
		t.Errorf("it holds %t, then %t; want once", first, second)
	}
	q.yes[said{"make deploy >log", "/w"}] = time.Now().Add(-yesHolds)
	if q.spend(&same) {
		t.Error("it holds for ever")
	}
	q.permitted(run("if", "/w"))
	q.permitted(bawn.Action{Kind: bawn.Filesystem, Operation: bawn.Write, Resource: "true", Dir: "/w"})
	if len(q.yes) != 0 {
		t.Errorf("kept %v", q.yes)
	}
}
