package launch

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/runner"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// TestPartlyOfTwoZones says once what both zones get in part, however often it
// is asked, and leaves the plans alone.
func TestPartlyOfTwoZones(t *testing.T) {
	memory, processes := bawn.Capability{Attribute: "limits.memory"}, bawn.Capability{Attribute: "limits.processes"}
	both := []bawn.Capability{memory, processes}
	s := &runner.Session{Plan: &layout.Plan{InPart: []bawn.Capability{memory}}, Split: &runner.Split{Plan: &layout.Plan{InPart: []bawn.Capability{memory, processes}}}}
	for range 2 {
		if diff := cmp.Diff(both, partly(s)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	if diff := cmp.Diff(both, s.Split.Plan.Partly()); diff != "" {
		t.Errorf("the plan has changed (-want +got):\n%s", diff)
	}
}
