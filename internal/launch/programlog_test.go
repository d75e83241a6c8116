package launch

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/audit"
	"github.com/bawn-dev/bawn/internal/guard"
	"github.com/bawn-dev/bawn/internal/runner"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// TestProgramLogIsBounded: a guest that starts programs without end fills its share of the
// log; the log then says once that what follows is missing. The control is a larger share.
func TestProgramLogIsBounded(t *testing.T) {
	const programs = 200
	recorded := func(share int64) (starts, ends int) {
		dir := filepath.Join(t.TempDir(), "audit")
		log, err := audit.Open(dir, audit.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s := &runner.Session{Session: bawn.Session{ID: "s"}, Plan: unsandboxedPlan{}, Guard: guard.Guard{Recorder: log}}
		l := newProgramLog()
		l.begin(s, audit.NewShare(log, share, "the session's programs"))
		for range programs {
			l.started(sandbox.Program{Names: []string{"/usr/bin/true"}, Args: []string{strings.Repeat("x", 100)}, PID: 1, Parent: 1})
		}
		l.end()
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
		for e, err := range audit.Query(dir, audit.Filter{}) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Event.Resource == "further programs" {
				ends++
			} else {
				starts++
			}
		}
		return starts, ends
	}
	if starts, ends := recorded(1 << 20); starts != programs || ends != 0 {
		t.Errorf("control: %d programs are recorded, and %d times their end", starts, ends)
	}
	if starts, ends := recorded(10_000); starts == 0 || starts > 100 || ends != 1 {
		t.Errorf("%d programs are recorded in 10,000 bytes, and %d times their end; want it once", starts, ends)
	}
}
