package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval"
	"github.com/bawn-dev/bawn/internal/audit"
	"github.com/bawn-dev/bawn/internal/guard"
	"github.com/bawn-dev/bawn/internal/runner"
)

// TestDeskHasTheShare: where a session's share of the log is used up its desk
// asks nobody.
func TestDeskHasTheShare(t *testing.T) {
	home := t.TempDir()
	e := &Env{Environ: []string{"HOME=" + home, "XDG_STATE_HOME=" + home}, Dir: home, Stderr: os.Stderr}
	log, err := audit.Open(filepath.Join(home, "audit"), audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for bytes, full := range map[int64]bool{10: true, audit.MaxShare: false} {
		s := &runner.Session{Guard: guard.Guard{Recorder: audit.NewShare(log, bytes, "the session")}}
		s.ID = "s"
		f := &runFlags{quiet: true, asks: home + "/nobody.sock"}
		desk, err := f.desk(e, s)
		if err != nil {
			t.Fatal(err)
		}
		limit := 100 * time.Millisecond
		if full {
			limit = 20 * time.Second
		}
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		_, err = desk.Request(ctx, approval.Question{Action: bawn.Action{Kind: bawn.Command, Operation: bawn.Exec, Resource: "ls"}})
		cancel()
		desk.Close()
		if err == nil || strings.Contains(err.Error(), "nobody is asked: the session has taken its share") != full {
			t.Errorf("with a share of %d bytes: %v", bytes, err)
		}
	}
}

// TestGatewaysHaveShares: who calls tools or engines from outside of a session
// is bounded in what it has recorded, too, and denied when that is used up. The
// control has room.
func TestGatewaysHaveShares(t *testing.T) {
	for bytes, full := range map[int64]bool{10: true, 0: false} {
		home := t.TempDir()
		e := &Env{Environ: []string{"HOME=" + home, "XDG_STATE_HOME=" + home}, Dir: home, Stderr: os.Stderr, logShare: bytes}
		if err := makeStateDir(e); err != nil {
			t.Fatal(err)
		}
		f := &runFlags{quiet: true, asks: home + "/nobody.sock"}
		s := &runner.Session{}
		s.ID, s.Mode, s.Autonomy, s.Isolation.Workspace = "s", bawn.ModePermissive, bawn.AutonomyFull, home
		check, end, err := f.containerGuard(e, s)
		if err != nil {
			t.Fatal(err)
		}
		calls, err := f.mcpCalls(e, &mcpSession{Session: s.Session})
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
