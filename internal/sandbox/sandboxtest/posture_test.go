//go:build linux

package sandboxtest_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest"
)

// TestPostureUnsandboxed shows that the collector sees what is not confined.
func TestPostureUnsandboxed(t *testing.T) {
	asEach(t, func(t *testing.T, f *sandboxtest.Fixtures) {
		p := sandboxtest.Posture(t, sandboxtest.NoSandbox, f)
		if p.NoNewPrivs != "0" || p.Seccomp != "0" {
			t.Errorf("without a sandbox: no_new_privs %s, seccomp %s", p.NoNewPrivs, p.Seccomp)
		}
		for _, name := range []string{"user", "pid", "net", "ipc", "mnt", "uts"} {
			if p.Namespaces[name] != "same" {
				t.Errorf("without a sandbox the %s namespace is %s", name, p.Namespaces[name])
			}
		}
		if strings.Trim(p.Capabilities["CapBnd"], "0") == "" {
			t.Error("without a sandbox the bounding set is empty")
		}
		for _, leak := range []string{"3 directory", "4 file", "5 socket"} {
			if !slices.Contains(p.Descriptors, leak) {
				t.Errorf("leaked descriptor %q not seen in %q", leak, p.Descriptors)
			}
		}
		if p.OtherMounts.NoSUID && p.OtherMounts.NoDev {
			t.Error("every mount of the host is nosuid and nodev")
		}
	})
}

// TestNativePosture compares what a guest is with golden files.
func TestNativePosture(t *testing.T) { contenderNamed(t, "native").posture(t) }

// posture compares what a guest is with golden files.
func (c contender) posture(t *testing.T) {
	c.each(t, func(t *testing.T, f *sandboxtest.Fixtures) {
		who := "root"
		if f.UID != 0 {
			who = "user"
		}
		for _, net := range c.networks() {
			t.Run(net, func(t *testing.T) {
				run := c.run("--net", net, "--memory", "512", "--pids", "128")
				sandboxtest.CheckPosture(t, run, f, filepath.Join("testdata", "posture", c.name+"-"+who+"-"+net+".golden"))
			})
		}
	})
}

// TestPostureDiffers shows that a golden file of another posture is noticed.
func TestPostureDiffers(t *testing.T) {
	if *update {
		return // it would be written
	}
	f := sandboxtest.New(t, victim, sandboxtest.Self())
	golden := filepath.Join(t.TempDir(), "golden")
	if err := os.WriteFile(golden, []byte("{}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := &recorder{TB: t}
	sandboxtest.CheckPosture(r, sandboxtest.NoSandbox, f, golden)
	if !r.failed {
		t.Error("an empty golden file is accepted")
	}
}

// recorder notes failures instead of failing.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Errorf(string, ...any) { r.failed = true }
