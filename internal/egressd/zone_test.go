package egressd

import (
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/egress"
)

// TestSecretsOfZones: the agent is lent what is bound to its model and nothing
// else, what it executes all else, and no binding goes to both.
func TestSecretsOfZones(t *testing.T) {
	all := []bawn.Binding{
		{Secret: "model", Host: "api.model.test"}, {Secret: "wide", Host: "*.model.test:443"}, {Secret: "forge", Host: "forge.test"},
		{Secret: "port", Host: "api.model.test:9999"},
	}
	models := []string{"api.model.test:443"}
	for zone, want := range map[string]string{"": "model wide forge port ", egress.Reasoning: "model wide ", egress.Execution: "forge port ", "another": "forge port "} {
		own, err := ofZone(all, zone, models)
		got := ""
		for _, b := range own {
			got += b.Secret + " "
		}
		if err != nil || got != want {
			t.Errorf("zone %q: %q, %v; want %q", zone, got, err, want)
		}
	}
	if own, err := ofZone(all, egress.Reasoning, nil); err != nil || len(own) > 0 {
		t.Errorf("without models: %v, %v", own, err)
	}
	for _, wrong := range [][]string{{"*"}, {"A.b"}} {
		if _, err := ofZone(all, egress.Execution, wrong); err == nil {
			t.Errorf("%q is taken for hosts", wrong)
		}
	}
}
