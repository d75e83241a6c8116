package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/guard"
)

type takes struct{ err error }

func (t takes) Record(context.Context, bawn.Event) error { return t.err }

// TestRefusals keeps each refusal once, and what is allowed not at all. What
// can't be recorded is the recorder's error all the same.
func TestRefusals(t *testing.T) {
	r := &Refusals{}
	g := r.Of(guard.Guard{Recorder: takes{}})
	event := func(resource string, v bawn.Verdict) bawn.Event {
		return bawn.Event{Kind: bawn.Command.String(), Operation: bawn.Exec.String(), Resource: resource, Rule: "rule", Resolved: v}
	}
	for _, e := range []bawn.Event{
		event("a", bawn.Deny), event("a", bawn.Deny), event("b", bawn.Allow), event(strings.Repeat("é", 300), bawn.Deny), {Kind: "session", Resource: "c", Resolved: bawn.Deny},
	} {
		if err := g.Recorder.Record(t.Context(), e); err != nil {
			t.Error(err)
		}
	}
	list, missed := r.kept()
	if len(list) != 2 || missed != 0 || list[0].Resource != "a" || list[0].Rule != "rule" || list[1].Resource != strings.Repeat("é", 200)+" …" {
		t.Errorf("kept %+v, %d more", list, missed)
	}
	for i := range 2 * maxKept {
		_ = g.Recorder.Record(t.Context(), event(fmt.Sprint(i), bawn.Deny))
	}
	if list, missed := r.kept(); len(list) != maxKept || missed != maxKept+2 {
		t.Errorf("kept %d, %d more", len(list), missed)
	}
	byPlugin := &Refusals{}
	e := event("a", bawn.Deny)
	e.Rule = "plugin:guard"
	byPlugin.add(e)
	if list, _ := byPlugin.kept(); len(list) != 1 || !strings.Contains(list[0].Remedy, "bawn plugin show guard") {
		t.Errorf("by a plugin: %+v", list)
	}
	broken := errors.New("broken")
	if err := r.Of(guard.Guard{Recorder: takes{broken}}).Recorder.Record(t.Context(), event("x", bawn.Deny)); !errors.Is(err, broken) {
		t.Errorf("a broken recorder: %v", err)
	}
	var none *Refusals
	if none.Of(guard.Guard{}).Recorder != nil {
		t.Error("a recorder was made of none")
	}
	if list, _ := none.kept(); list != nil {
		t.Errorf("kept %v", list)
	}
}
