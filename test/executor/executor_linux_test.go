package executor_test

import (
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/executor"
	"github.com/bawn-dev/bawn/internal/ipc"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/native"
	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/bawn-dev/bawn/internal/ticket"
)

const roleExecutor = "be-the-executor"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == roleExecutor {
		os.Exit(executor.Main(os.Stdin))
	}
	os.Exit(m.Run())
}

const session = "zone"

var plan = sha256.Sum256([]byte("a plan"))

// A zone is a sandbox with an executor in it.
type zone struct {
	*executor.Client
	guest  sandbox.Guest
	self   sandbox.Process // the executor
	issuer *ticket.Issuer
	ready  executor.Ready
	dir    string
	env    []string
}

// furnish makes a zone with this binary in its workspace.
func furnish(t testing.TB) *zone {
	t.Helper()
	testenv.Need(t, "userns", "landlock", "seccomp", "notify")
	dir := workspace(t)
	program := filepath.Join(dir, "executor")
	copySelf(t, program)
	provider := native.New("")
	plan, err := provider.Plan(sandbox.Request{
		Session: bawn.Session{ID: session, Isolation: bawn.Isolation{Workspace: dir, Protect: true, Env: []string{"PATH", "HOME"},
			Mounts: []bawn.Mount{{Path: dir, Access: bawn.ReadWrite, Why: "workspace"}}, Resources: bawn.Resources{TmpMB: 64}}},
		Argv: []string{program, roleExecutor}, Dir: dir, Environ: os.Environ(),
	})
	if err != nil {
		t.Fatal(err)
	}
	z := &zone{dir: dir, issuer: ticket.NewIssuer(time.Now), env: []string{"PATH=/usr/bin:/bin"}}
	if z.guest, err = provider.Start(plan, func(sandbox.Denial) {}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { z.guest.Close() })
	z.enter(t, program)
	return z
}

// enter starts the executor.
func (z *zone) enter(t testing.TB, program string) {
	t.Helper()
	ours, theirs, err := ipc.Pair()
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	z.self, err = z.guest.Exec(sandbox.Command{Argv: []string{program, roleExecutor}, Stdio: [3]*os.File{theirs, os.Stderr, os.Stderr}, Last: true})
	if err != nil {
		t.Fatal(err)
	}
	if z.Client, err = executor.New(ours); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { z.Client.Close() })
	if z.ready, err = z.Client.Start(testenv.Context(t), executor.Start{Keys: z.issuer.Keys(), Session: session, Plan: plan}); err != nil {
		t.Fatal(err)
	}
}

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
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	return real
}

func copySelf(t testing.TB, to string) {
	t.Helper()
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(f, from); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// signed gives d a ticket.
func (z *zone) signed(t testing.TB, d executor.Do) executor.Do {
	t.Helper()
	digest, err := d.Digest(session, plan)
	if err != nil {
		t.Fatal(err)
	}
	if d.Ticket, err = z.issuer.Issue(session, digest, time.Minute); err != nil {
		t.Fatal(err)
	}
	return d
}

// run does a command and returns what it wrote and its end.
func (z *zone) run(t testing.TB, d executor.Do) (string, executor.Change) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	d.Stdio = [3]bool{false, true, true}
	p, err := z.Do(testenv.Context(t), z.signed(t, d), [3]*os.File{nil, w, w})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	out, _ := io.ReadAll(r)
	var end executor.Change
	for end = range p.Changes() {
	}
	return string(out), end
}

func (z *zone) command(argv ...string) executor.Do {
	return executor.Do{Argv: argv, Dir: z.dir, Env: z.env}
}

func TestOrdinaryWorkInTheZone(t *testing.T) {
	z := furnish(t)
	if out, end := z.run(t, z.command("sh", "-c", "mkdir a b && echo x >a/f && mv a/f b/g && cat b/g && pwd && ls /proc/self/fd | wc -l")); out != "x\n"+z.dir+"\n4\n" || end.Status != 0 {
		t.Errorf("got %q, %v", out, end)
	}
	if text, err := os.ReadFile(filepath.Join(z.dir, "b", "g")); err != nil || string(text) != "x\n" {
		t.Errorf("outside: %q, %v", text, err)
	}
	d := z.command(executor.StatementArgv("bash", "cd b; export A=1")...)
	d.Statement = true
	if _, end := z.run(t, d); end.State == nil || end.State.Dir != z.dir+"/b" || !slices.Contains(end.State.Env, "A=1") {
		t.Errorf("a statement: %+v", end)
	}
}

// TestLimitsInTheZone: the sandbox's filter lets the executor stop a command
// before its first instruction.
func TestLimitsInTheZone(t *testing.T) {
	z := furnish(t)
	d := z.command("bash", "-c", "ulimit -n; ulimit -Hn; ulimit -f; ulimit -n 60 2>/dev/null || echo refused")
	d.Limits = executor.Limits(bawn.Resources{OpenFiles: 50, FileSizeMB: 3})
	if out, end := z.run(t, d); out != "50\n50\n3072\nrefused\n" || end.Status != 0 {
		t.Errorf("got %q, %v", out, end)
	}
	d.Limits = executor.Limits{}
	if out, _ := z.run(t, d); strings.HasPrefix(out, "50\n") {
		t.Errorf("control: %q", out)
	}
}

// TestTheSandboxHoldsForCommands: the executor opens nothing that the sandbox
// closes.
func TestTheSandboxHoldsForCommands(t *testing.T) {
	z := furnish(t)
	if out, end := z.run(t, z.command("sh", "-c", "echo x >/etc/bawn-was-here")); end.Status == 0 || !strings.Contains(out, "/etc/bawn-was-here") {
		t.Errorf("got %q, %v", out, end)
	}
}

// reach tries on the executor, its parent, what a command may not do to it,
// and prints what got through.
const reach = `
import ctypes, errno, os, signal, sys
c = ctypes.CDLL(None, use_errno=True)
target = int(sys.argv[1])
threads = [int(t) for t in os.listdir(f"/proc/{target}/task")]
def call(*a):
    if c.syscall(*a) < 0:
        raise OSError(ctypes.get_errno(), "no")
X86 = os.uname().machine == "x86_64"
nr = lambda x, a: x if X86 else a
class Owner(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("pid", ctypes.c_int)]
def setown(t):
    r, w = os.pipe()
    o = Owner(0, t)
    call(nr(72, 25), r, 15, ctypes.byref(o))
def limit(t):
    import resource
    resource.prlimit(t, resource.RLIMIT_CORE, (0, 0))
def descriptor(t):
    null = os.stat("/dev/null").st_rdev
    for n in range(12):
        try:
            f = os.open(f"/proc/{target}/task/{t}/fd/{n}", os.O_RDWR)
        except OSError:
            continue
        if os.fstat(f).st_rdev != null: # which the supervisor opens by its name, as anybody may
            return
    raise OSError("none")
tries = {
    "limit": limit,
    "setown": setown,
    "attach": lambda t: call(nr(101, 117), 16, t, 0, 0),
    "seize": lambda t: call(nr(101, 117), 0x4206, t, 0, 0),
    "memory": lambda t: open(f"/proc/{target}/task/{t}/mem", "rb+"),
    "environment": lambda t: open(f"/proc/{target}/task/{t}/environ").read(),
    "descriptor": descriptor,
    "link": lambda t: os.readlink(f"/proc/{target}/task/{t}/fd/0"),
    "taken": lambda t: call(438, os.pidfd_open(target), 0, 0),
    "thread pidfd": lambda t: os.pidfd_open(t, 0x80) if t != target else os.stat("/none"),
    "kill": lambda t: os.kill(target, signal.SIGKILL),
    "stop": lambda t: os.kill(target, signal.SIGSTOP),
    "tgkill": lambda t: call(nr(234, 131), target, t, 9),
    "tkill": lambda t: call(nr(200, 130), t, 9),
    "kill thread": lambda t: os.kill(t, signal.SIGKILL),
}
for name, f in tries.items():
    for t in threads:
        try:
            f(t)
            print("reached:", name, t)
            break
        except (OSError, PermissionError):
            pass
print("done")
`

// TestCommandsCantReachTheExecutor in its zone. The control is the same program
// aimed at a command of the same zone, which falls.
func TestCommandsCantReachTheExecutor(t *testing.T) {
	testenv.Need(t, "scope", "python3")
	z := furnish(t)
	if !z.ready.Apart {
		t.Errorf("it says of itself: %+v", z.ready)
	}
	out, _ := z.run(t, z.command("sh", "-c", `python3 -c "$0" $PPID`, reach))
	if out != "done\n" {
		t.Errorf("got %q", out)
	}
	if out, end := z.run(t, z.command("echo", "alive")); out != "alive\n" || end.Status != 0 {
		t.Errorf("the executor after it: %q, %v", out, end)
	}
	p, err := z.Do(testenv.Context(t), z.signed(t, z.command("sleep", "50")), [3]*os.File{})
	if err != nil {
		t.Fatal(err)
	}
	out, _ = z.run(t, z.command("sh", "-c", `until pid=$(pgrep -x sleep); do :; done; python3 -c "$0" $pid`, reach)) // it may not have become "sleep" yet
	if !strings.Contains(out, "reached: kill") || !strings.Contains(out, "reached: tgkill") && !strings.Contains(out, "reached: environment") {
		t.Errorf("control: %q", out)
	}
	for range p.Changes() {
	}
}

// TestTheEndOfTheHostEndsTheZone: when nobody holds the control socket any
// more, the executor ends, and with it the sandbox.
func TestTheEndOfTheHostEndsTheZone(t *testing.T) {
	z := furnish(t)
	p, err := z.Do(testenv.Context(t), z.signed(t, z.command("setsid", "sleep", "50")), [3]*os.File{})
	if err != nil {
		t.Fatal(err)
	}
	if err := z.Client.Close(); err != nil {
		t.Fatal(err)
	}
	testenv.Receive(t, "the sandbox's end", z.guest.Done())
	for range p.Changes() {
	}
	if _, err := z.Do(testenv.Context(t), z.signed(t, z.command("true")), [3]*os.File{}); !errors.Is(err, executor.ErrGone) {
		t.Errorf("got %v", err)
	}
}

// BenchmarkCommand is a command in the zone, from its ticket to its end, beside
// one that the sandbox's first process starts.
func BenchmarkCommand(b *testing.B) {
	z := furnish(b)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer null.Close()
	stdio := [3]*os.File{null, null, null}
	d := z.command("/bin/sh", "-c", ":")
	d.Stdio = [3]bool{true, true, true}
	b.Run("executor", func(b *testing.B) {
		for b.Loop() {
			p, err := z.Do(b.Context(), z.signed(b, d), stdio)
			if err != nil {
				b.Fatal(err)
			}
			for range p.Changes() {
			}
		}
	})
	b.Run("sandbox", func(b *testing.B) {
		for b.Loop() {
			p, err := z.guest.Exec(sandbox.Command{Argv: d.Argv, Env: d.Env, Dir: d.Dir, Stdio: stdio})
			if err != nil {
				b.Fatal(err)
			}
			for range p.Changes() {
			}
		}
	})
}
