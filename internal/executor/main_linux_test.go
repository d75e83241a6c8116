package executor

import (
	"crypto/sha256"
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
	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/bawn-dev/bawn/internal/ticket"
)

// The roles of the test binary, by its first argument.
const (
	roleExecutor = "be-the-executor"
	roleLower    = "be-the-executor-without-capabilities"
	roleVictim   = "be-a-victim"
	roleAttacker = "be-an-attacker"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case roleExecutor:
			unix.Exit(Main(os.Stdin)) // os.Exit takes a second with the race detector
		case roleLower:
			panic(lower(roleExecutor))
		case roleVictim:
			_, _ = io.Copy(io.Discard, os.Stdin) // until the test lets go
			unix.Exit(0)
		case roleAttacker:
			unix.Exit(attacker(os.Args[2:]))
		}
	}
	os.Exit(m.Run())
}

// lower becomes another role of this binary without any capability, as a
// sandbox leaves its commands.
func lower(role string) error {
	runtime.LockOSThread()
	for i := range 64 { // an ordinary user may not, and has none; above the last one it is no number
		_ = unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(i), 0, 0, 0)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		return err
	}
	return syscall.Exec("/proc/self/exe", []string{os.Args[0], role}, os.Environ())
}

const session = "s1"

var plan = sha256.Sum256([]byte("a plan"))

// A lab is an executor of its own process, and an issuer whom it trusts.
type lab struct {
	*Client
	issuer *ticket.Issuer
	pid    int
	ready  Ready
	wait   func() error
}

// launch starts an executor that nobody has spoken to.
func launch(t testing.TB) *lab {
	t.Helper()
	ours, theirs, err := ipc.Pair()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe", roleLower)
	cmd.Stdin, cmd.Stderr = theirs, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	c, err := New(ours)
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{Client: c, issuer: ticket.NewIssuer(time.Now), pid: cmd.Process.Pid, wait: cmd.Wait}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		_ = cmd.Process.Kill() // it has ended by itself, as a rule
		_ = cmd.Wait()
	})
	return l
}

func start(t testing.TB) *lab {
	t.Helper()
	l := launch(t)
	var err error
	if l.ready, err = l.Start(testenv.Context(t), Start{Keys: l.issuer.Keys(), Session: session, Plan: plan}); err != nil {
		t.Fatal(err)
	}
	return l
}

// command is a Do without its ticket.
func command(argv ...string) Do {
	return Do{Argv: argv, Dir: "/", Env: []string{"PATH=/usr/bin:/bin", "LANG=C"}}
}

// signed gives d a ticket of the lab.
func (l *lab) signed(t testing.TB, d Do) Do {
	t.Helper()
	digest, err := d.Digest(session, plan)
	if err != nil {
		t.Fatal(err)
	}
	if d.Ticket, err = l.issuer.Issue(session, digest, time.Minute); err != nil {
		t.Fatal(err)
	}
	return d
}

// run does a command with its ticket and returns what it wrote and its end.
func (l *lab) run(t testing.TB, d Do) (string, Change) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	d.Stdio[1], d.Stdio[2] = true, true
	p, err := l.Do(testenv.Context(t), l.signed(t, d), [3]*os.File{nil, w, w})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	end := last(t, p)
	return testenv.Drain(t, r), end // something may keep the pipe
}

// last waits for the end of p.
func last(t testing.TB, p *Process) Change {
	t.Helper()
	late := time.After(20 * time.Second)
	for {
		select {
		case ch, ok := <-p.Changes():
			if !ok {
				t.Fatal("the changes ended without an end")
			}
			if ch.Ended() {
				return ch
			}
		case <-late:
			t.Fatal("the command does not end")
		}
	}
}

func lines(s string) []string { return strings.Split(strings.TrimSuffix(s, "\n"), "\n") }
