package cli

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/pluginhook"
)

// TestHookPlugins: the human's plugins have none themselves, and a child can't
// say that it is one of them. Manifests are read when something is judged.
func TestHookPlugins(t *testing.T) {
	home := t.TempDir()
	e := &Env{Environ: []string{"HOME=" + home}, Stderr: os.Stderr}
	plugins := &runFlags{noHooks: true, quiet: true}
	if plugins.hookPlugins(e, home) != nil {
		t.Error("a plugin has hooks")
	}
	child := &Env{Environ: e.Environ, Stderr: os.Stderr, child: &parentage{}}
	if plugins.hookPlugins(child, home) == nil {
		t.Error("a child has no hooks where its guest says so")
	}
	set := (&runFlags{quiet: true}).hookPlugins(e, home)
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
