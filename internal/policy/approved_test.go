package policy

import (
	"slices"
	"testing"

	"github.com/bawn-dev/bawn"
)

// A rule made of an answer yields to every rule that denies, of any priority
// and source; one that a human has written with the same words does not.
func TestApprovedYieldsToDenials(t *testing.T) {
	allow := func(id string, kind bawn.Kind, pattern string) bawn.Rule {
		return bawn.Rule{ID: id, Kind: kind, Pattern: pattern, Verdict: bawn.Allow, Priority: 500, Source: bawn.User}
	}
	deny := func(source bawn.Source, kind bawn.Kind, pattern string) bawn.Rule {
		return bawn.Rule{ID: "no", Kind: kind, Pattern: pattern, Verdict: bawn.Deny, Priority: -5, Source: source}
	}
	for _, tt := range []struct {
		kind               bawn.Kind
		op                 bawn.Operation
		resource, no, what string
	}{
		{bawn.Command, bawn.Exec, "git push", "git push", "git push"}, {bawn.Command, bawn.Exec, "git push", "git *", "git push"},
		{bawn.Filesystem, bawn.Write, "/opt/a", "/opt/**", "/opt/a"}, {bawn.Network, bawn.Connect, "a.example:443", "*.example", "a.example:443"},
		{bawn.Tool, bawn.Call, "mcp__x__y", "mcp__*", "mcp__x__y"},
	} {
		q := &Question{
			Action: bawn.Action{Kind: tt.kind, Operation: tt.op, Resource: tt.resource, Dir: "/w"}, Mode: bawn.ModeNormal, Autonomy: bawn.AutonomyModerate,
			Workspace: "/w", Home: "/h", System: "linux",
		}
		for _, source := range []bawn.Source{bawn.Managed, bawn.User, bawn.Project} {
			rules := []bawn.Rule{allow(Approved+"1", tt.kind, tt.what)}
			if d := mustPolicy(t, Options{}, rules...).Decide(q); d.Verdict != bawn.Allow {
				t.Fatalf("control: %s alone: %v %s", tt.resource, d.Verdict, d.Reason)
			}
			rules = append(rules, deny(source, tt.kind, tt.no))
			for range 2 {
				slices.Reverse(rules)
				if d := mustPolicy(t, Options{}, rules...).Decide(q); d.Verdict != bawn.Deny {
					t.Errorf("%s: %v against a denial of %v", tt.resource, d.Verdict, source)
				}
			}
			if rules[0].ID = "mine"; source == bawn.User {
				rules = []bawn.Rule{allow("mine", tt.kind, tt.what), deny(source, tt.kind, tt.no)}
				if d := mustPolicy(t, Options{}, rules...).Decide(q); d.Verdict != bawn.Allow {
					t.Errorf("control: a rule that was written by hand yields: %s", tt.resource)
				}
			}
		}
	}
}
