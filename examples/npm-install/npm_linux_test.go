// Package npminstall tests the example.
package npminstall

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/bawn-dev/bawn/internal/testenv/testhome"
)

// TestRun: the example itself ends with 1 where its claim does not hold, in either
// direction.
func TestRun(t *testing.T) {
	testenv.Need(t, "userns", "landlock", "seccomp", "notify", "git", "node", "npm")
	testenv.ByUser(t)
	dir, err := os.MkdirTemp("/var/tmp", "bawn-npm-bin-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := testhome.Programs(dir, "cmd/bawn", "cmd/bawnd", "cmd/bawn-egress"); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("./run")
	cmd.Env = append(os.Environ(), "BAWN="+filepath.Join(dir, "bawn"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v", err)
	}
	t.Logf("%s", out)
}
