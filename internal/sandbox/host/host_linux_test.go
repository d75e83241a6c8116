package host

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// run starts a shell line and returns what it printed and its exit code. The
// guest stays until the test's end, or until it is closed.
func run(t *testing.T, line string) (g sandbox.Guest, out string, code int) {
	t.Helper()
	p := New()
	req := request("sh", "-c", line)
	req.Session.ID = strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
	n, err := p.Plan(req)
	if err != nil {
		t.Fatal(err)
	}
	g, err = p.Start(n, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	proc, err := g.Exec(sandbox.Command{Argv: req.Argv, Stdio: [3]*os.File{null, w, w}, Last: true})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	code = -1
	for ch := range proc.Changes() {
		code = ch.Status.ExitStatus()
	}
	return g, testenv.Drain(t, r), code
}

func TestExitCodeAndOutput(t *testing.T) {
	if _, out, code := run(t, `echo "$LC_ALL,$AWS_SECRET_ACCESS_KEY"; exit 7`); out != "C,\n" || code != 7 {
		t.Errorf("output %q, code %d; want C and 7", out, code)
	}
}

func TestNotFound(t *testing.T) {
	p := New()
	n, err := p.Plan(request("true"))
	if err != nil {
		t.Fatal(err)
	}
	g, err := p.Start(n, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	var absent *sandbox.NotFoundError
	stdio := [3]*os.File{os.Stdin, os.Stdout, os.Stderr}
	if _, err := g.Exec(sandbox.Command{Argv: []string{"no-such-program"}, Stdio: stdio}); !errors.As(err, &absent) || !absent.Absent {
		t.Errorf("%v; want that it is absent", err)
	}
	if _, err := g.Exec(sandbox.Command{Argv: []string{"/etc"}, Stdio: stdio}); !errors.As(err, &absent) || absent.Absent {
		t.Errorf("%v; want that it can't be executed", err)
	}
}

// TestRlimits is what an ordinary process can be held by.
func TestRlimits(t *testing.T) {
	file := filepath.Join(t.TempDir(), "big")
	if _, out, _ := run(t, "ulimit -n; ulimit -f; head -c 3000000 /dev/zero >"+file+"; stat -c %s "+file); !strings.HasPrefix(out, "40\n2048\n") || !strings.HasSuffix(out, "1048576\n") {
		t.Errorf("limits and size of a file that grew too large: %q; want 40, 2048 blocks, and 1048576 bytes", out)
	}
	out, err := exec.Command("sh", "-c", "head -c 3000000 /dev/zero >"+file+"; stat -c %s "+file).Output()
	if string(out) != "3000000\n" {
		t.Errorf("control: %q, %v; want a file of 3000000 bytes", out, err)
	}
}

// TestNothingIsLeft is what the provider promises of processes: also one that
// has left its session, its group and its parent ends with the guest. Until
// then it lives, which is the control.
func TestNothingIsLeft(t *testing.T) {
	g, out, _ := run(t, `setsid sh -c 'setsid sleep 300 >/dev/null 2>&1 & echo $!' & wait`)
	pid, err := strconv.Atoi(strings.TrimSpace(out))
	if err != nil {
		t.Fatalf("output %q: %v", out, err)
	}
	time.Sleep(20 * time.Millisecond) // its parent has ended
	if err := unix.Kill(pid, 0); err != nil {
		t.Fatalf("control: process %d: %v; want it alive before the end", pid, err)
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	testenv.Until(t, "its end", func() bool { return errors.Is(unix.Kill(pid, 0), unix.ESRCH) })
	if err := g.Close(); err != nil {
		t.Errorf("a second Close: %v", err)
	}
}

// TestEndsWithoutGroup is the same where no control group counts the processes.
func TestEndsWithoutGroup(t *testing.T) {
	p := New()
	req := request("sleep", "300")
	req.Session.Isolation.Resources.MemoryMB, req.Session.Isolation.Resources.PIDs = 0, 0
	n, err := p.Plan(req)
	if err != nil {
		t.Fatal(err)
	}
	g, err := p.Start(n, nil)
	if err != nil {
		t.Fatal(err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	proc, err := g.Exec(sandbox.Command{Argv: req.Argv, Stdio: [3]*os.File{null, null, null}})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(proc.(*process).pid, 0); !errors.Is(err, unix.ESRCH) {
		t.Errorf("the command after the end: %v; want it gone", err)
	}
}
