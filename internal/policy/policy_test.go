package policy

import (
	"testing"

	"github.com/bawn-dev/bawn"
)

func TestLaunch(t *testing.T) {
	run := bawn.Action{Kind: bawn.Command, Operation: bawn.Exec, Resource: "sh", Args: []string{"sh"}}
	tests := []struct {
		name   string
		in     string
		action bawn.Action
		want   bawn.Verdict
		rule   string
	}{
		{"the human", "", run, bawn.Allow, RuleRun},
		{"a guest", "s1", run, bawn.Deny, RuleNoNesting},
		{"zero action", "", bawn.Action{}, bawn.Deny, RuleUnknown},
		{"no resource", "", bawn.Action{Kind: bawn.Command, Operation: bawn.Exec}, bawn.Deny, RuleUnknown},
		{"a file", "", bawn.Action{Kind: bawn.Filesystem, Operation: bawn.Exec, Resource: "sh"}, bawn.Deny, RuleUnknown},
		{"a read", "", bawn.Action{Kind: bawn.Command, Operation: bawn.Read, Resource: "sh"}, bawn.Deny, RuleUnknown},
		{"a connection", "", bawn.Action{Kind: bawn.Network, Operation: bawn.Connect, Resource: "example.com:443"}, bawn.Deny, RuleUnknown},
		{"a guest's connection", "s1", bawn.Action{Kind: bawn.Network, Operation: bawn.Connect, Resource: "x:1"}, bawn.Deny, RuleUnknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, err := Launch{InSession: tt.in}.Decide(t.Context(), tt.action)
			if err != nil || d.Verdict != tt.want || d.Rule != tt.rule {
				t.Errorf("got %v by %q, %v; want %v by %q", d.Verdict, d.Rule, err, tt.want, tt.rule)
			}
			if d.Source != bawn.Builtin || d.Reason == "" || len(d.Trace) != 1 || d.Trace[0].Verdict != tt.want {
				t.Errorf("the decision %+v does not say why", d)
			}
		})
	}
}

// TestLaunchAllowsNothingElse tries every kind and operation there can be.
func TestLaunchAllowsNothingElse(t *testing.T) {
	for k := range bawn.Kind(255) {
		for o := range bawn.Operation(255) {
			a := bawn.Action{Kind: k, Operation: o, Resource: "x"}
			d, _ := Launch{}.Decide(t.Context(), a)
			if start := k == bawn.Command && o == bawn.Exec; (d.Verdict == bawn.Allow) != start {
				t.Errorf("%v %v is %v", k, o, d.Verdict)
			}
		}
	}
}

// TestPrepare: what is read ahead is what a decision reads by itself.
func TestPrepare(t *testing.T) {
	Prepare()
	q := ask4("cat ~/.ssh/id_ed25519")
	if d := corpusPolicy(t).Decide(&q); d.Verdict != bawn.Deny || len(compiledBuiltins()) != len(Builtins()) {
		t.Errorf("%v by %q, with %d of %d rules", d.Verdict, d.Rule, len(compiledBuiltins()), len(Builtins()))
	}
}
