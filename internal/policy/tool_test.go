package policy

import (
	"testing"

	"github.com/bawn-dev/bawn"
)

// TestWildcardsAskNobody: what a server asks of the agent or its human is allowed by a
// rule that names it, never by one that allows tools by a wildcard; every rule denies.
func TestWildcardsAskNobody(t *testing.T) {
	for _, tt := range []struct {
		pattern string
		verdict bawn.Verdict
		tool    string
		want    bawn.Verdict
	}{
		{"*", bawn.Allow, "a/tool", bawn.Allow},
		{"*", bawn.Allow, "a/@resource", bawn.Allow},
		{"*", bawn.Allow, "a/" + AskSampling, bawn.Ask},
		{"a/*", bawn.Allow, "a/" + AskRoots, bawn.Ask},
		{"a/@*", bawn.Allow, "a/" + AskElicitation, bawn.Ask},
		{"*/@sampling", bawn.Allow, "a/" + AskSampling, bawn.Allow},
		{"*", bawn.Deny, "a/" + AskSampling, bawn.Deny},
	} {
		p, err := New([]bawn.Rule{{ID: "r", Kind: bawn.Tool, Pattern: tt.pattern, Verdict: tt.verdict, Source: bawn.User}}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		q := &Question{Action: bawn.Action{Kind: bawn.Tool, Operation: bawn.Call, Resource: tt.tool}, Mode: bawn.ModeNormal, Autonomy: AutonomyOf(bawn.ModeNormal), Contained: bawn.ContainedFully}
		if d := p.Decide(q); d.Verdict != tt.want {
			t.Errorf("%v %q of %s: %v by %q, want %v", tt.verdict, tt.pattern, tt.tool, d.Verdict, d.Rule, tt.want)
		}
	}
}
