package plugincli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/verb"
)

// TestContainedCalls: with policy.contained = "decide" the servers' sandboxes count for
// nothing when a call is decided. The control has no configuration.
func TestContainedCalls(t *testing.T) {
	for text, want := range map[string]bawn.Contained{"": bawn.ContainedFully, "[policy]\ncontained = \"decide\"\n": {}} {
		home := t.TempDir()
		dir := filepath.Join(home, ".config", "bawn")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		e := &launch.Env{World: verb.World{Environ: []string{"HOME=" + home, "XDG_STATE_HOME=" + home}, Dir: home, Stderr: os.Stderr}}
		s, l, err := (&Serving{Env: e}).session()
		if err != nil {
			t.Fatal(err)
		}
		calls, err := newMCPCalls(l, e, s, nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, got := range map[string]bawn.Contained{"calls": calls.calls.Question.Contained, "meant": calls.meant.Question.Contained} {
			if got != want {
				t.Errorf("%q: %s: %+v, want %+v", text, name, got, want)
			}
		}
		calls.close()
	}
}
