package launch

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
	"github.com/bawn-dev/bawn/internal/session"
	"github.com/bawn-dev/bawn/internal/verb"
)

// TestPrompterHasTheShare: where a session's share of the log is used up its prompter
// asks nobody.
func TestPrompterHasTheShare(t *testing.T) {
	home := t.TempDir()
	e := &Env{World: verb.World{Environ: []string{"HOME=" + home, "XDG_STATE_HOME=" + home}, Dir: home, Stderr: os.Stderr}}
	log, err := audit.Open(filepath.Join(home, "audit"), audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for bytes, full := range map[int64]bool{10: true, audit.MaxShare: false} {
		s := &runner.Session{Guard: guard.Guard{Recorder: audit.NewShare(log, bytes, "the session")}}
		s.ID = "s"
		f := &Launch{Spec: session.Spec{Quiet: true, Asks: home + "/nobody.sock"}}
		prompter, err := f.Prompter(e, s, nil)
		if err != nil {
			t.Fatal(err)
		}
		limit := 100 * time.Millisecond
		if full {
			limit = 20 * time.Second
		}
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		_, err = prompter.Request(ctx, approval.Question{Action: bawn.Action{Kind: bawn.Command, Operation: bawn.Exec, Resource: "ls"}})
		cancel()
		prompter.Close()
		if err == nil || strings.Contains(err.Error(), "nobody is asked: the session has taken its share") != full {
			t.Errorf("with a share of %d bytes: %v", bytes, err)
		}
	}
}
