package bwrap

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/inside"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// TestMain is the first process of sandboxes, too: they are shown the program
// that runs. It is also the hosts that tests kill.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == inside.Argument {
		os.Exit(inside.Main(os.Args[2:], os.Stdin))
	}
	if part := parts[os.Getenv(partVariable)]; part != nil {
		os.Exit(part())
	}
	os.Exit(m.Run())
}

// tried is the provider that tests share: a trial takes a while.
var tried = New("", "")

// need is what a session takes.
func need(t testing.TB) {
	t.Helper()
	testenv.Need(t, "bwrap", "userns", "landlock", "seccomp", "notify")
}

// workspace is a directory that no session covers.
func workspace(t testing.TB) string {
	t.Helper()
	base := "/var/lib"
	if os.Geteuid() != 0 {
		base, _ = os.UserHomeDir()
	}
	dir, err := os.MkdirTemp(base, "bawn-test-")
	check(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	real, err := filepath.EvalSymlinks(dir)
	check(t, err)
	return real
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// here asks for a session in ws on this machine.
func here(ws string, network bawn.NetworkMode) sandbox.Request {
	r := request(ws, network)
	r.Environ, r.Hidden, r.Session.Isolation.CacheDirs = os.Environ(), nil, nil
	r.Session.Isolation.Resources = bawn.Resources{TmpMB: 64}
	r.Relay = network == bawn.NetworkAllowlist
	return r
}

// planned is the plan of a request.
func planned(t testing.TB, req sandbox.Request) *Plan {
	t.Helper()
	plan, err := tried.Plan(req)
	check(t, err)
	return plan.(*Plan)
}

// started is a session that ends with the test.
func started(t testing.TB, plan *Plan) *guest {
	t.Helper()
	g, err := tried.Start(plan, func(sandbox.Denial) {})
	check(t, err)
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return g.(*guest)
}

// script runs a shell script in g and returns what it prints.
func script(t testing.TB, g sandbox.Guest, text string) string {
	t.Helper()
	r, w, err := os.Pipe()
	check(t, err)
	defer r.Close()
	proc, err := g.Exec(sandbox.Command{Argv: []string{"sh", "-c", text}, Stdio: [3]*os.File{nil, w, w}})
	w.Close()
	check(t, err)
	out, err := io.ReadAll(r)
	check(t, err)
	for range proc.Changes() {
	}
	return string(out)
}

// pid is the number of the sandbox's first process on the host.
func (g *guest) pid(t testing.TB) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(int(g.process.first.Fd())))
	check(t, err)
	m := regexp.MustCompile(`(?m)^Pid:\s*(\d+)$`).FindSubmatch(text)
	if m == nil {
		t.Fatalf("no process in %s", text)
	}
	n, err := strconv.Atoi(string(m[1]))
	check(t, err)
	return n
}

// TestCommands starts several in one session, with what a session gives them.
func TestCommands(t *testing.T) {
	need(t)
	req := here(workspace(t), bawn.NetworkNone)
	g := started(t, planned(t, req))
	if out := script(t, g, `echo hi > f; cat f; pwd; echo $BAWN_SESSION; echo no > /etc/x; tty; exec 2>&1; mkdir .vscode`); !strings.HasPrefix(out, "hi\n"+req.Dir+"\ns1\n") || strings.Count(out, "\n") != 6 {
		t.Errorf("got %q", out)
	}
	if text, err := os.ReadFile(filepath.Join(req.Dir, "f")); string(text) != "hi\n" {
		t.Errorf("on the host: %q, %v", text, err)
	}
	if left, _ := filepath.Glob(filepath.Join(req.Dir, "*code")); left != nil {
		t.Errorf("made: %q", left)
	}
	_, err := g.Exec(sandbox.Command{Argv: []string{"no-such-program"}})
	if nf := (*sandbox.NotFoundError)(nil); !errors.As(err, &nf) || !nf.Absent {
		t.Errorf("got %v", err)
	}
}

// TestNames makes a name of the table, and one that is opened for the project.
func TestNames(t *testing.T) {
	need(t)
	req := here(workspace(t), bawn.NetworkNone)
	req.Session.Isolation.Unprotected = []string{"mise.toml"}
	g := started(t, planned(t, req))
	if out := script(t, g, `exec 2>/dev/null; mkdir -p .hg .yarn; for p in .hg/hgrc .yarn/plugins .npmrc mise.toml a.toml; do { echo x >$p; } && echo $p; done`); out != "mise.toml\na.toml\n" {
		t.Errorf("made: %q", out)
	}
}

// TestSetup wants what bwrap does not do to be asked of the first process.
func TestSetup(t *testing.T) {
	plan := goldenPlan(t, "by name")
	got, err := plan.setup()
	check(t, err)
	if got.Filter != inside.FilterSupervised || got.KeepCapabilities || got.Landlock.ABI != 7 || len(got.Landlock.Writable) < 4 || got.Network == nil || got.Limits != plan.Limits || !got.Mounts || got.Session != "s1" {
		t.Errorf("got %+v", got)
	}
	plan.Words = append(plan.Words, "--x")
	if again, err := plan.setup(); err != nil || again.Plan == got.Plan {
		t.Errorf("another plan has the same digest, %v", err)
	}
}

// TestTerminal wants one of the guest's own, under the name that programs find.
func TestTerminal(t *testing.T) {
	need(t)
	g := started(t, planned(t, here(workspace(t), bawn.NetworkNone)))
	master, slave, err := g.OpenTerminal()
	check(t, err)
	defer master.Close()
	defer slave.Close()
	proc, err := g.Exec(sandbox.Command{Argv: []string{"sh", "-c", "tty; ls /dev/pts | wc -l"}, Stdio: [3]*os.File{slave, slave, slave}, Terminal: slave, Foreground: true})
	check(t, err)
	for range proc.Changes() {
	}
	buf := make([]byte, 100)
	n, err := master.Read(buf)
	if got := string(buf[:n]); !strings.HasPrefix(got, "/dev/pts/0\r\n") || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestArgumentsAreNotShown wants the list of processes to tell nobody what a
// session hides.
func TestArgumentsAreNotShown(t *testing.T) {
	need(t)
	g := started(t, planned(t, here(workspace(t), bawn.NetworkNone)))
	for pid, want := range map[int]string{g.process.cmd.Process.Pid: "bwrap --args 3 --info-fd 4 -- /dev/.bawn @inside", g.pid(t): "/dev/.bawn @inside"} {
		text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
		if got := strings.TrimSpace(strings.ReplaceAll(string(text), "\x00", " ")); got != want || err != nil {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
	}
}

// TestNothingIsLeftOpen wants no descriptor of the host's in the first process,
// whatever our own parent has left open to us. bwrap passes it on: the control is
// that this process has it, and not closed on exec.
func TestNothingIsLeftOpen(t *testing.T) {
	need(t)
	testenv.Need(t, "root") // who reads what a process has open that is not dumpable
	dir := workspace(t)
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0) // no O_CLOEXEC: that is the point
	check(t, err)
	defer unix.Close(fd)
	g := started(t, planned(t, here(workspace(t), bawn.NetworkAllowlist)))
	open := "/proc/" + strconv.Itoa(g.pid(t)) + "/fd"
	entries, err := os.ReadDir(open)
	check(t, err)
	for _, e := range entries {
		to, err := os.Readlink(filepath.Join(open, e.Name()))
		check(t, err)
		if !regexp.MustCompile(`^(/dev/null|pipe:\[\d+\]|socket:\[\d+\]|anon_inode:\[(eventpoll|eventfd|signalfd|pidfd|landlock-ruleset)\])$`).MatchString(to) {
			t.Errorf("descriptor %s is %s", e.Name(), to)
		}
	}
}

// TestCapabilitiesOfAllProcesses wants none, for root as for anybody and with a
// network that takes one to make.
func TestCapabilitiesOfAllProcesses(t *testing.T) {
	need(t)
	g := started(t, planned(t, here(workspace(t), bawn.NetworkAllowlist)))
	out := script(t, g, `cat /proc/1/task/*/status /proc/self/status`)
	if n := strings.Count(out, "\nCapBnd:\t0000000000000000\n"); n < 2 || n != strings.Count(out, "\nCapBnd:") {
		t.Errorf("the bounding set is empty in %d of %d threads", n, strings.Count(out, "\nCapBnd:"))
	}
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapAmb"} {
		if n := strings.Count(out, "\n"+set+":\t0000000000000000\n"); n != strings.Count(out, "\n"+set) {
			t.Errorf("%s is not empty in %s", set, out)
		}
	}
	if n, all := strings.Count(out, "\nSeccomp:\t2\n"), strings.Count(out, "\nSeccomp:"); n != all {
		t.Errorf("%d of %d threads are under a filter", n, all)
	}
}

// TestNamespaces wants all to be the guest's own. The control is the network of
// one that has the host's.
func TestNamespaces(t *testing.T) {
	need(t)
	for _, network := range []bawn.NetworkMode{bawn.NetworkNone, bawn.NetworkFull} {
		g := started(t, planned(t, here(workspace(t), network)))
		for _, ns := range []string{"user", "mnt", "pid", "ipc", "uts", "cgroup", "net"} {
			link := "/proc/self/ns/" + ns
			outside, err := os.Readlink(link)
			check(t, err)
			inside := strings.TrimSpace(script(t, g, "readlink "+link))
			if shared := inside == outside; shared != (ns == "net" && network == bawn.NetworkFull) || inside == "" {
				t.Errorf("network %v: the %s namespace is %q inside and %q outside", network, ns, inside, outside)
			}
		}
	}
}

// TestCommandsAreLimited wants commands to be in the session's control group, at
// the terminal and elsewhere. The control is a session without one.
func TestCommandsAreLimited(t *testing.T) {
	need(t)
	testenv.Need(t, "root", "cgroup")
	for limit, want := range map[int64]bool{0: false, 200: true} {
		req := here(workspace(t), bawn.NetworkNone)
		req.Session.Isolation.Resources.MemoryMB = limit
		g := started(t, planned(t, req))
		if out := script(t, g, "cat /proc/self/cgroup"); strings.Contains(out, "/bawn-s1-") != want {
			t.Errorf("limit %d: %s", limit, out)
		}
		master, slave, err := g.OpenTerminal()
		check(t, err)
		r, w, err := os.Pipe()
		check(t, err)
		proc, err := g.Exec(sandbox.Command{Argv: []string{"cat", "/proc/self/cgroup"}, Stdio: [3]*os.File{slave, w, w}, Terminal: slave, Foreground: true})
		check(t, err)
		w.Close()
		out, err := io.ReadAll(r)
		check(t, err)
		for range proc.Changes() {
		}
		if strings.Contains(string(out), "/bawn-s1-") != want {
			t.Errorf("limit %d, at a terminal: %s", limit, out)
		}
		check(t, errors.Join(master.Close(), slave.Close(), r.Close()))
	}
}

// TestPort80: a guest has every port of its own network, as in a container, and none of
// the host's. In one that is the host's it has what its user has.
func TestPort80(t *testing.T) {
	need(t)
	testenv.Need(t, "perl")
	ws := workspace(t)
	const bind = `perl -MSocket -e 'socket(S, PF_INET, SOCK_STREAM, 0); bind(S, sockaddr_in($ARGV[0], INADDR_LOOPBACK)) ? print "bound" : print "$!"' `
	if got := script(t, started(t, planned(t, here(ws, bawn.NetworkNone))), bind+"80"); got != "bound" {
		t.Errorf("port 80: %s", got)
	}
	if got := script(t, started(t, planned(t, here(ws, bawn.NetworkFull))), bind+"1"); got != "Permission denied" {
		t.Errorf("the control, port 1 of the host: %s", got)
	}
}

// TestInterfacesOfTheHost wants a guest with a network of its own to see none.
// The control is one that has the host's.
func TestInterfacesOfTheHost(t *testing.T) {
	need(t)
	const list = `ls /sys/class/net /sys/devices/virtual/net /sys/devices/*/*/*/net 2>/dev/null | grep -c "^[a-z][a-z0-9]*$"`
	if out := script(t, started(t, planned(t, here(workspace(t), bawn.NetworkFull))), list); out == "0\n" {
		t.Errorf("control: the host's network has no interface: %q", out)
	}
	if out := script(t, started(t, planned(t, here(workspace(t), bawn.NetworkNone))), list); out != "0\n" {
		t.Errorf("the guest sees %s interfaces", out)
	}
}

// TestStartedByAThreadThatEnds wants the session to live on: --die-with-parent
// means the thread.
func TestStartedByAThreadThatEnds(t *testing.T) {
	need(t)
	plan := planned(t, here(workspace(t), bawn.NetworkNone))
	made := make(chan *guest)
	go func() {
		runtime.LockOSThread() // the thread ends with this function
		g, err := tried.Start(plan, func(sandbox.Denial) {})
		if err != nil {
			t.Error(err)
		}
		made <- g.(*guest)
	}()
	g := <-made
	defer g.Close()
	select {
	case <-g.Done():
		t.Fatal("the session has ended with the thread that started it")
	case <-time.After(50 * time.Millisecond):
	}
	if out := script(t, g, "echo here"); out != "here\n" {
		t.Errorf("got %q", out)
	}
}
