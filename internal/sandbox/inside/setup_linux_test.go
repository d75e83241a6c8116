package inside

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/ipc"
	"github.com/bawn-dev/bawn/internal/linux/cgroup"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// TestNetworkByName: a connection to another machine arrives at our listener with
// its destination, and a name server's question at our resolver.
func TestNetworkByName(t *testing.T) {
	none := start(t, bare("/"))
	if _, end := none.run(t, os.Args[0], roleAttempt, "dial", "198.18.7.9:443"); end.ExitStatus() == 0 {
		t.Error("the control run reached another machine")
	}
	s := bare("/")
	s.Network = &layout.Network{Listen: 61001, DNS: 61053, Proxy: 61128, HostPorts: []uint16{5432}, Own: []netip.Addr{netip.MustParseAddr("192.0.0.8")}}
	l := start(t, s)
	net4 := l.Network()
	if net4 == nil || len(net4.Files()) != 4 {
		t.Fatalf("got %+v, want four sockets", net4)
	}
	for _, to := range []string{"198.18.7.9:443", "127.0.0.1:5432"} {
		got := make(chan string, 1)
		go func() { got <- acceptOne(net4.Connect[0]) }()
		out, end := l.run(t, os.Args[0], roleAttempt, "dial", to)
		if end.ExitStatus() != 0 || out != "hello" {
			t.Fatalf("%s: got %q, exit status %d", to, out, end.ExitStatus())
		}
		if where := <-got; where != to {
			t.Errorf("the connection to %s says that it was meant for %s", to, where)
		}
	}
	for _, port := range []uint16{61001, 61128, 53, 5432} {
		if _, err := l.Dial(port); !errors.Is(err, unix.ECONNREFUSED) {
			t.Errorf("port %d, which is ours: got %v", port, err)
		}
	}
	// None of them is left inside.
	if fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", l.pid)); err == nil {
		for _, fd := range fds {
			if to, _ := os.Readlink(fd); strings.HasPrefix(to, "socket:") && sameSocket(fd, net4.Files()) {
				t.Errorf("the first process still has %s", to)
			}
		}
	}
}

// sameSocket reports whether a descriptor of another process is one of files.
func sameSocket(fd string, files []*os.File) bool {
	var a unix.Stat_t
	if unix.Stat(fd, &a) != nil {
		return false
	}
	for _, f := range files {
		var b unix.Stat_t
		if unix.Fstat(int(f.Fd()), &b) == nil && a.Ino == b.Ino {
			return true
		}
	}
	return false
}

// acceptOne greets one connection and returns where it was meant for.
func acceptOne(listener *os.File) string {
	l, err := net.FileListener(listener)
	if err != nil {
		return err.Error()
	}
	defer l.Close()
	c, err := l.Accept()
	if err != nil {
		return err.Error()
	}
	defer c.Close()
	f, err := c.(*net.TCPConn).File()
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	const originalDst = 80 // SO_ORIGINAL_DST
	mreq, err := unix.GetsockoptIPv6Mreq(int(f.Fd()), unix.IPPROTO_IP, originalDst)
	if err != nil {
		return err.Error()
	}
	_, _ = c.Write([]byte("hello")) // the reader notices
	b := mreq.Multiaddr
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:8])), uint16(b[2])<<8|uint16(b[3])).String()
}

// TestDial reaches a server of the guest, and only where it has a network of its
// own.
func TestDial(t *testing.T) {
	l := start(t, bare("/"))
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p, err := l.Exec(sandbox.Command{Argv: []string{os.Args[0], roleAttempt, "listen", "127.0.0.1:8080"}, Stdio: [3]*os.File{nil, w, nil}})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(r).ReadString('\n'); err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	c, err := l.Dial(8080)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(c)
	c.Close()
	if err != nil || string(text) != "from inside" {
		t.Errorf("got %q, %v", text, err)
	}
	ended(t, p)
	if _, err := l.Dial(8080); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("where nobody listens: %v", err)
	}
	s := bare("/")
	s.Ports = false
	if _, err := start(t, s).Dial(8080); !errors.Is(err, sandbox.ErrUnsupported) {
		t.Errorf("without a network of its own: %v", err)
	}
	if _, err := l.client.Socket(unix.AF_UNIX); !errors.Is(err, unix.EAFNOSUPPORT) {
		t.Errorf("a socket of another family: %v", err)
	}
}

func TestLimits(t *testing.T) {
	s := bare(t.TempDir())
	s.Limits = bawn.Resources{OpenFiles: 40, FileSizeMB: 1, MemoryMB: 4096}
	l := start(t, s)
	if got, want := l.shell(t, "ulimit -Hn; ulimit -Sn; ulimit -Hc; ulimit -Hd", true), "40\n40\n0\n4194304"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	l.shell(t, "head -c 2000000 /dev/zero > big", false)
	start(t, bare(s.Dir)).shell(t, "head -c 2000000 /dev/zero > big", true)
}

// TestLowLimits: what is too little for the first process is still a limit for
// commands alone, of which many run.
func TestLowLimits(t *testing.T) {
	s := bare("/")
	s.Limits = bawn.Resources{MemoryMB: 2, PIDs: 3, OpenFiles: 6}
	l := start(t, s)
	for range 30 {
		if got := l.shell(t, "ulimit -Hd; ulimit -Hn", true); got != "2048\n6" {
			t.Fatalf("got %q, want the limits", got)
		}
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", l.pid))
	if err != nil || strings.Contains(string(text), "2097152") {
		t.Errorf("%v: the first process has the commands' limits:\n%s", err, text)
	}
}

// threads counts those of a process.
func threads(t *testing.T, pid int) int {
	t.Helper()
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// TestFullGroup: when commands have used up the processes of the control group,
// the first process, which is in it too, goes on.
func TestFullGroup(t *testing.T) {
	testenv.Need(t, "cgroup")
	group, err := cgroup.New(fmt.Sprintf("inside-%d", os.Getpid()), cgroup.Limits{PIDs: 40})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := group.Remove(); err != nil {
			t.Error(err)
		}
	})
	s := bare("/")
	s.Terminals = true
	if s.Groups, err = group.OpenProcs(); err != nil {
		t.Fatal(err)
	}
	l := start(t, s)
	bomb, err := l.Exec(sandbox.Command{Argv: []string{"/bin/bash", "-c", "trap '' TERM; while :; do sleep 1000 & done 2>/dev/null"}})
	if err != nil {
		t.Fatal(err)
	}
	testenv.Until(t, "the group to be full", func() bool {
		return slices.ContainsFunc(s.Groups, func(f *os.File) bool { // of one hierarchy
			text, _ := os.ReadFile(filepath.Join(filepath.Dir(f.Name()), "pids.current"))
			return string(text) == "40\n"
		})
	})
	if n := threads(t, l.pid); n < 10 {
		t.Errorf("the first process has %d threads, and can't make another", n)
	}
	refused := 0
	var some sync.WaitGroup
	var mu sync.Mutex
	for range 20 {
		master, slave, err := l.OpenTerminal()
		if err != nil {
			t.Fatal(err)
		}
		defer master.Close()
		defer slave.Close()
		some.Go(func() {
			for i := range 10 {
				c := sandbox.Command{Argv: []string{"/bin/true"}}
				if i%2 == 1 {
					c.Stdio[0], c.Terminal = slave, slave
				}
				if _, err := l.Exec(c); errors.Is(err, unix.EAGAIN) {
					mu.Lock()
					refused++
					mu.Unlock()
				}
			}
		})
	}
	some.Wait()
	if refused == 0 {
		t.Error("the group never was full")
	}
	if err := bomb.Signal(unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	ended(t, bomb)
	select {
	case <-l.Done():
		t.Fatal("the first process has ended")
	default:
	}
	l.run(t, "/bin/sh", "-c", "kill -9 -1")
	l.shell(t, "true", true)
}

// TestGroups: the process joins every group before anything else, however many
// frames that takes.
func TestGroups(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	s := bare("/")
	s.Groups = []*os.File{w, w, w, w, w, w, w}
	start(t, s)
	w.Close()
	if text, err := io.ReadAll(r); err != nil || string(text) != "0000000" {
		t.Errorf("got %q, %v, want one line for each group", text, err)
	}
}

// TestTerminalsOfItsOwn: programs find their terminal by its name, and none of
// the host's.
func TestTerminalsOfItsOwn(t *testing.T) {
	s := bare("/")
	s.Terminals = true
	l := start(t, s)
	if got := l.shell(t, "ls /dev/pts", true); got != "ptmx" {
		t.Errorf("/dev/pts holds %q, want an empty one", got)
	}
	master, slave, err := l.OpenTerminal()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p, err := l.Exec(sandbox.Command{Argv: []string{"tty"}, Stdio: [3]*os.File{slave, w, w}, Terminal: slave})
	slave.Close()
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(r)
	if err != nil || string(out) != "/dev/pts/0\n" {
		t.Errorf("got %q, %v", out, err)
	}
	ended(t, p)
}

// TestDescriptorsOfTheEngine: what was left open stays with nobody.
func TestDescriptorsOfTheEngine(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ours, theirs, err := ipc.Pair()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe", roleInside)
	cmd.Stdin, cmd.ExtraFiles = theirs, []*os.File{w}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	theirs.Close()
	w.Close()
	if err := r.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(r); err != nil { // while it still waits for a setup
		t.Errorf("the first process keeps what was left open: %v", err)
	}
	ours.Close()
}

// TestStepsThatFail: what can't be done ends the first process, and the host is
// told which step it was.
func TestStepsThatFail(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	for want, change := range map[string]func(*Setup){
		"join a control group": func(s *Setup) { s.Groups = []*os.File{full} },
		"restrict by Landlock": func(s *Setup) { s.Landlock.ABI = 1000 },
		"network": func(s *Setup) {
			s.Network = &layout.Network{Listen: 61001, DNS: 61053, Proxy: 61001, Own: []netip.Addr{netip.MustParseAddr("192.0.0.8")}}
		},
		"the last of many joins": func(s *Setup) { s.Groups = []*os.File{full, full, full, full, full, full, full, full, full} },
	} {
		s := bare("/")
		change(&s)
		f := launch(t)
		_, err := Start(testenv.Context(t), f.conn, s)
		var step *StepError
		if !errors.As(err, &step) || step.Step != want && want != "the last of many joins" {
			t.Fatalf("got %v, want step %q", err, want)
		}
		if err := f.cmd.Wait(); err == nil {
			t.Errorf("%s: the first process ended without an error", want)
		}
	}
}

// TestSetupsThatContainNothing are refused on both sides.
func TestSetupsThatContainNothing(t *testing.T) {
	for name, s := range map[string]Setup{
		"zero": {}, "no plan": {Session: "s"}, "unknown filter": {Session: "s", Plan: plan, Filter: 9},
		"capabilities below a filter": {Session: "s", Plan: plan, KeepCapabilities: true},
		"a listener over a stream":    {Session: "s", Plan: plan, Stream: true, Filter: FilterSupervised},
		"a network of nothing":        {Session: "s", Plan: plan, Network: &layout.Network{}},
	} {
		if s.check() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
