package native

import (
	"maps"
	"os"
	"testing"

	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest/plant"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// TestPlants leaves in git directories what git on the host would execute or
// obey: in private ones, in those that the host has, and in a session's own. The
// control is the same without a session.
func TestPlants(t *testing.T) {
	testenv.Need(t, "userns", "notify", "git", "python3", "landlock")
	all := maps.Clone(plant.Live)
	maps.Copy(all, plant.Made)
	control := plant.New(t, workspace(t), all)
	control.Plant(t)
	if got := control.Struck(t); len(got) != len(all) {
		t.Errorf("control: %d of %d plants: %q", len(got), len(all), got)
	}
	for name, c := range map[string]struct {
		p    sandbox.Provider
		with func(*sandbox.Request, *plant.Workspace)
	}{
		"private":    {New(""), func(r *sandbox.Request, w *plant.Workspace) { r.Git, r.GitPool = w.Private(t), w.Pool() }},
		"the host's": {New(""), func(r *sandbox.Request, w *plant.Workspace) { r.GitPool = w.Pool() }},
		"landlock":   {NewLandlock(""), func(*sandbox.Request, *plant.Workspace) {}},
	} {
		t.Run(name, func(t *testing.T) {
			w := plant.New(t, workspace(t), all)
			w.Note()
			req := request(w.Dir)
			if c.with(&req, w); c.p.Name() != layout.LandlockName {
				req.Hidden = append(req.Hidden, w.State)
			}
			req.Session.ID = "plants"
			plan, err := c.p.Plan(req)
			if err != nil {
				t.Fatal(err)
			}
			out, _, denials := execute(t, c.p, plan, w.Plants(w.Dir))
			if os.Getenv("BAWN_TEST_VERBOSE") != "" {
				t.Log(out, denials)
			}
			if got := w.Changed(); len(got) > 0 {
				t.Errorf("git directories of the host changed: %q", got)
			}
			if got := w.Struck(t); len(got) > 0 {
				t.Errorf("executed or obeyed: %q", got)
			}
		})
	}
}
