package docker

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/inside"
	"github.com/bawn-dev/bawn/internal/sandbox/native"
	"github.com/bawn-dev/bawn/internal/testenv"
	docker "github.com/bawn-dev/bawn/internal/testenv/engine"
	"github.com/bawn-dev/bawn/internal/testenv/listening"
)

// sentry returns a provider whose engine has gVisor run containers.
func sentry(t testing.TB) *Provider {
	t.Helper()
	testenv.Need(t, "docker", "runsc")
	p := provide(t, Options{Runtime: docker.Runsc})
	p.setting.Cache = filepath.Join(filepath.Dir(program), "probe-runsc")
	return p
}

// TestSentry: a session in gVisor, and what it may not.
func TestSentry(t *testing.T) {
	p, req := sentry(t), request(t)
	for _, d := range []string{"/.git/hooks", "/.vscode"} {
		if err := os.MkdirAll(req.Dir+d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	g, _ := started(t, p, req)
	for text, want := range map[string]string{
		"uname -r":                            "4.19.0-gvisor",
		"pwd; id -u":                          "/workspace\n" + fmt.Sprint(os.Geteuid()),
		"echo $HOME [$TOKEN]":                 "/home/ada []",
		"echo text >made && cat made":         "text",
		"ulimit -n":                           "256",
		"touch /etc/z 2>/dev/null || echo no": "no",
		"touch .vscode/x .git/hooks/x .git/z 2>/dev/null || echo no":                           "no",
		"mv .git x 2>/dev/null || echo no":                                                     "no",
		"mv .vscode x 2>/dev/null || echo no":                                                  "no",
		"touch $HOME/x /tmp/y z && echo own":                                                   "own",
		`awk '/^Cap/ && $2 != "0000000000000000" || /^Seccomp:/ && $2 != 2' /proc/self/status`: "",
		"ls -d /run/bawn/control 2>/dev/null":                                                  "",
		"ip addr | grep -c inet":                                                               "1",
	} {
		if out, status := run(t, g, text); strings.TrimSpace(out) != want {
			t.Errorf("%s: got %q (%d), want %q", text, out, status, want)
		}
	}
	if fi, err := os.Stat(filepath.Join(req.Dir, "made")); err != nil || int(fi.Sys().(*syscall.Stat_t).Uid) != os.Geteuid() {
		t.Errorf("a file of the guest's in the workspace: %v, %v; want it to be the caller's", fi, err)
	}
}

// TestSentryNetwork has a guest of gVisor's connect to an address of nobody's,
// which arrives at the relay's socket.
func TestSentryNetwork(t *testing.T) {
	p, req := sentry(t), request(t)
	req.Session.Isolation.Network, req.Relay, req.HostPorts = bawn.NetworkAllowlist, true, []uint16{5432}
	g, _ := started(t, p, req)
	l, err := net.FileListener(g.Network().Connect[0])
	if err != nil {
		t.Fatal(err)
	}
	listening.Accept(t, l, func(c net.Conn) { fmt.Fprintln(c, "relay") })
	for _, to := range []string{"192.0.2.7 443", "127.0.0.1 5432"} {
		if out, _ := run(t, g, "timeout 5 nc "+to+" </dev/null"); out != "relay\n" {
			t.Errorf("a connection to %s: got %q, want %q", to, out, "relay")
		}
	}
	if out, _ := run(t, g, "timeout 5 nc 127.0.0.1 5433 </dev/null 2>/dev/null"); out != "" {
		t.Errorf("control: a port that was not opened answers %q", out)
	}
	if _, err := g.Dial(g.Network().ProxyPort); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("the relay's port is the guest's: %v", err)
	}
}

// TestSentryAttacks: what is attacked in every container.
func TestSentryAttacks(t *testing.T) {
	t.Run("replaced workspace", func(t *testing.T) { replacedWorkspace(t, sentry(t)) })
	t.Run("hidden", func(t *testing.T) { hidden(t, sentry(t)) })
	t.Run("killed makers", func(t *testing.T) { killedMakers(t, sentry(t), 2, bawn.NetworkAllowlist, runscKeeps) })
}

// runscKeeps reports what a killed runsc leaves with its engine, and nobody
// could use: the network namespace without an interface that it makes once for
// all sandboxes, and control groups that have no process.
func runscKeeps(thing string) bool {
	group, isGroup := strings.CutPrefix(thing, "cgroup ")
	if !isGroup {
		return strings.HasPrefix(thing, "mount ") && filepath.Base(thing) == "null-netns"
	}
	procs, err := os.ReadFile(filepath.Join(group, "cgroup.procs"))
	return err == nil && len(procs) == 0
}

// TestSentryOrdinaryUser has somebody without any capability make a session, who
// is refused a network by name, as nobody could make it.
func TestSentryOrdinaryUser(t *testing.T) {
	testenv.Need(t, "docker", "runsc")
	e := docker.Shared(t)
	e.Allow(t, anybody)
	a := act{Options: Options{Host: e.Host(), Image: e.Image(t, docker.Busybox), Runtime: docker.Runsc}, Text: "id -u; uname -r; touch made; ls -A"}
	if out, err := a.command(t, anybody).CombinedOutput(); err != nil || !strings.Contains(string(out), "65534\n4.19.0-gvisor\nmade\n") {
		t.Errorf("got %v, %q", err, out)
	}
	a.Request.Session.Isolation.Network, a.Request.Relay = bawn.NetworkAllowlist, true
	if out, err := a.command(t, anybody).CombinedOutput(); err == nil || !strings.Contains(string(out), rootsNetwork) || strings.Contains(string(out), "gvisor\nmade") {
		t.Errorf("a network by name: got %v, %q", err, out)
	}
}

// TestSentryRefusesSockets, as none passes gVisor's border.
func TestSentryRefusesSockets(t *testing.T) {
	facts := facts(0)
	if _, err := makePlan(wide(), Options{}, facts); err != nil {
		t.Fatalf("control: %v", err)
	}
	facts.Sentry = true
	if _, err := makePlan(wide(), Options{}, facts); err == nil || !strings.Contains(err.Error(), "/run/bawn/door") {
		t.Errorf("got %v; want a refusal of the socket", err)
	}
}

// TestSentryComparesStamps: another file, and one fewer, are told.
func TestSentryComparesStamps(t *testing.T) {
	dir := t.TempDir()
	mine, _ := inside.StampOf(dir)
	other, _ := inside.StampOf("/proc")
	planned := []native.Mount{{Source: dir, Target: "/workspace"}}
	if err := compare(planned, []inside.Stamp{mine}, []inside.Stamp{mine}); err != nil {
		t.Errorf("control: %v", err)
	}
	for _, got := range [][]inside.Stamp{{other}, {{Errno: syscall.ENOENT}}, {}} {
		if compare(planned, []inside.Stamp{mine}, got) == nil {
			t.Errorf("%+v is taken for %+v", got, mine)
		}
	}
	if _, err := stamps([]native.Mount{{Source: dir, ID: native.Identity{Dev: 1, Ino: 1}}}); err == nil {
		t.Error("another file on the host is taken for the planned one")
	}
}

// TestSentrySeesTheWrongPlace has the host find another directory, as it was
// planned, than the engine has found: only the guest can tell.
func TestSentrySeesTheWrongPlace(t *testing.T) {
	g, _ := started(t, sentry(t), request(t))
	if err := g.seen(); err != nil {
		t.Fatalf("control: %v", err)
	}
	dir := t.TempDir()
	_, st := inside.StampOf(dir)
	in := *g.plan.Inside
	in.Mounts = slices.Clone(in.Mounts)
	at := slices.IndexFunc(in.Mounts, func(m native.Mount) bool { return m.Target == "/workspace" })
	in.Mounts[at].Source, in.Mounts[at].ID = dir, native.Identity{Dev: st.Dev, Ino: st.Ino}
	g.plan.Inside = &in
	if err := g.seen(); err == nil || !strings.Contains(err.Error(), "is not the") {
		t.Errorf("got %v; want a refusal", err)
	}
}

// TestSentrySockets: no socket of the host is connected to from inside, which the
// engine's configuration could change; the trial sees that, and a file that does
// not arrive. The control is the same connection from outside.
func TestSentrySockets(t *testing.T) {
	p, req := sentry(t), request(t)
	at := filepath.Join(req.Dir, "socket")
	l, err := net.Listen("unix", at)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	g, _ := started(t, p, req)
	s, err := g.look(inside.Question{Connect: "/workspace/socket", Create: "/workspace/socket"})
	if err != nil || s.Connect == 0 || s.Create != syscall.EEXIST {
		t.Errorf("got %+v, %v; want a refusal of the socket", s, err)
	}
	c, err := net.Dial("unix", at)
	if err != nil {
		t.Fatalf("control: %v", err)
	}
	c.Close()
	for why, f := range map[string]*probed{"": {Sentry: true}, "open to all": {Sentry: true, Open: "open to all"}} {
		for _, c := range f.sentryCapabilities() {
			if c.Attribute == sandbox.IPC && (c.Strength == bawn.Enforced) != (why == "") {
				t.Errorf("%q: %+v", why, c)
			}
		}
	}
}

// TestSentryLimits: of memory, and of time by the end of the whole container.
func TestSentryLimits(t *testing.T) {
	p, req := sentry(t), request(t)
	req.Session.Isolation.Resources.MemoryMB = 128
	g, _ := started(t, p, req)
	if out, status := run(t, g, "head -c 8000000 /dev/zero >/tmp/x && echo ok"); out != "ok\n" || len(g.Hits()) > 0 {
		t.Fatalf("control: %q, %v, %+v", out, status, g.Hits())
	}
	run(t, g, "head -c 220000000 /dev/zero | tail -c 200000000 >/dev/null")
	if hits := g.Hits(); len(hits) != 1 || hits[0].Rule != "limits:memory" {
		t.Errorf("hits are %+v", hits)
	}
}

// TestSentryEngineDies: what the engine carried ends with it, and nothing that ran
// goes on.
func TestSentryEngineDies(t *testing.T) {
	testenv.Need(t, "docker", "runsc")
	e := docker.Start(t)
	p := New(Options{Host: e.Host(), Image: e.Image(t, docker.Busybox), Runtime: docker.Runsc}, Setting{Program: program, Runtime: placeFor(t)})
	g := startedBy(t, p)
	if out, _ := run(t, g, "echo before"); out != "before\n" {
		t.Fatalf("control: %q", out)
	}
	pidfd, err := unix.PidfdOpen(g.pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pidfd)
	p.engine.life, p.engine.slow = 500*time.Millisecond, 500*time.Millisecond
	e.Signal(t, syscall.SIGKILL)
	select {
	case <-g.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("nobody says that the session is over")
	}
	if _, err := g.Exec(sandbox.Command{Argv: []string{"true"}}); err == nil {
		t.Error("a command runs in a session that is over")
	}
	_ = g.Close() // the engine does not remove anything any more
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, 5000); n != 1 || err != nil {
		t.Errorf("gVisor goes on without its session: %d, %v", n, err)
	}
}

// startedBy makes a session that its test ends.
func startedBy(t *testing.T, p *Provider) *guest {
	t.Helper()
	plan, err := p.Plan(request(t))
	if err != nil {
		t.Fatal(err)
	}
	g, err := p.Start(plan, func(sandbox.Denial) {})
	if err != nil {
		t.Fatal(err)
	}
	return g.(*guest)
}
