//go:build linux

package sandboxtest_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// marked lists the processes of the host that have mark in their command line.
func marked(mark string) (pids []int) {
	entries, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, p := range entries {
		if text, err := os.ReadFile(p); err == nil && bytes.Contains(text, []byte(mark)) {
			pids = append(pids, number(filepath.Base(filepath.Dir(p))))
		}
	}
	return pids
}

func number(s string) (n int) {
	for _, r := range s {
		n = n*10 + int(r-'0')
	}
	return n
}

// leaves reports which processes with mark are still there after a while: long
// where they must not be, and short where they are expected.
func leaves(mark string, while time.Duration) (pids []int) {
	for end := time.Now().Add(while); ; time.Sleep(50 * time.Millisecond) {
		if pids = marked(mark); len(pids) == 0 || time.Now().After(end) {
			return pids
		}
	}
}

// How long that is.
const (
	long  = 20 * time.Second
	short = time.Second
)

// end kills processes of this test that are still there.
func end(pids []int) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// TestNativeResources goes beyond the limits that a session was given. The
// amounts are bounded, and without a sandbox they are granted.
func TestNativeResources(t *testing.T) { contenderNamed(t, "native").resources(t) }

// resources goes beyond the limits that a session was given.
func (c contender) resources(t *testing.T) {
	tests := []struct {
		name    string
		flags   []string
		argv    []string
		granted string
	}{
		{"E168 memory", []string{"--memory", "64"}, []string{"memory", "256"}, "took all"},
		{"E167 processes", []string{"--pids", "48"}, []string{"swarm", "100"}, "started all"},
	}
	c.each(t, func(t *testing.T, f *sandboxtest.Fixtures) {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				argv := append([]string{f.Victim}, tt.argv...)
				if r := sandboxtest.NoSandbox(t, f, argv...); !strings.Contains(r.Stdout, tt.granted) {
					t.Fatalf("control: exit code %d, %q, %.300s; want %q", r.Code, r.Stdout, r.Stderr, tt.granted)
				}
				r := c.run(tt.flags...)(t, f, argv...)
				if strings.Contains(r.Stdout, tt.granted) || !strings.Contains(r.Stdout, "began") {
					t.Errorf("exit code %d, %q, %.300s; want it to begin and get less than it asks for", r.Code, r.Stdout, r.Stderr)
				}
				t.Logf("exit code %d, %q", r.Code, r.Stdout)
			})
		}
	})
}

// deaf are processes that do not care whether their time is over.
var deaf = []struct {
	name, actor string
	more        []string
}{
	{"E173 deaf to signals", "linger", nil},
	{"E174 busy and deaf", "spin", nil},
	{"E175 without standard descriptors", "linger", []string{"closed"}},
}

// deafActor is one of them, with its mark.
func deafActor(f *sandboxtest.Fixtures, i int) (mark string, argv []string) {
	mark = fmt.Sprintf("left-%d-%s", i, f.Token)
	return mark, append([]string{f.Victim, deaf[i].actor, mark}, deaf[i].more...)
}

// TestNativeTimeout wants a session that is over to be over, whatever its
// processes think of it.
func TestNativeTimeout(t *testing.T) {
	t.Parallel()
	contenderNamed(t, "native").timeout(t)
}

// timeout lets time run out for processes that do not care.
func (c contender) timeout(t *testing.T) {
	c.each(t, func(t *testing.T, f *sandboxtest.Fixtures) {
		for i, tt := range deaf {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				mark, argv := deafActor(f, i)
				r := c.run("--timeout", "1s")(t, f, argv...)
				if r.Code != 124 || r.Elapsed > 20*time.Second {
					t.Errorf("exit code %d after %v: %.300s; want 124 soon after 1s", r.Code, r.Elapsed, r.Stderr)
				}
				if left := leaves(mark, long); left != nil {
					end(left)
					t.Errorf("processes %v are left", left)
				}
			})
		}
	})
}

// TestActorsOutlive is the control of what providers must end. Without a
// sandbox the processes end neither by themselves, nor by a polite signal, nor
// with their parent.
func TestActorsOutlive(t *testing.T) {
	testenv.Whole(t) // it is the control
	t.Parallel()
	asEach(t, func(t *testing.T, f *sandboxtest.Fixtures) {
		for i, tt := range deaf {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				outlives(t, f, i)
			})
		}
		t.Run("E130 orphan", func(t *testing.T) {
			t.Parallel()
			mark := "orphan-" + f.Token
			r := sandboxtest.NoSandbox(t, f, f.Victim, "orphan", mark)
			testenv.Until(t, "the orphan", func() bool { return len(marked(mark)) == 1 })
			left := leaves(mark, short)
			end(left)
			if r.Code != 0 || len(left) != 1 {
				t.Errorf("control: exit code %d, left %v; want one process", r.Code, left)
			}
		})
	})
}

// ignores reports whether a process ignores a signal (proc_pid_status(5)).
func ignores(pid int, sig syscall.Signal) bool {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(text), "SigIgn:")
	mask, _, _ := strings.Cut(strings.TrimSpace(rest), "\n")
	bits, err := strconv.ParseUint(mask, 16, 64)
	return err == nil && bits&(1<<(sig-1)) != 0
}

func outlives(t *testing.T, f *sandboxtest.Fixtures, i int) {
	t.Helper()
	mark, argv := deafActor(f, i)
	cmd := f.Command(argv...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	testenv.Until(t, "a process that is deaf", func() bool { return ignores(cmd.Process.Pid, syscall.SIGTERM) })
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if leaves(mark, short) == nil {
		t.Error("control: the process ends by itself")
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// TestNativeLeavesNothing wants no process to outlive its session: E130.
func TestNativeLeavesNothing(t *testing.T) { contenderNamed(t, "native").leavesNothing(t) }

// leavesNothing wants no process to outlive its session, however it ends; its
// control is TestActorsOutlive.
func (c contender) leavesNothing(t *testing.T) {
	c.each(t, func(t *testing.T, f *sandboxtest.Fixtures) {
		mark := "left-" + f.Token
		t.Run("command ends", func(t *testing.T) {
			r := c.run()(t, f, f.Victim, "orphan", mark)
			if left := leaves(mark, long); r.Code != 0 || left != nil {
				end(left)
				t.Errorf("exit code %d: %.300s; left %v", r.Code, r.Stderr, left)
			}
		})
		t.Run("bawn is killed", func(t *testing.T) {
			c.killBawn(t, f, mark)
			if left := leaves(mark, long); left != nil {
				end(left)
				t.Errorf("processes %v are left", left)
			}
		})
	})
}

// TestNativeSweepsControlGroups wants the control groups of a killed bawn to be
// gone after the next session; nothing can remove them before. A session that
// ends by itself leaves none.
func TestNativeSweepsControlGroups(t *testing.T) {
	testenv.Need(t, "userns", "landlock", "seccomp", "notify", "root", "cgroup")
	f := sandboxtest.New(t, victim, sandboxtest.Self())
	mark := "left-" + f.Token
	native := contenderNamed(t, "native")
	var pid int
	for attempt := 0; ; attempt++ { // a session of another test may sweep them first
		pid = native.killBawn(t, f, mark)
		if left := leaves(mark, long); left != nil {
			end(left)
			t.Fatalf("processes %v are left", left)
		}
		if len(groupsOf(t, pid)) > 0 {
			break
		}
		if attempt == 20 {
			t.Fatal("control: bawn was killed and left no control group, so there is nothing to sweep")
		}
	}
	if r := native.run()(t, f, "true"); r.Code != 0 {
		t.Fatalf("the next session: exit code %d: %s", r.Code, r.Stderr)
	}
	if left := groupsOf(t, pid); len(left) != 0 {
		t.Errorf("after the next session %q are left", left)
	}
}

// groupsOf lists the control groups that the bawn with this number has made.
func groupsOf(t *testing.T, pid int) (list []string) {
	t.Helper()
	err := filepath.WalkDir("/sys/fs/cgroup", func(p string, e os.DirEntry, err error) error {
		if err == nil && e.IsDir() && strings.HasPrefix(e.Name(), "bawn-") && strings.Contains(e.Name(), fmt.Sprintf("-%d-", pid)) {
			list = append(list, p)
		}
		if errors.Is(err, os.ErrNotExist) {
			return nil // another session's, gone meanwhile
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// killBawn starts a session, kills bawn itself and returns its number.
func (c contender) killBawn(t *testing.T, f *sandboxtest.Fixtures, mark string) int {
	t.Helper()
	words := append(c.words(t, f), "--", f.Victim, "linger", mark)
	cmd := f.Command(words...)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if line != "ready\n" {
		t.Errorf("the guest says %q, %v; want ready", line, err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	return cmd.Process.Pid
}

// TestNativeFlood wants a guest that prints without end to cost bawn nothing:
// E172.
func TestNativeFlood(t *testing.T) {
	testenv.Need(t, "userns", "landlock", "seccomp", "notify")
	f := sandboxtest.New(t, victim, sandboxtest.Self())
	cmd := f.Command(f.Install(t, bawn), "run", "--", f.Victim, "flood", "512")
	n := counter{cmd: cmd}
	cmd.Stdout = &n
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if n.bytes != 512<<20 {
		t.Errorf("%d bytes arrived, want %d", n.bytes, 512<<20)
	}
	if n.peak == 0 || n.peak > 64<<10 {
		t.Errorf("bawn used %d KiB", n.peak)
	}
}

// A counter counts what a command writes, and notes every 16 MiB what that has
// had in memory at most, in KiB (VmHWM, proc_pid_status(5)). What wait4(2) tells
// contains what the process was forked from.
type counter struct {
	cmd         *exec.Cmd
	bytes, peak int
}

func (c *counter) Write(p []byte) (int, error) {
	before := c.bytes >> 24
	if c.bytes += len(p); c.bytes>>24 == before {
		return len(p), nil
	}
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid)) // it may have ended by the last
	if _, rest, there := strings.Cut(string(status), "\nVmHWM:"); there {
		kib, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
		c.peak = max(c.peak, number(kib))
	}
	return len(p), nil
}

// TestNativeLitter leaves things in the workspace on which a program of the
// host may hang or fall, and wants this session and the next to end: E177,
// E179, E180.
func TestNativeLitter(t *testing.T) { contenderNamed(t, "native").litter(t) }

// litter leaves things in the workspace on which a program of the host may
// hang or fall.
func (c contender) litter(t *testing.T) {
	c.each(t, func(t *testing.T, f *sandboxtest.Fixtures) {
		for _, actor := range []string{"litter", "nothing"} {
			if r := c.run()(t, f, f.Victim, actor); r.Code != 0 || r.Elapsed > 10*time.Second {
				t.Errorf("%s: exit code %d after %v: %.300s", actor, r.Code, r.Elapsed, r.Stderr)
			}
		}
	})
}
