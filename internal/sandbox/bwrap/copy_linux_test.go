package bwrap

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox/inside"
)

// TestCopy: what the guest writes goes into the layer, which it has nowhere else, and so
// has what the sandbox was made with: capabilities, the workspace itself, and what is
// hidden in it. The control is a session without a copy.
func TestCopy(t *testing.T) {
	need(t)
	const look = `exec 2>&1; echo new >new; rm -r old; echo more >>kept; ls; cat secret/key; ls -A /dev/shm
		grep -E 'Cap(Prm|Eff|Bnd|Amb)' /proc/self/status; grep -c " $PWD " /proc/self/mountinfo`
	for _, network := range []bawn.NetworkMode{bawn.NetworkNone, bawn.NetworkAllowlist} {
		for _, copied := range []bool{true, false} {
			ws, layer := workspace(t), workspace(t)
			for dir, file := range map[string]string{"old": "f", "secret": "key", ".": "kept"} {
				check(t, os.MkdirAll(filepath.Join(ws, dir), 0o755))
				check(t, os.WriteFile(filepath.Join(ws, dir, file), []byte("mine\n"), 0o644))
			}
			for _, dir := range []string{"upper", "lower"} {
				check(t, os.Mkdir(filepath.Join(layer, dir), 0o755))
			}
			req := here(ws, network)
			req.Hidden = []string{layer}
			req.Session.Isolation.Mounts = append(req.Session.Isolation.Mounts, bawn.Mount{Path: filepath.Join(ws, "secret"), Access: bawn.Hidden})
			if copied {
				req.Copy = layer
			}
			g := started(t, planned(t, req))
			out := script(t, g, look)
			if !strings.HasPrefix(out, "kept\nnew\nsecret\n") || strings.Contains(out, "mine") || strings.Count(out, "\t0000000000000000\n") != 4 {
				t.Errorf("%s, copy %v: the guest finds %q", network, copied, out)
			}
			names := func(dir string) (list string) {
				all, err := filepath.Glob(filepath.Join(dir, "*"))
				check(t, err)
				for _, p := range all {
					list += filepath.Base(p) + " "
				}
				return list
			}
			inWorkspace, inLayer := "kept new secret ", ""
			if copied {
				inWorkspace, inLayer = "kept old secret ", "kept new old "
			}
			if is, upper := names(ws), names(filepath.Join(layer, "upper")); is != inWorkspace || upper != inLayer {
				t.Errorf("%s, copy %v: workspace %q, layer %q", network, copied, is, upper)
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
