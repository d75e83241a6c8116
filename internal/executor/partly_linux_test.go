package executor

import (
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
)

// TestPartly: where the kernel can't keep commands from the executor, that is
// said before they start.
func TestPartly(t *testing.T) {
	for abi, want := range map[int]int{0: 1, 5: 1, 6: 0, 9: 0} {
		got := partly(abi)
		if len(got) != want || want == 1 && (got[0].Strength != bawn.Partly || !strings.Contains(got[0].Why, "can end the executor") || got[0].Remedy == "") {
			t.Errorf("ABI %d: %+v", abi, got)
		}
	}
}
