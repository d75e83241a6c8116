package bwrap

import (
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest/plant"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// TestPlants leaves in private git directories, and in a session's own, what git
// on the host would execute or obey. The control is in package native.
func TestPlants(t *testing.T) {
	need(t)
	testenv.Need(t, "git", "python3")
	w := plant.New(t, workspace(t), plant.Sample(4))
	w.Note()
	req := here(w.Dir, bawn.NetworkNone)
	req.Session.Isolation.Protect = true
	req.Git, req.GitPool, req.Hidden = w.Private(t), w.Pool(), []string{w.State}
	g := started(t, planned(t, req))
	t.Log(script(t, g, w.Plants(w.Dir)))
	out := script(t, g, `cd `+w.Dir+` && export GIT_CONFIG_GLOBAL=/dev/null && git init -q new && cd new && git config user.name a && git config user.email b && git commit -q --allow-empty -m one && git log --format=%s; cd .. && mv new newer && git -C newer log --format=%s; rm -rf newer && ls -d new*`)
	if want := "one\none\n"; len(out) < len(want) || out[:len(want)] != want {
		t.Errorf("a repository of the guest's own: %q", out)
	}
	if got := w.Changed(); len(got) > 0 {
		t.Errorf("git directories of the host changed: %q", got)
	}
	if got := w.Struck(t); len(got) > 0 {
		t.Errorf("executed or obeyed: %q", got)
	}
}
