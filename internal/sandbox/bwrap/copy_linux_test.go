package bwrap

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox/inside"
	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest/plant"
)

// TestCopy: what the guest writes goes into the layer, which it has nowhere else. Nor has
// it the capabilities that the sandbox was made with, or what is hidden in the workspace.
// The control is a session without a copy.
func TestCopy(t *testing.T) {
	need(t)
	for _, network := range []bawn.NetworkMode{bawn.NetworkNone, bawn.NetworkAllowlist} {
		for _, copied := range []bool{true, false} {
			c := plant.NewCopy(t, workspace(t), workspace(t))
			req := here(c.Workspace, network)
			req.Hidden = []string{c.Layer}
			req.Session.Isolation.Mounts = append(req.Session.Isolation.Mounts, bawn.Mount{Path: c.Hidden(), Access: bawn.Hidden})
			if copied {
				req.Copy = c.Layer
			}
			g := started(t, planned(t, req))
			c.Check(t, script(t, g, c.Script()), copied)
			if out := script(t, g, `grep -E 'Cap(Prm|Eff|Bnd|Amb)' /proc/self/status`); strings.Count(out, "\t0000000000000000\n") != 4 {
				t.Errorf("%s, copy %v: %q", network, copied, out)
			}
		}
	}
}

// TestCopyRemedy: where the kernel mounts no overlay, people learn what to do.
func TestCopyRemedy(t *testing.T) {
	for errno, want := range map[unix.Errno]string{unix.EPERM: "without --copy", unix.EINVAL: "XDG_STATE_HOME"} {
		if got := remedy(&inside.StepError{Step: "mount overlay on /w", Errno: errno}); !strings.Contains(got, want) {
			t.Errorf("%v: %q", errno, got)
		}
	}
	if got := remedy(&inside.StepError{Step: "network", Errno: unix.EPERM}); strings.Contains(got, "--copy") {
		t.Errorf("another step: %q", got)
	}
}
