package session

import (
	"slices"
	"testing"

	known "github.com/bawn-dev/bawn/internal/agents"
)

// TestZonesKnowEveryAgent: what is an agent's own is no command's, also of one that
// is added.
func TestZonesKnowEveryAgent(t *testing.T) {
	for _, a := range known.All() {
		if !slices.Contains(agents, a.Name) {
			t.Errorf("the zones of a split session don't know %q: its credentials would be open to commands", a.Name)
		}
	}
}
