package inside

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/ipc"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
	"github.com/bawn-dev/bawn/internal/sandbox/supervise"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// The roles of the test binary, by its first argument.
const (
	roleInside  = "be-the-first-process"
	roleEngine  = "be-the-engine" // what bwrap or a container engine does before
	roleBwrap   = "be-bwrap"      // the same, after giving up new privileges
	roleHost    = "be-the-host"
	roleAttempt = "attempt"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case roleInside:
			unix.Exit(Main(os.Args[2:], os.Stdin)) // os.Exit takes a second with the race detector
		case roleEngine:
			unix.Exit(failed(engine(os.Args[2:])))
		case roleBwrap:
			runtime.LockOSThread()
			unix.Exit(failed(errors.Join(unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), engine(os.Args[2:]))))
		case roleHost:
			unix.Exit(failed(host()))
		case roleAttempt:
			unix.Exit(failed(attempt(os.Args[2:])))
		}
	}
	os.Exit(m.Run())
}

func failed(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// engine is the first process of fresh namespaces: it mounts their /proc, drops
// capabilities that no setup needs, and becomes inside.
func engine(args []string) error {
	runtime.LockOSThread()
	if os.Getpid() != 1 {
		return fmt.Errorf("process %d has no PID namespace of its own: nothing is mounted", os.Getpid())
	}
	if ids, err := os.ReadFile("/proc/self/uid_map"); err != nil || strings.Fields(string(ids))[2] != "1" {
		return fmt.Errorf("the users are %q, %v; want a user namespace with one of them: nothing is mounted", ids, err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	for i := range uintptr(64) { // above the last capability it is no number
		if i != unix.CAP_NET_ADMIN && i != unix.CAP_SYS_ADMIN && i != unix.CAP_SETPCAP && i != unix.CAP_SYS_CHROOT {
			_ = unix.Prctl(unix.PR_CAPBSET_DROP, i, 0, 0, 0)
		}
	}
	return syscall.Exec("/proc/self/exe", append([]string{os.Args[0], roleInside}, args...), os.Environ())
}

// namespaces are those of the lab's sandboxes: root inside is the test's user.
func namespaces() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
		Pdeathsig:   unix.SIGKILL,
	}
}

var plan = sha256.Sum256([]byte("a plan"))

// bare is a setup for the lab's namespaces.
func bare(dir string) Setup {
	return Setup{
		Session: "s1", Plan: plan, Loopback: true, Ports: true, Dir: dir,
		Environ: []string{"PATH=/usr/bin:/bin", "LANG=C"},
	}
}

// A first is a first process that nobody has spoken to.
type first struct {
	cmd  *exec.Cmd
	conn *os.File
	said *bytes.Buffer // of its standard error, once it has ended
}

// launch starts one in namespaces of its own.
func launch(t testing.TB, args ...string) *first {
	t.Helper()
	testenv.Need(t, "userns")
	return launchAs(t, namespaces(), append([]string{roleEngine}, args...)...)
}

// launchAs starts this binary as something, with the control socket as its
// standard input if only its role is named.
func launchAs(t testing.TB, attr *syscall.SysProcAttr, args ...string) *first {
	t.Helper()
	f := &first{said: new(bytes.Buffer)}
	ours, theirs, err := ipc.Pair()
	if err != nil {
		t.Fatal(err)
	}
	f.conn = ours
	f.cmd = exec.Command("/proc/self/exe", args...)
	f.cmd.Stdin, f.cmd.Stderr, f.cmd.SysProcAttr = theirs, f.said, attr
	if len(args) > 1 {
		f.cmd.Stdin = nil
	}
	// PR_SET_PDEATHSIG counts the thread.
	started := make(chan error)
	stop := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		started <- f.cmd.Start()
		<-stop
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	t.Cleanup(func() {
		_ = f.cmd.Process.Kill() // it has ended by itself, as a rule
		_ = f.cmd.Wait()
		close(stop)
		ours.Close()
	})
	return f
}

// A lab is a guest, and its first process as the test sees it.
type lab struct {
	*Guest
	pid int
}

func start(t testing.TB, s Setup) *lab {
	t.Helper()
	return launch(t).start(t, s)
}

// start has s carried out.
func (f *first) start(t testing.TB, s Setup) *lab {
	t.Helper()
	g, err := Start(testenv.Context(t), f.conn, s)
	if err != nil {
		t.Fatalf("%v\n%s", err, f.said)
	}
	l := &lab{g, f.cmd.Process.Pid}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// run executes a command and returns what it wrote and its end.
func (l *lab) run(t testing.TB, argv ...string) (string, syscall.WaitStatus) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p, err := l.Exec(sandbox.Command{Argv: argv, Stdio: [3]*os.File{nil, w, w}})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	out := make(chan string)
	go func() {
		text, _ := io.ReadAll(r)
		out <- string(text)
	}()
	end := ended(t, p)
	if err := r.SetReadDeadline(time.Now().Add(200 * time.Millisecond)); err != nil { // something may keep the pipe
		t.Fatal(err)
	}
	return <-out + testenv.Drain(t, r), end // the deadline may have come before a read
}

// ended waits for the end of p.
func ended(t testing.TB, p sandbox.Process) syscall.WaitStatus {
	t.Helper()
	late := time.After(20 * time.Second)
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

// shell runs a line of shell and wants it to succeed or not.
func (l *lab) shell(t testing.TB, line string, want bool) string {
	t.Helper()
	out, end := l.run(t, "/bin/sh", "-c", line)
	if (end.ExitStatus() == 0) != want {
		t.Errorf("%q: exit status %d, want success: %v\n%s", line, end.ExitStatus(), want, out)
	}
	return strings.TrimSpace(out)
}

// supervise serves the guest's listener as a provider does.
func (l *lab) supervise(t testing.TB, p *layout.Plan, onDenial func(sandbox.Denial)) {
	t.Helper()
	s := supervise.Supervise(l.Root, l.Listener, p, onDenial)
	t.Cleanup(func() { // before the guest is closed
		s.Stop()
		l.End()
		<-l.Done()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}
