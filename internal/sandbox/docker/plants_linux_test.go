package docker

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest/plant"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// TestPlants leaves in private git directories, in the host's, and in a session's
// own, what git on the host would execute or obey. The control is in package native.
func TestPlants(t *testing.T) {
	testenv.Need(t, "docker", "git", "python3")
	for _, private := range []bool{true, false} {
		if testenv.Short() && !private { // native tries those
			continue
		}
		base := filepath.Join(t.TempDir(), "base")
		if err := os.Mkdir(base, 0o755); err != nil {
			t.Fatal(err)
		}
		w := plant.New(t, base, plant.Sample(4))
		w.Note()
		req := request(t)
		iso := &req.Session.Isolation
		iso.Workspace, req.Dir, iso.Mounts = w.Dir, w.Dir, []bawn.Mount{{Path: w.Dir, Access: bawn.ReadWrite, Why: "workspace"}}
		iso.Resources.PIDs, req.Session.ID = 300, fmt.Sprintf("plants-%v", private)
		if private {
			req.Git = w.Private(t)
		}
		g, _ := started(t, provide(t, Options{}), req)
		out, _ := run(t, sandbox.Guest(g), w.Plants(defaultWorkspace))
		t.Log(out)
		if got := w.Changed(); len(got) > 0 {
			t.Errorf("private %v: git directories of the host changed: %q", private, got)
		}
		if got := w.Struck(t); len(got) > 0 {
			t.Errorf("private %v: executed or obeyed: %q", private, got)
		}
	}
}
