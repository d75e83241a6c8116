package plant

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv/testhome"
)

// A Copy is a workspace, and the layer of a session on a copy of it.
type Copy struct{ Workspace, Layer string }

// NewCopy fills two empty directories.
func NewCopy(t testing.TB, workspace, layer string) Copy {
	t.Helper()
	for dir, file := range map[string]string{"old": "f", "secret": "key", "": "kept"} {
		testhome.Check(t, os.MkdirAll(filepath.Join(workspace, dir), 0o755))
		testhome.Check(t, os.WriteFile(filepath.Join(workspace, dir, file), []byte("mine\n"), 0o644))
	}
	for _, dir := range []string{"upper", "lower"} {
		testhome.Check(t, os.Mkdir(filepath.Join(layer, dir), 0o755))
	}
	return Copy{workspace, layer}
}

// Hidden is the directory that the session must hide.
func (c Copy) Hidden() string { return filepath.Join(c.Workspace, "secret") }

// Script is what a guest does in the workspace: it writes, removes, and looks for what is
// hidden from it, and for the layer.
func (c Copy) Script() string {
	return `exec 2>/dev/null; echo new >new; rm -r old; echo more >>kept; ls; cat secret/key; ls -A /dev/shm ` + c.Layer
}

// Check wants what the script has printed and done to be that of a session on the copy, or
// without one, which is the control.
func (c Copy) Check(t testing.TB, out string, copied bool) {
	t.Helper()
	if list, rest, _ := strings.Cut(out, "secret\n"); list != "kept\nnew\n" || strings.Contains(rest, "mine") || strings.Contains(rest, "upper") {
		t.Errorf("copy %v: the guest finds %q", copied, out)
	}
	names := func(dir string) (list string) {
		all, err := os.ReadDir(dir)
		testhome.Check(t, err)
		for _, e := range all {
			list += e.Name() + " "
		}
		return list
	}
	inWorkspace, inLayer := "kept new secret ", ""
	if copied {
		inWorkspace, inLayer = "kept old secret ", "kept new old "
	}
	if ws, layer := names(c.Workspace), names(filepath.Join(c.Layer, "upper")); ws != inWorkspace || layer != inLayer {
		t.Errorf("copy %v: workspace %q, layer %q", copied, ws, layer)
	}
}
