package bwrap

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// everything asks for all that an isolation can.
func everything(network bawn.NetworkMode) bawn.Isolation {
	return bawn.Isolation{
		Protect: true, Network: network, Devices: []string{"null"},
		Resources: bawn.Resources{MemoryMB: 1, PIDs: 1, CPUs: 1, OpenFiles: 1, FileSizeMB: 1, Timeout: time.Second},
	}
}

// answered wants each attribute to be in list once, and unmet ones with what to
// do about them.
func answered(t *testing.T, list []bawn.Capability) {
	t.Helper()
	for _, network := range []bawn.NetworkMode{bawn.NetworkNone, bawn.NetworkAllowlist, bawn.NetworkFull} {
		for _, a := range sandbox.Needs(everything(network)) {
			n := 0
			for _, c := range list {
				if c.Attribute != a {
					continue
				}
				n++
				if c.Strength == bawn.Unenforced && (c.Why == "" || c.Remedy == "") || c.Strength != bawn.Unenforced && c.How == "" {
					t.Errorf("%s: %+v", a, c)
				}
			}
			if n != 1 {
				t.Errorf("%s is answered %d times", a, n)
			}
		}
	}
}

func TestEveryAttributeIsAnswered(t *testing.T) {
	need(t)
	answered(t, tried.Capabilities())
	if i := slices.IndexFunc(tried.Capabilities(), func(c bawn.Capability) bool { return c.Attribute == sandbox.NetAllow }); tried.Capabilities()[i].Strength != bawn.Enforced {
		t.Errorf("got %+v", tried.Capabilities()[i])
	}
}

// fake has a script stand for bwrap.
func fake(t *testing.T, script string) (path string) {
	t.Helper()
	dir := t.TempDir()
	path = filepath.Join(dir, Name)
	if script != "" {
		check(t, os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755))
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	if script == "" {
		t.Setenv("PATH", dir)
	}
	return path
}

// TestProvidersThatCannot wants nothing to be claimed, and everything to be said
// why: without bwrap, with an old one, where namespaces are closed, where it says
// nothing, where it lies about its process, where it hangs.
func TestProvidersThatCannot(t *testing.T) {
	bystander := exec.Command("sleep", "20")
	check(t, bystander.Start())
	defer func() {
		if err := bystander.Process.Signal(syscall.Signal(0)); err != nil {
			t.Errorf("a process that is not bwrap's was killed: %v", err)
		}
		_ = bystander.Process.Kill()
		_ = bystander.Wait()
	}()
	for name, tt := range map[string]struct{ script, why, remedy string }{
		"absent":           {"", "not in PATH", "apt-get install bubblewrap"},
		"old":              {"echo 'bwrap: Unknown option --bind-fd' >&2; exit 1", "--bind-fd", "0.10 or newer"},
		"closed":           {"echo 'bwrap: No permissions to creating new namespace, likely because the kernel does not allow it.' >&2; exit 1", "No permissions", "user namespaces"},
		"silent":           {"exit 0", "does not say", "bawn doctor"},
		"another process":  {fmt.Sprintf("echo '{\"child-pid\": %d}' >&4; exec sleep 20", bystander.Process.Pid), "not the one", "bawn doctor"},
		"no process":       {"echo '{\"child-pid\": -5}' >&4; exec sleep 20", "first process", "bawn doctor"},
		"no JSON":          {"echo 'child 7' >&4; exec sleep 20", "does not say", "bawn doctor"},
		"no first process": {"sleep 20 & echo \"{\\\"child-pid\\\": $!}\" >&4; wait", "", "bawn doctor"},
		"hangs":            {"exec sleep 20", "does not say", "bawn doctor"},
	} {
		t.Run(name, func(t *testing.T) {
			fake(t, tt.script)
			begin := time.Now()
			p := New("", os.Getenv("PATH"))
			if name == "hangs" || name == "no first process" {
				p.patience = 300 * time.Millisecond
			}
			list := p.Capabilities()
			answered(t, list)
			for _, c := range list {
				if c.Strength != bawn.Unenforced || !strings.Contains(c.Why, tt.why) || !strings.Contains(c.Remedy, tt.remedy) {
					t.Fatalf("got %+v", c)
				}
			}
			if d := time.Since(begin); d > 15*time.Second { // no case waits for its sleep
				t.Errorf("took %v", d)
			}
			if _, err := p.Plan(here(workspace(t), bawn.NetworkNone)); err == nil {
				t.Error("a plan was made")
			}
		})
	}
}

// TestHostChangesMeanwhile has bwrap fail as it does where a mount of the host
// goes away while it comes to that. The session starts with the next attempt; the
// control is one where all fail.
func TestHostChangesMeanwhile(t *testing.T) {
	need(t)
	real, err := exec.LookPath(Name)
	check(t, err)
	count := filepath.Join(t.TempDir(), "count")
	path := fake(t, `n=$(cat `+count+`); echo $((n-1)) > `+count+`
if [ $n -gt 0 ]; then
  echo 'bwrap: Can'"'"'t bind mount /oldroot/ on /newroot/: Unable to apply mount flags: remount "/newroot/x": Invalid argument' >&2
  exit 1
fi
exec `+real+` "$@"`)
	plan := planned(t, here(workspace(t), bawn.NetworkNone))
	p := &Provider{path: path, machine: tried.machine, facts: tried.facts}
	p.once.Do(func() {}) // it is found already
	for failing, want := range map[string]bool{"2": true, "100": false} {
		check(t, os.WriteFile(count, []byte(failing), 0o644))
		g, err := p.Start(plan, func(sandbox.Denial) {})
		if (err == nil) != want {
			t.Errorf("%s failures: got %v", failing, err)
		}
		if err == nil {
			check(t, g.Close())
		}
	}
}

// TestProbeIsKept wants one trial for a boot and a bwrap, and a new one for
// another bwrap, or after a start that failed.
func TestProbeIsKept(t *testing.T) {
	count := filepath.Join(t.TempDir(), "count")
	script := "echo >>" + count + "; echo no >&2; exit 1"
	path := fake(t, script)
	cache := filepath.Join(t.TempDir(), "cache", "probe-bwrap")
	runs := func() int {
		New(cache, os.Getenv("PATH")).Capabilities()
		text, err := os.ReadFile(count)
		check(t, err)
		return len(text)
	}
	once := runs()
	if again := runs(); again != once {
		t.Errorf("bwrap was started %d times, and then %d more", once, again-once)
	}
	check(t, os.WriteFile(path+".new", []byte("#!/bin/sh\n"+script), 0o755))
	check(t, os.Rename(path+".new", path))
	if again := runs(); again != 2*once {
		t.Errorf("another bwrap: %d starts, want %d", again, 2*once)
	}
	check(t, os.WriteFile(cache, []byte("nonsense"), 0o600))
	if again := runs(); again != 3*once {
		t.Errorf("a cache of nonsense: %d starts, want %d", again, 3*once)
	}
	forget(cache)
	if again := runs(); again != 4*once {
		t.Errorf("after a start that failed: %d starts, want %d", again, 4*once)
	}
}

// FuzzSupport reads what may be in the cache file.
func FuzzSupport(f *testing.F) {
	f.Add(formatSupport(support{why: "a", fix: "b", netWhy: "c", netFix: "d", ipv6: true}))
	f.Add(formatSupport(support{}))
	f.Add("\x00\x00\x00\x00maybe")
	f.Fuzz(func(t *testing.T, text string) {
		s, ok := parseSupport(text)
		if again, same := parseSupport(formatSupport(s)); ok && (!same || again != s) {
			t.Errorf("%q: %+v, then %+v", text, s, again)
		}
	})
}
