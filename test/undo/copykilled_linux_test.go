package undo_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/bawn-dev/bawn/internal/testenv/testhome"
)

// TestCopyKilled: bawn is killed while a guest works on a copy. What the guest has changed
// can be taken over, and no mount of the session is left on the host.
func TestCopyKilled(t *testing.T) { onCopies(t, copyKilled) }

func copyKilled(t *testing.T, r *account, run string) {
	ws := filepath.Join(r.Home, "killed")
	testhome.Check(t, os.Mkdir(ws, 0o755))
	mounted := func() bool {
		text, err := os.ReadFile("/proc/self/mountinfo")
		return err == nil && strings.Contains(string(text), r.Home)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := r.Command(ctx, "sh", "-c", `cd "$0" && exec `+run+`sh -c "echo theirs >new; sleep 1000"`, ws)
	testhome.Check(t, cmd.Start())
	testenv.Until(t, "the guest's change", func() bool {
		return strings.Contains(r.Run(t, "sh", "-c", `cd "$0" && bawn diff --stat p`, ws).Out, " new")
	})
	testhome.Check(t, cmd.Process.Kill())
	_ = cmd.Wait() // as it was told
	testenv.Until(t, "the copy's end", func() bool {
		return r.Run(t, "sh", "-c", `cd "$0" && bawn apply p --yes`, ws).Code == 0
	})
	if text, err := os.ReadFile(filepath.Join(ws, "new")); string(text) != "theirs\n" {
		t.Errorf("taken over: %q, %v", text, err)
	}
	r.must(t, "sh", "-c", `cd "$0" && bawn discard p --yes`, ws)
	if mounted() {
		t.Error("something is mounted below the home on the host")
	}
}
