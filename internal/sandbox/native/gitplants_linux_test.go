package native

import (
	"os"
	"testing"

	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest/plant"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// TestPlants leaves in git directories what git on the host would execute or
// obey: in private ones, in those that the host has, and in a session's own. The
// control is the same without a session. Where testenv.Short says so, an ordinary
// user tries half of the plants in private git directories, root half of those in the
// host's, and of the rest each tries every eighth.
func TestPlants(t *testing.T) {
	testenv.Need(t, "userns", "notify", "git", "python3", "landlock")
	user := os.Geteuid() != 0
	planted := func(many bool) map[string]string {
		if many {
			return plant.Sample(2)
		}
		return plant.Sample(8)
	}
	control := plant.New(t, workspace(t), planted(user))
	control.Plant(t)
	if got := control.Struck(t); len(got) != len(planted(user)) {
		t.Errorf("control: %d of %d plants: %q", len(got), len(planted(user)), got)
	}
	for name, c := range map[string]struct {
		p    sandbox.Provider
		many bool
		with func(*sandbox.Request, *plant.Workspace)
	}{
		"private":    {New(""), user, func(r *sandbox.Request, w *plant.Workspace) { r.Git, r.GitPool = w.Private(t), w.Pool() }},
		"the host's": {New(""), !user, func(r *sandbox.Request, w *plant.Workspace) { r.GitPool = w.Pool() }},
		"landlock":   {NewLandlock(""), false, func(*sandbox.Request, *plant.Workspace) {}},
	} {
		t.Run(name, func(t *testing.T) {
			w := plant.New(t, workspace(t), planted(c.many))
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
