package native

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// TestPendingSignals: a guest can't have more signals wait than it is given,
// which the kernel counts for all of its user's programs. Outside it could.
func TestPendingSignals(t *testing.T) {
	testenv.Need(t, "userns", "notify", "bash")
	bare, err := exec.Command("bash", "-c", "ulimit -i").Output()
	if err != nil || strings.TrimSpace(string(bare)) == "4096" {
		t.Fatalf("control: outside the limit is %q, %v", bare, err)
	}
	_, req := home(t)
	if got := does(t, keptGuest(t, req, false), `bash -c "ulimit -i; ulimit -i 5000"`); !strings.HasPrefix(got, "4096\n") || !strings.Contains(got, "ulimit") {
		t.Errorf("the guest's limit is %q", got)
	}
}
