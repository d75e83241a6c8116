package sandboxtest

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// refusal is a test that notes why it was given up.
type refusal struct {
	testing.TB
	why string
}

func (r *refusal) Helper() {}

func (r *refusal) Fatalf(format string, args ...any) { r.why = fmt.Sprintf(format, args...) }

func TestPatience(t *testing.T) {
	for text, want := range map[string]time.Duration{"": 2 * time.Minute, "40m": 40 * time.Minute, "1ms": time.Millisecond} {
		t.Setenv(PatienceVariable, text)
		if got := execTime(t); got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
	for _, text := range []string{"40", "0s", "-1m", "forty minutes"} {
		t.Setenv(PatienceVariable, text)
		r := &refusal{TB: t}
		execTime(r)
		if !strings.Contains(r.why, PatienceVariable) || !strings.Contains(r.why, text) {
			t.Errorf("%q: %q; want a refusal that names it", text, r.why)
		}
	}
}

// TestPatienceEnds shows that the variable is what ends a command that hangs.
func TestPatienceEnds(t *testing.T) {
	t.Setenv(PatienceVariable, "50ms")
	f := New(t, "/bin/sh", Self())
	if r := f.Exec(t, "/bin/sleep", "60"); r.Code != 137 || r.Elapsed > 30*time.Second {
		t.Errorf("exit code %d after %v; want 137 at once", r.Code, r.Elapsed)
	}
}
