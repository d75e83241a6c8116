package sandboxtest

import (
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// TestPatienceEnds shows that the variable is what ends a command that hangs.
func TestPatienceEnds(t *testing.T) {
	t.Setenv(testenv.PatienceVariable, "50ms")
	f := New(t, "/bin/sh", Self())
	if r := f.Exec(t, "/bin/sleep", "60"); r.Code != 137 || r.Elapsed > 30*time.Second {
		t.Errorf("exit code %d after %v; want 137 at once", r.Code, r.Elapsed)
	}
}
