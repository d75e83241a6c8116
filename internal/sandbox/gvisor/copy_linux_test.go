package gvisor

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox/kernel"
	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest/plant"
)

// TestCopy: what the guest writes goes into the layer, which it has nowhere else, and what
// is hidden in the workspace stays hidden. The control is a session without a copy.
func TestCopy(t *testing.T) {
	for _, copied := range []bool{true, false} {
		c := plant.NewCopy(t, workspace(t), workspace(t))
		req := request(c.Workspace, bawn.NetworkNone)
		req.Hidden = []string{c.Layer}
		req.Session.Isolation.Mounts = append(req.Session.Isolation.Mounts, bawn.Mount{Path: c.Hidden(), Access: bawn.Hidden})
		if copied {
			req.Copy, req.Session.ID = c.Layer, "s2"
		}
		out, _ := run(t, started(t, req), c.Script())
		c.Check(t, out, copied)
	}
}

// TestCopyRemedy: where the kernel mounts no overlay, people learn what to do.
func TestCopyRemedy(t *testing.T) {
	for name, want := range map[string]bool{"copy /w": true, "bind /w": false} {
		var err *kernel.StartError
		if !errors.As((&guest{}).explain(&stepFailure{step{Name: name, Errno: int(syscall.EPERM)}}), &err) || strings.Contains(err.Remedy, "without --copy") != want {
			t.Errorf("%s: %+v", name, err)
		}
	}
}
