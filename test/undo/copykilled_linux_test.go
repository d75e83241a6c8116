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
// can be taken over, and no overlay of Bawn's is mounted on the host. The control is where
// the guest sees it.
func TestCopyKilled(t *testing.T) { onCopies(t, copyKilled) }

func copyKilled(t *testing.T, r *onCopy) {
	const overlay = "upperdir=upper"
	ws := filepath.Join(r.Home, "killed")
	testhome.Check(t, os.Mkdir(ws, 0o755))
	none := func(when string) {
		text, err := os.ReadFile("/proc/self/mountinfo")
		testhome.Check(t, err)
		if strings.Contains(string(text), overlay) {
			t.Errorf("%s: an overlay is mounted on the host: %s", when, text)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := r.Command(ctx, "sh", "-c", `cd "$0" && exec `+r.run+`sh -c "grep -c `+overlay+` /proc/self/mountinfo >seen; echo theirs >new; sleep 1000"`, ws)
	testhome.Check(t, cmd.Start())
	testenv.Until(t, "the guest's change", func() bool {
		return strings.Contains(r.Run(t, "sh", "-c", `cd "$0" && bawn diff p`, ws).Out, "+theirs")
	})
	none("while it runs")
	testhome.Check(t, cmd.Process.Kill())
	_ = cmd.Wait() // as it was told
	testenv.Until(t, "the copy's end", func() bool {
		return r.Run(t, "sh", "-c", `cd "$0" && bawn apply p --yes`, ws).Code == 0
	})
	if text, err := os.ReadFile(filepath.Join(ws, "new")); string(text) != "theirs\n" {
		t.Errorf("taken over: %q, %v", text, err)
	}
	if text, err := os.ReadFile(filepath.Join(ws, "seen")); r.hostKernel && string(text) != "1\n" {
		t.Errorf("control: the guest has seen %q, %v", text, err)
	}
	r.must(t, "sh", "-c", `cd "$0" && bawn discard p --yes`, ws)
	none("in the end")
}
