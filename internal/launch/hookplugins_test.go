package launch

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/pluginhook"
	"github.com/bawn-dev/bawn/internal/session"
	"github.com/bawn-dev/bawn/internal/verb"
)

// TestHookPlugins: the human's plugins have none themselves. Manifests are read when something is judged.
func TestHookPlugins(t *testing.T) {
	home := t.TempDir()
	e := &Env{World: verb.World{Environ: []string{"HOME=" + home}, Stderr: os.Stderr}}
	plugins := &Launch{Spec: session.Spec{Plugin: true, Quiet: true}}
	if plugins.hookPlugins(e, home) != nil {
		t.Error("a plugin has hooks")
	}
	set := (&Launch{Spec: session.Spec{Quiet: true}}).hookPlugins(e, home)
	dir := filepath.Join(home, ".config/bawn/plugins")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "guard.toml"), []byte("kind = \"hook\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := bawn.Action{Kind: bawn.Command, Operation: bawn.Exec, Resource: "ls", At: time.Unix(1, 0)}
	if d := set.Tighten(t.Context(), a, bawn.Decision{Verdict: bawn.Allow}); d.Verdict != bawn.Deny || d.Rule != pluginhook.RuleUnread {
		t.Errorf("%+v", d)
	}
}
