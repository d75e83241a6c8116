package gvisor

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/inside"
	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/bawn-dev/bawn/internal/testenv/listening"
)

// hostVariable makes the test binary a Bawn that is to be killed, in the
// workspace that it names.
const hostVariable = "BAWN_TEST_GVISOR_HOST"

// TestMain is the launcher and the first process of sandboxes, too: they are
// shown the program that runs.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case Argument:
			os.Exit(Main(os.Stdin))
		case inside.Argument:
			os.Exit(inside.Main(os.Args[2:], os.Stdin))
		}
	}
	if dir := os.Getenv(hostVariable); dir != "" {
		os.Exit(host(dir))
	}
	os.Exit(withCache(m))
}

// cacheVariable names the file in which the tests' providers keep what they have
// found out: a trial takes a while.
const cacheVariable = "BAWN_TEST_GVISOR_CACHE"

func withCache(m *testing.M) int {
	dir, err := os.MkdirTemp("", "bawn-gvisor-")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer os.RemoveAll(dir)
	os.Setenv(cacheVariable, dir+"/found")
	return m.Run()
}

// host starts a sandbox by name, says so, and waits to be killed.
func host(dir string) int {
	p, err := provider()
	if err == nil {
		var g sandbox.Guest
		g, err = begin(p, request(dir, bawn.NetworkAllowlist))
		if err == nil {
			_, err = g.Exec(sandbox.Command{Argv: []string{"/bin/sh", "-c", "sleep 1000 & setsid sleep 1000 & sleep 1000"}})
		}
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

func provider() (*Provider, error) {
	runsc, err := testenv.Runsc()
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	return New(Options{Runsc: runsc, Program: self, Cache: os.Getenv(cacheVariable), Unprotected: true}), err
}

// request is a session in dir.
func request(dir string, network bawn.NetworkMode) sandbox.Request {
	iso := bawn.Isolation{Workspace: dir, Network: network, Resources: bawn.Resources{OpenFiles: 200, FileSizeMB: 3, MemoryMB: 400, PIDs: 100, TmpMB: 50}, Mounts: []bawn.Mount{{Path: dir, Access: bawn.ReadWrite, Why: "workspace"}}}
	if os.Geteuid() != 0 { // who may have no control groups
		iso.Resources.MemoryMB = 0
	}
	return sandbox.Request{
		Session: bawn.Session{ID: "s1", Isolation: iso, Provider: Name}, Argv: []string{"sh"}, Dir: dir,
		Environ: []string{"PATH=/usr/bin:/bin", "HOME=/nonexistent"}, Relay: true,
	}
}

func begin(p *Provider, req sandbox.Request) (sandbox.Guest, error) {
	plan, err := p.Plan(req)
	if err != nil {
		return nil, err
	}
	return p.Start(plan, nil)
}

// workspace is a directory that no sandbox covers.
func workspace(t testing.TB) string {
	t.Helper()
	base := "/var/lib"
	if os.Geteuid() != 0 {
		base, _ = os.UserHomeDir()
	}
	dir, err := os.MkdirTemp(base, "bawn-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// start starts a sandbox for a test.
func started(t testing.TB, req sandbox.Request) sandbox.Guest {
	t.Helper()
	testenv.Need(t, "runsc", "userns")
	p, err := provider()
	if err != nil {
		t.Fatal(err)
	}
	g, err := begin(p, req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// run runs a shell's text and returns what it writes and its exit code.
func run(t testing.TB, g sandbox.Guest, text string) (string, int) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p, err := g.Exec(sandbox.Command{Argv: []string{"/bin/sh", "-c", text}, Stdio: [3]*os.File{nil, w, w}})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	out, _ := io.ReadAll(r)
	return string(out), wait(t, p).ExitStatus()
}

func wait(t testing.TB, p sandbox.Process) syscall.WaitStatus {
	t.Helper()
	late := time.After(30 * time.Second)
	for {
		select {
		case ch, ok := <-p.Changes():
			if !ok {
				t.Fatal("the changes ended without an end")
			}
			if !ch.Stopped {
				return ch.Status
			}
		case <-late:
			t.Fatal("the command does not end")
		}
	}
}

// TestSession: files, kernel, identity, exit codes, a port, a terminal, in one
// sandbox: each takes a while to start.
func TestSession(t *testing.T) {
	dir := workspace(t)
	for _, d := range []string{"/.git/hooks", "/.vscode", "/free/hooks"} {
		if err := os.MkdirAll(dir+d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{"/.vscode/settings.json", "/.envrc", "/.npmrc", "/a.code-workspace", "/mise.toml"} {
		if err := os.WriteFile(dir+f, []byte("ours"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	req := request(dir, bawn.NetworkNone)
	req.Session.Isolation.Protect, req.Session.Isolation.Unprotected = true, []string{"mise.toml"}
	g := started(t, req)
	for text, want := range map[string]struct {
		out  string
		code int
	}{
		"ulimit -n; ulimit -f":                    {"200\n6144\n", 0},
		"uname -r":                                {"4.19.0-gvisor\n", 0},
		"echo a; echo b >&2":                      {"a\nb\n", 0},
		"exit 9":                                  {"", 9},
		"echo in > in && cat in":                  {"in\n", 0},
		"touch /etc/bawn-test 2>/dev/null":        {"", 1},
		"touch .git/hooks/pre-commit 2>/dev/null": {"", 1},
		"for p in .npmrc a.code-workspace mise.toml; do { echo x >$p; } 2>/dev/null && echo $p; done":                                                                              {"mise.toml\n", 0},
		"echo x > f; for p in .envrc .vscode/settings.json; do mv f $p; ln -f f $p; rm -f $p; mv $p p2; cp f $p; chmod 600 $p; done 2>/dev/null; cat .envrc .vscode/settings.json": {"oursours", 0},
		"exec 2>/dev/null; rm -rf .vscode; mv .vscode v2; ln -s /tmp .git/hooks/h; mkdir .vscode/d; ls -d v2 .git/hooks/h .vscode/d":                                               {"", 2},
		"mv free free2 && mkdir free && touch free/x && echo as elsewhere":                                                                                                         {"as elsewhere\n", 0}, // the control
		"mv .git .git2 2>&1 | grep -c busy":                                     {"1\n", 0},
		"touch .git/x 2>&1 | grep -c ead-only":                                  {"1\n", 0},
		"grep -c ^CapBnd:.0000000000000000 /proc/self/status":                   {"1\n", 0},
		"grep ^Seccomp: /proc/self/status":                                      {"Seccomp:\t2\n", 0},
		"echo x > /tmp/x && echo y > /dev/shm/y && cat /tmp/x":                  {"x\n", 0},
		"mkfifo /etc/bawn-fifo 2>/dev/null":                                     {"", 1},
		"chmod 777 /etc 2>/dev/null":                                            {"", 1},
		"cat /sys/class/net/*/address 2>/dev/null | sort -u | grep -vc 00:00:0": {"0\n", 1},
	} {
		if out, code := run(t, g, text); out != want.out || code != want.code {
			t.Errorf("%s: %q, %d; want %q, %d", text, out, code, want.out, want.code)
		}
	}
	if text, err := os.ReadFile(dir + "/in"); string(text) != "in\n" || err != nil {
		t.Errorf("outside: %q, %v", text, err)
	}
	if _, err := os.Stat("/etc/bawn-test"); err == nil {
		t.Error("it was written outside")
	}
	st, err := os.Stat(dir + "/in")
	if err != nil || st.Sys().(*syscall.Stat_t).Uid != uint32(os.Geteuid()) {
		t.Errorf("a file of the guest's is not ours: %v", err)
	}
	t.Run("not found", func(t *testing.T) {
		_, err := g.Exec(sandbox.Command{Argv: []string{"no-such-program"}})
		var nf *sandbox.NotFoundError
		if !errors.As(err, &nf) || !nf.Absent {
			t.Errorf("got %v", err)
		}
	})
	t.Run("port", func(t *testing.T) { dials(t, g) })
	t.Run("terminal", func(t *testing.T) { terminal(t, g) })
}

// TestLimits: of memory and of processes, for all of the sandbox. The control is
// the same below the limit.
func TestLimits(t *testing.T) {
	testenv.Need(t, "cgroup", "python3")
	use := func(mb int) string {
		return fmt.Sprintf("python3 -c 'x=bytearray(%d<<20)\nfor i in range(0,len(x),4096): x[i]=1\nprint(1)'", mb)
	}
	g := started(t, request(workspace(t), bawn.NetworkNone)) // of 400 MiB
	if out, code := run(t, g, use(50)); out != "1\n" || code != 0 {
		t.Fatalf("control: %q, %d", out, code)
	}
	if hits := g.Hits(); len(hits) > 0 {
		t.Errorf("control: %+v", hits)
	}
	if out, code := run(t, g, use(800)); out != "" || code == 0 {
		t.Errorf("800 MiB of 400: %q, %d", out, code)
	}
	if hits := g.Hits(); len(hits) == 0 || hits[0].Rule != "limits:memory" {
		t.Errorf("hits: %+v", hits)
	}
}

// TestProcesses: also where there are no control groups, as an ordinary user.
func TestProcesses(t *testing.T) {
	if os.Geteuid() == 0 {
		testenv.Need(t, "cgroup")
	}
	processes(t)
}

func processes(t *testing.T) {
	another := request(workspace(t), bawn.NetworkNone) // of 100 processes
	another.Session.ID = "s2"
	g := started(t, another)
	many := func(n int) string {
		return fmt.Sprintf("i=0; while [ $i -lt %d ]; do sleep 60 >/dev/null 2>&1 & i=$((i+1)); done; echo all", n)
	}
	if out, _ := run(t, g, many(20)); out != "all\n" {
		t.Fatalf("control: %q", out)
	}
	if out, code := run(t, g, many(100+2*Overhead)); out == "all\n" {
		t.Errorf("%d processes of 100: %q, %d", 100+2*Overhead, out, code)
	}
	if hits := g.Hits(); os.Geteuid() == 0 && (len(hits) == 0 || hits[0].Rule != "limits:pids" || !hits[0].Killed || !strings.Contains(hits[0].Reason, "its limit of 100 processes")) {
		t.Errorf("hits: %+v", hits)
	}
}

// dials connects to a program of the guest that listens.
func dials(t *testing.T, g sandbox.Guest) {
	testenv.Need(t, "python3")
	if _, err := g.Dial(4321); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("a port where nobody is: %v", err)
	}
	text := "import socket\ns=socket.create_server(('127.0.0.1',4321))\nprint('there',flush=True)\nc,_=s.accept()\nc.sendall(b'heard '+c.recv(100))\n"
	r, w, _ := os.Pipe()
	defer r.Close()
	p, err := g.Exec(sandbox.Command{Argv: []string{"python3", "-c", text}, Stdio: [3]*os.File{nil, w, w}})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	from := bufio.NewReader(r)
	if line, err := from.ReadString('\n'); line != "there\n" {
		t.Fatalf("%q, %v", line, err)
	}
	f, err := g.Dial(4321)
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.FileConn(f)
	f.Close()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, "me")
	if got, err := io.ReadAll(c); string(got) != "heard me" {
		t.Errorf("%q, %v", got, err)
	}
	wait(t, p)
}

// terminal types at a shell.
func terminal(t *testing.T, g sandbox.Guest) {
	master, slave, err := g.OpenTerminal()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	p, err := g.Exec(sandbox.Command{Argv: []string{"sh", "-c", "tty; read x; echo got-$x; exec sleep 100"}, Stdio: [3]*os.File{slave, slave, slave}, Terminal: slave})
	slave.Close()
	if err != nil {
		t.Fatal(err)
	}
	_, _ = master.WriteString("abc\n")
	from := bufio.NewReader(master)
	_ = master.SetReadDeadline(time.Now().Add(20 * time.Second))
	for line := ""; strings.TrimSpace(line) != "got-abc"; {
		if line, err = from.ReadString('\n'); err != nil {
			t.Fatalf("%q, %v", line, err)
		}
	}
	_, _ = master.WriteString("\x03")
	if ws := wait(t, p); ws.Signal() != syscall.SIGINT {
		t.Errorf("got %v", ws)
	}
}

// TestNetworkByName: what is sent anywhere arrives at our sockets, and what is
// neither TCP nor a question for a name is refused at once.
func TestNetworkByName(t *testing.T) {
	testenv.Need(t, "python3")
	req := request(workspace(t), bawn.NetworkAllowlist)
	req.HostPorts = []uint16{5432}
	g := started(t, req)
	n := g.Network()
	if n == nil || len(n.Connect) == 0 {
		t.Fatal("there are no sockets")
	}
	arrived := make(chan string, 10)
	for _, f := range n.Connect {
		l, err := net.FileListener(f)
		if err != nil {
			t.Fatal(err)
		}
		listening.Accept(t, l, func(c net.Conn) { arrived <- original(c) })
	}
	for to, want := range map[string]string{"1.2.3.4 80": "1.2.3.4:80", "10.0.0.1 22": "10.0.0.1:22", "127.0.0.1 5432": "127.0.0.1:5432"} {
		host, port, _ := strings.Cut(to, " ")
		if out, code := run(t, g, fmt.Sprintf("python3 -c 'import socket; socket.create_connection((%q,%s),20)'", host, port)); code != 0 {
			t.Errorf("%s: %s", to, out)
			continue
		}
		if got := testenv.Receive(t, to, arrived); got != want {
			t.Errorf("%s arrives for %s", to, got)
		}
	}
	out, _ := run(t, g, "python3 -c 'import socket,time\nt=time.time()\nu=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)\nu.settimeout(20)\nu.connect((\"8.8.8.8\",123))\nu.send(b\"x\")\ntry: u.recv(9)\nexcept OSError as e: print(e.errno, time.time()-t<15)'")
	if want := fmt.Sprintf("%d True\n", unix.ECONNREFUSED); out != want {
		t.Errorf("a datagram: %q, want %q", out, want)
	}
	if _, code := run(t, g, "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\",5433),5)' 2>/dev/null"); code == 0 {
		t.Error("a port of the host that was not opened is reached")
	}
}

// original is where a connection of IPv4 was to go.
func original(c net.Conn) string {
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		return err.Error()
	}
	var to string
	_ = raw.Control(func(fd uintptr) {
		sa, err := unix.GetsockoptIPv6Mreq(int(fd), unix.SOL_IP, unix.SO_ORIGINAL_DST) // long enough for a sockaddr_in
		if err != nil {
			to = err.Error()
			return
		}
		b := sa.Multiaddr
		to = fmt.Sprintf("%d.%d.%d.%d:%d", b[4], b[5], b[6], b[7], int(b[2])<<8|int(b[3]))
	})
	return to
}

// descendants lists a process and all below it.
func descendants(pid int) []int {
	list := []int{pid}
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, f := range files {
		text, _ := os.ReadFile(f)
		for _, word := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(word); err == nil {
				list = append(list, descendants(child)...)
			}
		}
	}
	return list
}

// alive lists those that run.
func alive(pids []int) (list []string) {
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err == nil && !strings.Contains(string(text), ") Z ") && !strings.Contains(string(text), ") X ") {
			list = append(list, string(text))
		}
	}
	return list
}

// TestKilledBawnLeavesNothing: no process, and no mount, since those are in
// namespaces that end with the processes.
func TestKilledBawnLeavesNothing(t *testing.T) {
	testenv.Need(t, "runsc", "userns")
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), hostVariable+"="+workspace(t))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	hold, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Close()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	all := descendants(cmd.Process.Pid)
	if len(all) < 5 {
		t.Fatalf("control: it has the processes %d", all)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	testenv.Until(t, "their end", func() bool { return len(alive(all)) == 0 })
	if now, err := os.ReadFile("/proc/self/mountinfo"); err != nil || strings.Count(string(now), "runsc") > strings.Count(string(mounts), "runsc") {
		t.Errorf("mounts are left: %v\n%s", err, now)
	}
}

// TestItsOwnEnd: a sandbox that ends by itself says so, and what ran in it ends.
func TestItsOwnEnd(t *testing.T) {
	g := started(t, request(workspace(t), bawn.NetworkNone))
	p, err := g.Exec(sandbox.Command{Argv: []string{"sleep", "1000"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range descendants(g.(*guest).cmd.Process.Pid)[1:] {
		_ = unix.Kill(pid, unix.SIGKILL) // gVisor, from outside; each may have ended with another
	}
	testenv.Receive(t, "the sandbox's end", g.Done())
	if ws := wait(t, p); ws.Signal() != syscall.SIGKILL {
		t.Errorf("the command's end: %v", ws)
	}
	if _, err := g.Exec(sandbox.Command{Argv: []string{"true"}}); err == nil {
		t.Error("a command runs in a sandbox that has ended")
	}
}

// TestRunscFails: one that ends, and one that says nothing, which nobody waits
// for very long.
func TestRunscFails(t *testing.T) {
	testenv.Need(t, "userns")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		text, why string
		patience  time.Duration
	}{
		"ends":  {"#!/bin/sh\necho no kernel today >&2\nexit 7\n", "no kernel today", 20 * time.Second},
		"hangs": {"#!/bin/sh\nexec sleep 1000\n", "does not answer", 300 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			fake := filepath.Join(t.TempDir(), "runsc")
			if err := os.WriteFile(fake, []byte(tt.text), 0o755); err != nil {
				t.Fatal(err)
			}
			p := New(Options{Runsc: fake, Program: self, Patience: tt.patience})
			for _, c := range p.Capabilities() {
				if c.Strength != bawn.Unenforced || !strings.Contains(c.Why, tt.why) || c.Remedy == "" {
					t.Fatalf("%+v", c)
				}
			}
			if _, err := p.Plan(request(workspace(t), bawn.NetworkNone)); err == nil {
				t.Error("there is a plan for a runsc that fails")
			}
		})
	}
}

// TestNoRunsc: every attribute is unenforced, and it is said what would mend it.
func TestNoRunsc(t *testing.T) {
	caps := New(Options{Path: t.TempDir()}).Capabilities()
	if len(caps) != len(attributes) {
		t.Errorf("%d capabilities", len(caps))
	}
	for _, c := range caps {
		if c.Strength != bawn.Unenforced || !strings.Contains(c.Why, "runsc") || c.Remedy == "" {
			t.Errorf("%+v", c)
		}
	}
}

// Protected names get out of gVisor, so a session that asks for them is refused
// unless the user accepts that.
func TestProtectedNamesAreRefused(t *testing.T) {
	testenv.Need(t, "runsc", "userns")
	accepting, err := provider()
	if err != nil {
		t.Fatal(err)
	}
	o := accepting.options
	o.Unprotected = false
	req := request(workspace(t), bawn.NetworkNone)
	req.Session.Isolation.Protect = true
	_, err = New(o).Plan(req)
	var mismatch *sandbox.MismatchError
	if !errors.As(err, &mismatch) || len(mismatch.Unmet) != 1 || mismatch.Unmet[0].Attribute != sandbox.FSProtect || !strings.Contains(err.Error(), "gvisor_accept_unprotected = true") {
		t.Errorf("got %v; want a refusal that names the key", err)
	}
	// The controls: who accepts it, and a session that does not ask for it.
	if _, err := accepting.Plan(req); err != nil {
		t.Error(err)
	}
	req.Session.Isolation.Protect = false
	if _, err := New(o).Plan(req); err != nil {
		t.Error(err)
	}
}
