package docker

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest/plant"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// TestCopy: what the guest writes goes into the layer, which it has nowhere else, and what
// is hidden in the workspace stays hidden. The control is a session without a copy.
func TestCopy(t *testing.T) {
	testenv.Need(t, "docker", "root")
	p := provide(t, Options{})
	if !sandbox.AbilitiesOf(p).Copy {
		t.Fatal("it has no copies")
	}
	for _, copied := range []bool{true, false} {
		req := request(t)
		layer := filepath.Join(t.TempDir(), "layer")
		if err := os.Mkdir(layer, 0o700); err != nil {
			t.Fatal(err)
		}
		c := plant.NewCopy(t, req.Session.Isolation.Workspace, layer)
		req.Hidden = []string{layer}
		req.Session.Isolation.Mounts = append(req.Session.Isolation.Mounts, bawn.Mount{Path: c.Hidden(), Access: bawn.Hidden})
		if copied {
			req.Copy, req.Session.ID = layer, "copied"
		}
		g, _ := started(t, p, req)
		out, _ := run(t, g, c.Script())
		c.Check(t, out, copied)
	}
}
