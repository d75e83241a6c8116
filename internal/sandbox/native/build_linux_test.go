package native

import (
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// launched runs a shell in a plan's sandbox and returns what it writes.
func launched(t *testing.T, p *Provider, plan *layout.Plan, script string) (string, error) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	g, proc, err := p.Launch(plan, sandbox.Command{Argv: []string{"sh", "-c", script}, Stdio: [3]*os.File{null, w, w}, Last: true}, func(sandbox.Denial) {})
	w.Close()
	if err != nil {
		return "", err
	}
	defer g.Close()
	out, err := io.ReadAll(r)
	for range proc.Changes() {
	}
	return string(out), err
}

// TestEarlySandboxIsAsAnyOther: what is begun before the plan, or before the
// command, has the namespaces, the users and the limits of an ordinary start.
func TestEarlySandboxIsAsAnyOther(t *testing.T) {
	testenv.Need(t, "userns", "landlock", "seccomp", "notify")
	const script = `cat /proc/self/uid_map /proc/self/setgroups; ls -d /sys/class/net/lo; ulimit -n; cat /proc/self/cgroup; grep -E '^(Cap|NoNew|Seccomp:)' /proc/self/status; ls /proc/self/fd | wc -l; for n in user mnt pid net ipc uts cgroup; do readlink /proc/1/ns/$n; done | sort -u | wc -l`
	ws := workspace(t)
	outcome := func(early, prepared bool) string {
		p := New("")
		if early {
			p.Adopt(Prefork())
		}
		plan := must(layout.Layout(request(ws), p.facts))(t)
		if prepared {
			defer p.Prepare(plan)()
		}
		out, err := launched(t, p, plan, script)
		if err != nil {
			t.Fatal(err)
		}
		if early && p.preforked != nil {
			t.Error("the preforked process was not used")
		}
		return out
	}
	want := outcome(false, false)
	if !strings.Contains(want, "deny") || !strings.Contains(want, "lo") {
		t.Fatalf("the control: %s", want)
	}
	for _, c := range [][2]bool{{true, false}, {false, true}, {true, true}} {
		if got := outcome(c[0], c[1]); got != want {
			t.Errorf("begun before the plan %v, before the command %v: got\n%swant\n%s", c[0], c[1], got, want)
		}
	}
}

// TestDeadPreforkedIsNotMissed: a session does not depend on what was begun early.
func TestDeadPreforkedIsNotMissed(t *testing.T) {
	testenv.Need(t, "userns", "landlock", "seccomp", "notify")
	p, e := New(""), Prefork()
	if e == nil {
		t.Fatal("there is none")
	}
	if err := unix.Kill(e.init.PID(), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.Adopt(e)
	out, err := launched(t, p, must(layout.Layout(request(workspace(t)), p.facts))(t), "echo here")
	if err != nil || out != "here\n" {
		t.Errorf("got %q, %v", out, err)
	}
}

// TestWhatIsNotTakenEnds: neither a preforked process nor a sandbox that was prepared
// outlives who lets it go, nor does a plan get that of another.
func TestWhatIsNotTakenEnds(t *testing.T) {
	testenv.Need(t, "userns", "landlock", "seccomp", "notify")
	e := Prefork()
	if e == nil {
		t.Fatal("there is none")
	}
	pid := e.init.PID()
	e.Abandon()
	e.Abandon()
	if err := unix.Kill(pid, 0); err != unix.ESRCH {
		t.Errorf("the preforked process is there: %v", err)
	}
	p := New("")
	one, other := must(layout.Layout(request(workspace(t)), p.facts))(t), must(layout.Layout(request(workspace(t)), p.facts))(t)
	other.Session = "another" + other.Session
	abandon := p.Prepare(one)
	b := <-p.early
	p.early <- b
	if out, err := launched(t, p, other, "echo yes >mine && cat mine"); err != nil || out != "yes\n" {
		t.Errorf("in its own workspace: got %q, %v", out, err)
	}
	abandon()
	if err := unix.Kill(b.init.PID(), 0); err != unix.ESRCH {
		t.Errorf("the sandbox of a plan that nobody starts is there: %v", err)
	}
	abandon = p.Prepare(one)
	b = <-p.early
	p.early <- b
	abandon()
	abandon()
	if err := unix.Kill(b.init.PID(), 0); err != unix.ESRCH {
		t.Errorf("the sandbox is there: %v", err)
	}
}

// TestPreparedSandboxErrsAtTheStart: what goes wrong meanwhile is the start's
// error, with its words.
func TestPreparedSandboxErrsAtTheStart(t *testing.T) {
	testenv.Need(t, "userns", "landlock", "seccomp", "notify")
	var want string
	for i, early := range []bool{false, true} {
		p := New("")
		if early {
			p.Adopt(Prefork())
		}
		plan := must(layout.Layout(request(workspace(t)), p.facts))(t)
		plan.Mounts = append(plan.Mounts, layout.Mount{Kind: layout.KindBind, Source: "/nonexistent-source", Target: "/mnt"})
		if early {
			defer p.Prepare(plan)()
		}
		_, err := launched(t, p, plan, "true")
		switch {
		case err == nil:
			t.Fatal("it started")
		case i == 0:
			want = afterStep(err)
		case afterStep(err) != want:
			t.Errorf("got %q, want %q", afterStep(err), want)
		}
	}
}

// afterStep is an error without the number of its step.
func afterStep(err error) string {
	_, rest, _ := strings.Cut(err.Error(), ", ")
	return rest
}
