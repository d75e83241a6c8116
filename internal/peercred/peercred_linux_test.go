package peercred

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// The first thread is the one whose state stands in /proc/PID/status.
func init() { runtime.LockOSThread() }

// TestMain plays the peer where the environment says so: it confines itself,
// connects, and prints what it is told.
func TestMain(m *testing.M) {
	if path := os.Getenv("BAWN_TEST_CONNECT"); path != "" {
		if err := connect(path, os.Getenv("BAWN_TEST_HOW")); err != nil {
			fmt.Println("failed:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func connect(path, how string) error {
	var err error
	switch how {
	case "filter":
		err = filter()
	case "supervisor":
		err = supervise()
	case "not dumpable":
		err = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	case "child":
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "BAWN_TEST_HOW=")
		cmd.Stdout = os.Stdout
		return cmd.Run()
	}
	if err != nil {
		return err
	}
	// From this thread: others of the runtime have not confined themselves.
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), "socket")
	if how == "gone" { // a child keeps the connection open
		cmd := exec.Command("sleep", "5")
		cmd.ExtraFiles = []*os.File{f}
		if err := cmd.Start(); err != nil {
			return err
		}
		fmt.Println(cmd.Process.Pid)
		return nil
	}
	said, err := bufio.NewReader(f).ReadString('\n')
	fmt.Print(said)
	return err
}

// A gate listens and says what Admit thinks of each who connects.
type gate struct {
	path string
	got  chan error
	gone chan struct{} // closed when a peer of that kind has ended
}

// listen asks Admit about each peer, with hosts; of late ones when they are gone.
func listen(t *testing.T, hosts func(int) bool, late bool) *gate {
	t.Helper()
	g := &gate{path: filepath.Join(t.TempDir(), "s"), got: make(chan error, 10), gone: make(chan struct{})}
	l, err := net.Listen("unix", g.path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if late {
				<-g.gone
			}
			err = Admit(conn, hosts)
			g.got <- err
			fmt.Fprintf(conn, "%v\n", err)
			conn.Close()
		}
	}()
	return g
}

// peer starts a process that connects, and returns what Admit said.
func (g *gate) peer(t *testing.T, how string, attr *syscall.SysProcAttr) (out string, said error) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "BAWN_TEST_CONNECT="+g.path, "BAWN_TEST_HOW="+how)
	cmd.SysProcAttr = attr
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v: %s", how, err, text)
	}
	if how == "gone" {
		close(g.gone)
	}
	return string(text), <-g.got
}

func refusedFor(t *testing.T, err error, why string) {
	t.Helper()
	var refused *RefusedError
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), why) || refused.PID <= 0 {
		t.Errorf("err = %v; want a refusal that names %q", err, why)
	}
}

// TestOrdinaryProcessIsAdmitted is the control of the others.
func TestOrdinaryProcessIsAdmitted(t *testing.T) {
	g := listen(t, nil, false)
	if _, err := g.peer(t, "", nil); err != nil {
		t.Error(err)
	}
	if _, err := g.peer(t, "child", nil); err != nil {
		t.Error(err)
	}
}

func TestNamespacesAreRefused(t *testing.T) {
	testenv.Need(t, "userns")
	for kind, flags := range map[string]uintptr{
		"user": unix.CLONE_NEWUSER, "pid": unix.CLONE_NEWUSER | unix.CLONE_NEWPID, "mnt": unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
	} {
		g := listen(t, nil, false)
		attr := &syscall.SysProcAttr{
			Cloneflags:  flags,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
		}
		_, err := g.peer(t, "", attr)
		refusedFor(t, err, "user namespace")
		if kind == "user" || os.Geteuid() != 0 {
			continue
		}
		attr = &syscall.SysProcAttr{Cloneflags: flags &^ unix.CLONE_NEWUSER} // as root one kind at a time
		_, err = g.peer(t, "", attr)
		refusedFor(t, err, kind+" namespace")
	}
}

// TestConfinedWithoutNamespacesIsRefused has a filter and nothing else, as a
// guest has where there are no user namespaces.
func TestConfinedWithoutNamespacesIsRefused(t *testing.T) {
	testenv.Need(t, "seccomp")
	g := listen(t, nil, false)
	_, err := g.peer(t, "filter", nil)
	refusedFor(t, err, "seccomp filter")
}

// TestSupervisorIsRefused: who answers system calls connects for guests, known as
// a host or not. Where hosts speak, they may.
func TestSupervisorIsRefused(t *testing.T) {
	testenv.Need(t, "seccomp", "notify")
	g := listen(t, func(int) bool { return false }, false)
	_, err := g.peer(t, "supervisor", nil)
	refusedFor(t, err, "may connect for a guest")
	g = listen(t, nil, false)
	if _, err := g.peer(t, "supervisor", nil); err != nil {
		t.Errorf("among hosts: %v", err)
	}
}

// TestHidingIsRefused makes itself unreadable: as root nothing is.
func TestHidingIsRefused(t *testing.T) {
	g := listen(t, nil, false)
	_, err := g.peer(t, "not dumpable", nil)
	if os.Geteuid() == 0 {
		if err != nil {
			t.Errorf("root can't look: %v", err)
		}
		return
	}
	refusedFor(t, err, "can't be told")
}

func TestChildOfAHostIsRefused(t *testing.T) {
	g := listen(t, func(pid int) bool { return pid == os.Getpid() }, false)
	for _, how := range []string{"", "child"} {
		_, err := g.peer(t, how, nil)
		refusedFor(t, err, "hosts a session")
	}
	g = listen(t, func(int) bool { return false }, false)
	if _, err := g.peer(t, "child", nil); err != nil {
		t.Error(err)
	}
}

// TestPeerThatHasEndedIsRefused connects, leaves the connection to a child and
// ends: its number may be anybody's by then.
func TestPeerThatHasEndedIsRefused(t *testing.T) {
	g := listen(t, nil, true)
	out, err := g.peer(t, "gone", nil)
	var pid int
	if _, err := fmt.Sscan(out, &pid); err == nil && pid > 1 {
		_ = syscall.Kill(pid, syscall.SIGKILL) // the sleep, ours
	}
	var refused *RefusedError
	if !errors.As(err, &refused) {
		t.Errorf("err = %v; want a refusal", err)
	}
	// With its number given away anew only the descriptor tells.
	p := &Peer{PID: os.Getpid(), UID: os.Geteuid()}
	dead := exec.Command("true")
	if err := dead.Start(); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.PidfdOpen(dead.Process.Pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	p.fd = os.NewFile(uintptr(fd), "pidfd")
	defer p.Close()
	if err := dead.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := p.outside(nil); err != nil {
		t.Errorf("the control: %v", err)
	}
	refusedFor(t, p.admit(nil), "has ended")
}

func TestStatusThatCantBeRead(t *testing.T) {
	for _, text := range []string{"", "PPid:\t1\nSeccomp:\tx\n", "Seccomp:\t0\n"} {
		var who process
		if err := who.read(bufio.NewScanner(strings.NewReader(text))); err == nil {
			t.Errorf("%q was read as %+v", text, who)
		}
	}
	if _, err := look(1 << 30); err == nil {
		t.Error("looked at a process that is not there")
	}
}

func TestOfIsForUnixSockets(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if _, err := Of(a); err == nil {
		t.Error("a pipe has a peer")
	}
}

// TestOtherUser needs root, to be another.
func TestOtherUser(t *testing.T) {
	testenv.Need(t, "root")
	dir, err := os.MkdirTemp("/var/tmp", "peercred") // t.TempDir's parents are closed to others
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := os.Chmod(path, 0o777); err != nil {
		t.Fatal(err)
	}
	self, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "peer")
	if err := os.WriteFile(program, self, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program)
	cmd.Dir = "/"
	cmd.Env = []string{"BAWN_TEST_CONNECT=" + path}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	refusedFor(t, Admit(conn, nil), "for user 0 only")
	conn.Close()
	_ = cmd.Wait() // it reads nothing, and says so
}
