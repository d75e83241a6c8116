package docker

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest/plant"
	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/bawn-dev/bawn/internal/testenv/testhome"
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

// TestCopyReplaced: neither a workspace nor a layer is used that is not the one that was
// planned. The control is TestCopy.
func TestCopyReplaced(t *testing.T) {
	testenv.Need(t, "docker", "root")
	p := provide(t, Options{})
	for _, which := range []string{"ws", "layer"} {
		req := request(t)
		parent := filepath.Dir(req.Dir)
		place := func(name string) string { return filepath.Join(parent, name) }
		testhome.Check(t, os.Mkdir(place("layer"), 0o700))
		plant.NewCopy(t, req.Dir, place("layer"))
		req.Copy = place("layer")
		plan, err := p.Plan(req)
		testhome.Check(t, err)
		testhome.Check(t, os.Rename(place(which), place("was")))
		testhome.Check(t, os.CopyFS(place(which), os.DirFS(place("was"))))
		g, err := p.Start(plan, nil)
		if err == nil {
			g.Close()
		}
		if !errors.Is(err, unix.ESTALE) {
			t.Errorf("another %s: %v", which, err)
		}
	}
}

// TestCopyVolume: what an extra argument shows in the workspace is there on a copy, too.
func TestCopyVolume(t *testing.T) {
	testenv.Need(t, "docker", "root")
	dir := t.TempDir()
	testhome.Check(t, os.WriteFile(filepath.Join(dir, "shown"), nil, 0o644))
	volume := "--volume=" + dir + ":" + defaultWorkspace + "/old:ro"
	req := request(t)
	req.Copy = t.TempDir()
	plant.NewCopy(t, req.Dir, req.Copy)
	g, _ := started(t, provide(t, Options{ExtraArgs: []string{volume}, Allowed: []string{volume}}), req)
	if out, _ := run(t, g, "ls old; echo x >kept; echo x >old/kept; ls old"); !strings.HasPrefix(out, "shown\n") || !strings.HasSuffix(out, "\nshown\n") {
		t.Errorf("the guest finds %q", out)
	}
}
