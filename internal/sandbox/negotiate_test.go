package sandbox_test

import (
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// TestMismatchSaysEachReasonOnce: an engine that does not answer is one reason,
// also where it could be done without.
func TestMismatchSaysEachReasonOnce(t *testing.T) {
	down := func(a string) bawn.Capability {
		return bawn.Capability{Attribute: a, Why: "the engine is down", Remedy: "start it"}
	}
	err := &sandbox.MismatchError{
		Provider: "docker",
		Unmet:    []bawn.Capability{down("fs.write"), down("kernel"), {Attribute: "devices", Why: "there are none"}, down("net.allowlist"), down("limits.cpu")},
		Others:   map[string][]string{"fs.write": {"native", "bwrap"}, "kernel": {"native", "bwrap"}, "net.allowlist": {"native"}, "devices": {"native"}},
	}
	want := `provider "docker" can't enforce what this session asks for:
  fs.write, kernel, net.allowlist, limits.cpu: the engine is down; start it (could: native only fs.write, kernel, net.allowlist; bwrap only fs.write, kernel)
  devices: there are none (could: native)`
	if err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}
