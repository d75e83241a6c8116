package bwrap

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/protect"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// partVariable names the part that this program plays in place of the tests.
const partVariable = "BAWN_TEST_BWRAP_PART"

// dirVariable names its directory.
const dirVariable = "BAWN_TEST_BWRAP_DIR"

var parts = map[string]func() int{"host": hostPart, "unreachable": show(unreachable), "user": show(flagsOf), "later": show(later)}

// hostPart starts a session that lasts, says where, and waits to be killed.
func hostPart() int {
	p := New("", "")
	req := here(os.Getenv(dirVariable), bawn.NetworkNone)
	req.Session.Isolation.Resources.MemoryMB = 200
	plan, err := p.Plan(req)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	g, err := p.Start(plan, func(sandbox.Denial) {})
	if err == nil {
		_, err = g.Exec(sandbox.Command{Argv: []string{"sh", "-c", "setsid sleep 100 & exec sleep 100"}})
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("started", g.(*guest).process.cmd.Process.Pid)
	select {}
}

// TestKilled kills Bawn, and then bwrap alone, in the middle of a session: no
// process is left, no mount, nothing in the workspace, and Close or the next
// session removes the control group.
func TestKilled(t *testing.T) {
	need(t)
	for _, who := range []string{"bawn", "bwrap"} {
		t.Run(who, func(t *testing.T) {
			ws := workspace(t)
			check(t, os.MkdirAll(filepath.Join(ws, ".vscode"), 0o755)) // something for bwrap to mount on
			before := mounts(t, ws)
			host, bwrap := startHost(t, ws)
			group := groups(t, host.Process.Pid)
			if len(processesIn(t, ws)) == 0 {
				t.Fatal("control: no process of the session is found while it runs")
			}
			victim := host.Process.Pid
			if who == "bwrap" {
				victim = bwrap
			}
			check(t, syscall.Kill(victim, syscall.SIGKILL))
			testenv.Until(t, "the end of its processes", func() bool { return len(processesIn(t, ws)) == 0 })
			if who == "bwrap" {
				check(t, host.Process.Kill())
			}
			_ = host.Wait()
			if now := mounts(t, ws); now != before {
				t.Errorf("mounts were\n%s\nand are\n%s", before, now)
			}
			if got := tree(t, ws); got != ".vscode" {
				t.Errorf("the workspace holds %q", got)
			}
			swept(t, group)
		})
	}
}

// startHost starts hostPart, and returns it and the number of its bwrap.
func startHost(t *testing.T, ws string) (*exec.Cmd, int) {
	t.Helper()
	host := exec.Command("/proc/self/exe")
	host.Env = append(os.Environ(), partVariable+"=host", dirVariable+"="+ws)
	host.Stderr = os.Stderr
	out, err := host.StdoutPipe()
	check(t, err)
	check(t, host.Start())
	t.Cleanup(func() { _ = host.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	check(t, err)
	number, ok := strings.CutPrefix(strings.TrimSpace(line), "started ")
	if !ok {
		t.Fatal(line)
	}
	pid, err := strconv.Atoi(number)
	check(t, err)
	return host, pid
}

// processesIn lists the processes of a guest whose mounts hold ws, or that show
// it in their words.
func processesIn(t *testing.T, ws string) (list []string) {
	t.Helper()
	own, err := os.Readlink("/proc/self/ns/mnt")
	check(t, err)
	dirs, err := filepath.Glob("/proc/[0-9]*")
	check(t, err)
	for _, d := range dirs {
		text, _ := os.ReadFile(d + "/mountinfo") // gone since, or another user's
		if ns, _ := os.Readlink(d + "/ns/mnt"); ns != own && bytes.Contains(text, []byte(" "+ws+" ")) {
			words, _ := os.ReadFile(d + "/cmdline")
			list = append(list, filepath.Base(d)+" "+strings.ReplaceAll(string(words), "\x00", " "))
		}
	}
	return list
}

// mounts are those of the host that name ws; others come and go.
func mounts(t *testing.T, ws string) string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/mountinfo")
	check(t, err)
	var own []string
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, ws) {
			own = append(own, line)
		}
	}
	return strings.Join(own, "")
}

// tree lists everything below dir.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var list []string
	check(t, filepath.WalkDir(dir, func(p string, _ os.DirEntry, err error) error {
		if p != dir {
			list = append(list, strings.TrimPrefix(p, dir+"/"))
		}
		return err
	}))
	return strings.Join(list, " ")
}

// groups lists the control groups that process pid has made.
func groups(t *testing.T, pid int) (list []string) {
	t.Helper()
	check(t, filepath.WalkDir("/sys/fs/cgroup", func(p string, e os.DirEntry, err error) error {
		if err == nil && e.IsDir() && strings.HasPrefix(e.Name(), "bawn-s1-") && strings.Contains(e.Name(), fmt.Sprintf("-%d-", pid)) {
			list = append(list, p)
		}
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
			return nil // another session's, gone meanwhile
		}
		return err
	}))
	return list
}

// swept wants the next session to remove the groups of a killed Bawn, where it
// may have any.
func swept(t *testing.T, left []string) {
	t.Helper()
	if len(left) == 0 && grouped() {
		t.Error("control: the session had no control group")
	}
	req := here(workspace(t), bawn.NetworkNone)
	req.Session.ID, req.Session.Isolation.Resources.MemoryMB = "s2", 200
	plan := planned(t, req)
	g, err := tried.Start(plan, func(sandbox.Denial) {})
	check(t, err)
	check(t, g.Close())
	for _, dir := range left {
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left: %v", dir, err)
		}
	}
}

// grouped reports whether memory is limited by control group here.
func grouped() bool {
	return slices.ContainsFunc(tried.Capabilities(), func(c bawn.Capability) bool {
		return c.Attribute == sandbox.LimitMemory && strings.HasPrefix(c.How, "control group")
	})
}

// TestManyTimes starts and ends sessions, and wants nothing to grow.
func TestManyTimes(t *testing.T) {
	need(t)
	plan := planned(t, here(workspace(t), bawn.NetworkAllowlist))
	count := func() int {
		fds, err := os.ReadDir("/proc/self/fd")
		check(t, err)
		return len(fds)
	}
	var before int
	for i := range 12 {
		g, err := tried.Start(plan, func(sandbox.Denial) {})
		check(t, err)
		check(t, g.Close())
		if i == 1 {
			before = count()
		}
	}
	testenv.Until(t, "the end of their descriptors", func() bool { return count() <= before })
	testenv.Until(t, "the end of their processes", func() bool { return len(processesIn(t, plan.Dir)) == 0 })
}

// TestNoGhosts takes away a place that bwrap would mount on after the plan was
// made. Start must refuse, and nothing may come into being in its place. The
// control is bwrap with the same words, which makes it where it is to hide it;
// what it is to show it misses by itself.
func TestNoGhosts(t *testing.T) {
	need(t)
	dir := func(p string) error { return os.Mkdir(p, 0o755) }
	file := func(p string) error { return os.WriteFile(p, []byte("x"), 0o644) }
	for _, tt := range []struct {
		name  string
		make  func(string) error
		hide  bool
		ghost string
	}{{".vscode", dir, false, ""}, {".envrc", file, false, ""}, {"file", file, true, "file"}, {"dir", dir, true, "dir"}} {
		t.Run(tt.name, func(t *testing.T) {
			ws := workspace(t)
			place := filepath.Join(ws, tt.name)
			check(t, tt.make(place))
			req := here(ws, bawn.NetworkNone)
			if tt.hide {
				req.Session.Isolation.Mounts = append(req.Session.Isolation.Mounts, bawn.Mount{Path: place, Access: bawn.Hidden, Why: "test"})
			}
			plan := planned(t, req)
			files, err := plan.open() // before it vanishes: the control mounts what was there
			check(t, err)
			defer closeAll(files)
			check(t, os.Remove(place))

			if g, err := tried.Start(plan, func(sandbox.Denial) {}); err == nil {
				g.Close()
				t.Error("a session starts without a place that it is to cover")
			} else if !strings.Contains(err.Error(), place) {
				t.Errorf("the error does not name it: %v", err)
			}
			if got := tree(t, ws); got != "" {
				t.Errorf("the host has a ghost: %q", got)
			}
			plainly(t, plan, files)
			if got := tree(t, ws); got != tt.ghost {
				t.Errorf("control: bwrap makes %q, want %q", got, tt.ghost)
			}
		})
	}
}

// TestClosedHomeThatChanges removes names of a closed home before and while bwrap works.
// The session starts, hides what is left, and makes nothing. A name that somebody has
// named must be there: TestNoGhosts.
func TestClosedHomeThatChanges(t *testing.T) {
	need(t)
	home := workspace(t)
	req := here(workspace(t), bawn.NetworkNone)
	var names []string
	for i := range 60 {
		name := filepath.Join(home, fmt.Sprintf("n%02d", i))
		if i%2 == 0 {
			check(t, os.WriteFile(name, []byte("the host's"), 0o644))
		} else {
			check(t, os.MkdirAll(filepath.Join(name, "the host's"), 0o755))
		}
		names = append(names, name)
		req.Session.Isolation.Mounts = append(req.Session.Isolation.Mounts, bawn.Mount{Path: name, Access: bawn.Hidden, Why: protect.ClosedHome})
	}
	plan := planned(t, req)
	check(t, os.Remove(names[0]))
	gone := make(chan error, 1)
	go func() {
		var err error
		tick := time.NewTicker(4 * time.Millisecond) // a start takes some 30
		defer tick.Stop()
		for _, name := range names[1:8] {
			<-tick.C
			err = errors.Join(err, os.RemoveAll(name))
		}
		gone <- err
	}()
	g := started(t, plan)
	check(t, <-gone)
	if got := script(t, g, "cd "+home+"; ls; cat n*; ls n*/* 2>/dev/null; true"); strings.Contains(got, "the host's") || !strings.Contains(got, "n59") {
		t.Errorf("the guest sees %q", got)
	}
	check(t, os.WriteFile(names[0], []byte("the host's"), 0o644))
	testenv.Until(t, "what comes back is hidden again", func() bool {
		return !strings.Contains(script(t, g, "cat "+names[0]+" 2>/dev/null; true"), "the host's")
	})
	check(t, os.Remove(names[0]))
	if got := tree(t, home); strings.Contains(got, "n00") || strings.Contains(got, "n07") {
		t.Errorf("the host has %q", got)
	}
}

// plainly has bwrap do what the plan says, and run a program that does nothing.
func plainly(t *testing.T, plan *Plan, files []*os.File) {
	t.Helper()
	words, err := argumentFile(plan.bytes())
	check(t, err)
	defer words.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	check(t, err)
	defer null.Close()
	cmd := exec.Command(Name, "--args", strconv.Itoa(argsFD), "--", "true")
	cmd.ExtraFiles = append([]*os.File{words, null}, files...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Logf("bwrap: %v: %s", err, out)
	}
}

// TestGhostIsNoticed stands for a place that vanishes while bwrap works: what
// lies there afterwards is empty, and not what was there.
func TestGhostIsNoticed(t *testing.T) {
	ws := workspace(t)
	p := &Plan{targets: []string{filepath.Join(ws, "a"), filepath.Join(ws, "b"), filepath.Join(ws, "c")}}
	for _, f := range p.targets {
		check(t, os.WriteFile(f, []byte("x"), 0o644))
	}
	before, err := p.standing()
	check(t, err)
	check(t, os.Remove(p.targets[1])) // gone: nothing was made
	check(t, os.WriteFile(p.targets[2]+".new", []byte("y"), 0o644))
	check(t, os.Rename(p.targets[2]+".new", p.targets[2])) // written anew by its program
	check(t, p.unmade(before))
	check(t, os.WriteFile(p.targets[0]+".new", nil, 0o644))
	check(t, os.Rename(p.targets[0]+".new", p.targets[0]))
	if err := p.unmade(before); err == nil || !strings.Contains(err.Error(), "/a") {
		t.Errorf("got %v", err)
	}
}

// TestLinksOnTheWay wants a target that is now reached through a link to be
// refused: bwrap would follow it.
func TestLinksOnTheWay(t *testing.T) {
	ws := workspace(t)
	check(t, os.MkdirAll(filepath.Join(ws, "a/b"), 0o755))
	p := &Plan{targets: []string{filepath.Join(ws, "a/b")}}
	_, err := p.standing()
	check(t, err)
	check(t, os.Rename(filepath.Join(ws, "a"), filepath.Join(ws, "c")))
	check(t, os.Symlink("c", filepath.Join(ws, "a")))
	if _, err := p.standing(); err == nil {
		t.Error("a link on the way is followed")
	}
}

// TestExchangedSource wants what is mounted to be what the plan saw.
func TestExchangedSource(t *testing.T) {
	need(t)
	ws := workspace(t)
	sub := filepath.Join(ws, "sub")
	check(t, os.Mkdir(sub, 0o755))
	plan := planned(t, here(sub, bawn.NetworkNone))
	check(t, os.Rename(sub, sub+"2"))
	check(t, os.Mkdir(sub, 0o755))
	if g, err := tried.Start(plan, func(sandbox.Denial) {}); err == nil {
		g.Close()
		t.Error("another directory was shown to the guest")
	} else if !strings.Contains(err.Error(), "exchanged") {
		t.Errorf("got %v", err)
	}
}
