package cgroup

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/testenv"
)

func TestMemoryLimitKills(t *testing.T) {
	testenv.Need(t, "root", "cgroup")
	if err := victim(t, nil, "eat 192").Run(); err != nil {
		t.Fatalf("control without a group: %v", err)
	}
	g := newGroup(t, Limits{MemoryMB: 64})
	if err := victim(t, g, "eat 8").Run(); err != nil {
		t.Errorf("8 MiB below a limit of 64: %v", err)
	}
	err := victim(t, g, "eat 192").Run()
	if signalOf(err) != syscall.SIGKILL {
		t.Errorf("192 MiB below a limit of 64: got %v, want SIGKILL", err)
	}
	s, err := g.Stats()
	if err != nil || s.OOMKills < 1 || !s.MemoryFull {
		t.Errorf("stats are %+v, %v; want an OOM kill for the limit and a peak near the limit of 64 MiB", s, err)
	}
}

func TestPIDsLimit(t *testing.T) {
	testenv.Need(t, "root", "cgroup")
	const limit, want = 24, 40
	count := func(g *Group) (n int) {
		t.Helper()
		out, err := victim(t, g, fmt.Sprintf("fork %d", want)).Output()
		if _, scan := fmt.Sscan(string(out), &n); err != nil || scan != nil {
			t.Fatalf("victim: %v, output %q", err, out)
		}
		return n
	}
	if got := count(nil); got != want {
		t.Fatalf("control without a group: %d of %d children", got, want)
	}
	g := newGroup(t, Limits{PIDs: limit})
	if got := count(g); got < 1 || got >= limit {
		t.Errorf("%d children came into being below a limit of %d", got, limit)
	}
	if s, err := g.Stats(); err != nil || s.PIDsMaxHits < 1 {
		t.Errorf("stats are %+v, %v; want a refused fork", s, err)
	}
}

// How often the kernel held a guest back doesn't depend on who else is busy.
func TestCPULimit(t *testing.T) {
	testenv.Need(t, "root", "cgroup")
	throttled := func(l Limits) int64 {
		t.Helper()
		g := newGroup(t, l)
		if err := victim(t, g, "burn 600").Run(); err != nil {
			t.Fatal(err)
		}
		n, err := g.dirs[0].counter("cpu.stat", "nr_throttled")
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := throttled(Limits{CPUShares: 512}); n != 0 {
		t.Fatalf("control with a weight alone was held back %d times", n)
	}
	if n := throttled(Limits{CPUs: 0.05, CPUShares: 512}); n < 2 {
		t.Errorf("0.05 cores were held back %d times in 600 ms", n)
	}
}

// A guest that goes on forking is ended completely, and nobody else is.
func TestKill(t *testing.T) {
	testenv.Need(t, "root", "cgroup")
	for _, l := range []Limits{{MemoryMB: 64}, {PIDs: 64, MemoryMB: 64}, {CPUs: 1}} {
		t.Run(fmt.Sprintf("%+v", l), func(t *testing.T) {
			g := newGroup(t, l)
			bystander := exec.Command("sleep", "60")
			if err := bystander.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { bystander.Process.Kill(); bystander.Wait() }()
			startFamily(t, g)
			if err := g.Kill(); err != nil {
				t.Error(err)
			}
			for _, d := range g.dirs {
				if list, err := d.processes(); err != nil || len(list) != 0 {
					t.Errorf("%q still holds %v, %v", d.path, list, err)
				}
			}
			if err := bystander.Process.Signal(syscall.Signal(0)); err != nil {
				t.Errorf("a process outside the group: %v", err)
			}
		})
	}
}

// startFamily starts three generations in g and waits until they are there.
func startFamily(t *testing.T, g *Group) {
	t.Helper()
	script := ""
	for i := range g.ProcFiles() {
		script += fmt.Sprintf("echo 0 >&%d || exit 99; ", 3+i)
	}
	script += "(setsid sleep 60 & sleep 60 & echo ready; wait) & wait"
	c := exec.CommandContext(t.Context(), "/bin/sh", "-c", script)
	c.ExtraFiles = g.ProcFiles()
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("no family: %q, %v", line, err)
	}
	for _, d := range g.dirs {
		if list, err := d.processes(); err != nil || len(list) < 3 {
			t.Fatalf("%q holds %v, %v; want at least three processes", d.path, list, err)
		}
	}
}

// Version 2's own way, in the hierarchy that this machine has, controllers or not.
func TestKillUnified(t *testing.T) {
	testenv.Need(t, "root", "cgroup")
	trees, err := here()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(trees, func(h hierarchy) bool { return h.version == 2 && h.own != "" })
	if i < 0 {
		return // pure version 1: nothing to try
	}
	me, err := self()
	if err != nil {
		t.Fatal(err)
	}
	g := &Group{name: me.groupName("unified")}
	t.Cleanup(func() { g.Kill(); g.Remove() })
	if err := g.add(place{version: 2, dir: trees[i].ancestors()[len(trees[i].ancestors())-1]}, Limits{}); err != nil {
		t.Fatal(err)
	}
	startFamily(t, g)
	if err := errors.Join(g.Kill(), g.Remove()); err != nil {
		t.Error(err)
	}
}

func TestOnlyNeededHierarchies(t *testing.T) {
	testenv.Need(t, "root", "cgroup")
	g := newGroup(t, Limits{PIDs: 8})
	if len(g.dirs) != 1 || len(g.ProcFiles()) != 1 {
		t.Errorf("one limit made %+v", g.dirs)
	}
	name := g.dirs[0].path
	if err := errors.Join(g.Remove(), g.Remove()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(name); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%q is still there: %v", name, err)
	}
}

// A group with somebody in it is not removed, and Remove ends all the same.
func TestRemoveBusy(t *testing.T) {
	testenv.Need(t, "root", "cgroup")
	g := newGroup(t, Limits{PIDs: 64})
	startFamily(t, g)
	begin := time.Now()
	err := g.Remove()
	if took := time.Since(begin); !errors.Is(err, unix.EBUSY) || took > 20*time.Second {
		t.Errorf("removing a busy group took %v and gave %v; want EBUSY after about %v", took, err, removeWait)
	}
}

// Two sessions of one name would share limits, and one would end the other.
func TestNameTaken(t *testing.T) {
	testenv.Need(t, "root", "cgroup")
	g, err := New("twice", Limits{PIDs: 8})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Remove()
	var u *Unavailable
	if g, err := New("twice", Limits{PIDs: 9}); !errors.Is(err, unix.EEXIST) || errors.As(err, &u) {
		t.Errorf("New() = %v, %v; want EEXIST", g, err)
	}
	if limit, err := g.dirs[0].read("pids.max"); err != nil || limit != "8\n" {
		t.Errorf("the first group's limit is %q, %v", limit, err)
	}
}

func TestNewRefuses(t *testing.T) {
	for _, tt := range []struct {
		name string
		l    Limits
	}{{"a", Limits{}}, {"", Limits{PIDs: 8}}, {"../a", Limits{PIDs: 8}}, {"a", Limits{PIDs: -1}}} {
		if g, err := New(tt.name, tt.l); err == nil {
			g.Remove()
			t.Errorf("New(%q, %+v) gave no error", tt.name, tt.l)
		}
	}
}

func TestProbe(t *testing.T) {
	testenv.Need(t, "root", "cgroup")
	before := leftovers(t)
	s := Probe()
	for _, c := range []Controller{s.Memory, s.PIDs} {
		if c.Version == 0 || c.Dir == "" || c.Why != "" {
			t.Errorf("%+v; want a version and a place", c)
		}
	}
	if s.CPU.Version == 0 && s.CPU.Why == "" {
		t.Errorf("%+v gives no reason", s.CPU)
	}
	if after := leftovers(t); len(after) > len(before) {
		t.Errorf("probing left %q", after)
	}
}

// TestProbesAtOnce: probes at the same time find the same.
func TestProbesAtOnce(t *testing.T) {
	want := Probe()
	found := make(chan Support, 8)
	for range cap(found) {
		go func() { found <- Probe() }()
	}
	for range cap(found) {
		if got := <-found; got != want {
			t.Errorf("got %+v, and alone %+v", got, want)
		}
	}
}

// An ordinary user to whom nothing was delegated is told so.
func TestOrdinaryUser(t *testing.T) {
	testenv.Need(t, "root", "user", "cgroup")
	c := exec.CommandContext(t.Context(), publicExecutable(t))
	c.Env = []string{deedVariable + "=new"}
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	c.Dir = "/"
	out, err := c.Output()
	if err == nil || !strings.HasPrefix(string(out), `true no control group for "memory": `) ||
		!strings.Contains(string(out), "permission denied") {
		t.Errorf("got %v and %q; want an Unavailable that names the permission", err, out)
	}
}

func TestSweep(t *testing.T) {
	testenv.Need(t, "root", "cgroup")
	alive := newGroup(t, Limits{PIDs: 8})
	out, err := victim(t, nil, "leave").Output()
	left := strings.Fields(string(out))
	if err != nil || len(left) == 0 {
		t.Fatalf("nothing was left: %v, %q", err, out)
	}
	parent := filepath.Dir(alive.dirs[0].path)
	gone := owner{namespace: mustSelf(t).namespace, pid: 1 << 22, start: 1}
	elsewhere := owner{namespace: 1, pid: 1 << 22, start: 1}
	stranger := filepath.Join(parent, "bawn-strangers")
	otherNamespace := filepath.Join(parent, elsewhere.groupName("x"))
	busy := &Group{name: gone.groupName("busy")}
	t.Cleanup(func() { busy.Kill(); busy.Remove(); os.Remove(stranger); os.Remove(otherNamespace) })
	if err := errors.Join(os.Mkdir(stranger, 0o755), os.Mkdir(otherNamespace, 0o755),
		busy.add(place{version: alive.dirs[0].version, controllers: []string{pids}, dir: parent}, Limits{PIDs: 64})); err != nil {
		t.Fatal(err)
	}
	startFamily(t, busy)

	n, err := Sweep()
	if err != nil || n < len(left) {
		t.Errorf("Sweep() = %d, %v; want at least %d", n, err, len(left))
	}
	now := leftovers(t)
	for _, name := range left {
		if slices.Contains(now, name) {
			t.Errorf("%q of a dead process is still there", name)
		}
	}
	for _, name := range []string{alive.dirs[0].path, stranger, otherNamespace, busy.dirs[0].path} {
		if !slices.Contains(now, name) {
			t.Errorf("%q was removed; it was not ours to remove", name)
		}
	}
}

func mustSelf(t testing.TB) owner {
	t.Helper()
	o, err := self()
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func BenchmarkGroup(b *testing.B) {
	testenv.Need(b, "root", "cgroup")
	for b.Loop() {
		g, err := New("bench", Limits{MemoryMB: 1024, PIDs: 512})
		if err != nil {
			b.Fatal(err)
		}
		if err := g.Remove(); err != nil {
			b.Fatal(err)
		}
	}
}

// TestOpenProcsTakeAllThreads has a program of several threads join. In version 1
// the files of ProcFiles take one of them alone, which is the control.
func TestOpenProcsTakeAllThreads(t *testing.T) {
	testenv.Need(t, "root", "cgroup")
	g, err := New("threads", Limits{PIDs: 64})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Remove()
	procs, err := g.OpenProcs()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range procs {
		defer f.Close()
	}
	joined := func(files []*os.File) (in, all int) {
		t.Helper()
		c := exec.CommandContext(t.Context(), executable(t))
		c.ExtraFiles = files
		c.Env = append(os.Environ(), fmt.Sprintf("%s=join %d", deedVariable, len(files)))
		out, err := c.Output()
		if _, serr := fmt.Sscan(string(out), &in, &all); err != nil || serr != nil {
			t.Fatalf("%v: %q", err, out)
		}
		return in, all
	}
	if in, all := joined(procs); in != all || all < 5 {
		t.Errorf("%d of %d threads joined", in, all)
	}
	if in, all := joined(g.ProcFiles()); g.dirs[0].version == 1 && in == all {
		t.Errorf("control: %d of %d threads joined", in, all)
	}
}
