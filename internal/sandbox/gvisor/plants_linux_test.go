package gvisor

import (
	"maps"
	"slices"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest/plant"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// TestPlants leaves in private git directories what git on the host would execute
// or obey. Those that the guest makes itself nobody refuses here. The control is in
// package native.
func TestPlants(t *testing.T) {
	testenv.Need(t, "git", "python3", "runsc")
	names := slices.Sorted(maps.Keys(plant.Live))
	for few := range slices.Chunk(names, 8) { // each takes two mounts, and gVisor ends at some hundred of them
		kinds := map[string]string{}
		for _, name := range few {
			kinds[name] = plant.Live[name]
		}
		t.Run(few[0], func(t *testing.T) { plantAll(t, kinds) })
	}
}

func plantAll(t *testing.T, kinds map[string]string) {
	w := plant.New(t, workspace(t), kinds)
	w.Note()
	req := request(w.Dir, bawn.NetworkNone)
	req.Session.Isolation.Protect = true
	req.Git, req.Hidden = w.Private(t), []string{w.State}
	out, _ := run(t, started(t, req), w.Plants(w.Dir))
	t.Log(out)
	if got := w.Changed(); len(got) > 0 {
		t.Errorf("git directories of the host changed: %q", got)
	}
	if got := w.Struck(t); len(got) > 0 {
		t.Errorf("executed or obeyed: %q", got)
	}
}
