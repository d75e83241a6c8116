package plugincli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/audit"
	"github.com/bawn-dev/bawn/internal/guard"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/runner"
	"github.com/bawn-dev/bawn/internal/session"
	"github.com/bawn-dev/bawn/internal/verb"
)

// TestGatewaysHaveShares: who calls tools or engines from outside of a session
// is bounded in what it has recorded, too, and denied when that is used up. The
// control has room.
func TestGatewaysHaveShares(t *testing.T) {
	for bytes, full := range map[int64]bool{10: true, 0: false} {
		home := t.TempDir()
		e := &launch.Env{World: verb.World{Environ: []string{"HOME=" + home, "XDG_STATE_HOME=" + home}, Dir: home, Stderr: os.Stderr}, LogShare: bytes}
		if err := launch.MakeStateDir(e); err != nil {
			t.Fatal(err)
		}
		f := &launch.Launch{Spec: session.Spec{Quiet: true, Asks: home + "/nobody.sock"}}
		s := &runner.Session{}
		s.ID, s.Mode, s.Autonomy, s.Isolation.Workspace = "s", bawn.ModePermissive, bawn.AutonomyFull, home
		check, end, err := launch.ContainerGuard(f, e, nil, s)
		if err != nil {
			t.Fatal(err)
		}
		calls, err := newMCPCalls(f, e, &mcpSession{Session: s.Session}, nil)
		if err != nil {
			t.Fatal(err)
		}
		a := bawn.Action{Kind: bawn.Command, Operation: bawn.Exec, Resource: "pwd", Dir: home}
		for who, d := range map[string]bawn.Decision{"proxy": check(t.Context(), a), "gateway": calls.judge(t.Context(), a, "")} {
			if (d.Verdict == bawn.Allow) == full || (d.Rule == guard.RuleRecorder) != full {
				t.Errorf("the %s with a share of %d bytes: %+v", who, bytes, d)
			}
		}
		end()
		calls.close()
		found := 0
		for _, err := range audit.Query(filepath.Join(home, "bawn", "audit"), audit.Filter{}) {
			if err != nil {
				t.Fatal(err)
			}
			found++
		}
		if (found == 0) != full {
			t.Errorf("with a share of %d bytes the log has %d events", bytes, found)
		}
	}
}
