//go:build linux

package sandboxtest_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// TestControl shows that every check could fail: without a sandbox it works.
func TestControl(t *testing.T) {
	testenv.ByUser(t) // as root TestNoSandboxFails is the control
	asEach(t, func(t *testing.T, f *sandboxtest.Fixtures) {
		tallies := sandboxtest.Control(t, f, sandboxtest.Options{})
		for _, family := range slices.Sorted(maps.Keys(tallies)) {
			t.Logf("%s: %v", family, tallies[family])
		}
	})
}
