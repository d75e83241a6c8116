package shim

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/executor"
	"github.com/bawn-dev/bawn/internal/guard"
	"github.com/bawn-dev/bawn/internal/ipc"
	"github.com/bawn-dev/bawn/internal/policy"
	"github.com/bawn-dev/bawn/internal/sessionsocket"
	"github.com/bawn-dev/bawn/internal/shell/invocation"
	"github.com/bawn-dev/bawn/internal/shim/quick"
	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/bawn-dev/bawn/internal/ticket"
)

// The test binary is also a shim, and an executor.
const (
	socketVariable = "SHIM_TEST_SOCKET"
	roleVariable   = "SHIM_TEST_ROLE"
	quickVariable  = "SHIM_TEST_QUICK"          // "no": the long way only; "only": 99 where the short way does not go to the end
	raceOptions    = "GORACE=atexit_sleep_ms=0" // a shim of the race detector's would end a second late
)

func TestMain(m *testing.M) {
	if os.Getenv(roleVariable) == "executor" {
		os.Exit(executor.Main(os.Stdin))
	}
	if os.Getenv(roleVariable) == "hook" {
		fmt.Println(strings.Join(os.Args[1:], " "))
		os.Exit(7)
	}
	if path := os.Getenv(socketVariable); path != "" && invocation.NameOf(os.Args[0]) != "" {
		way := os.Getenv(quickVariable)
		if way != "no" {
			if code, ended := quick.Shell(os.Args, os.Environ(), path); ended {
				os.Exit(code)
			}
		}
		if way == "only" {
			os.Exit(99)
		}
		os.Exit(run(os.Args, os.Environ(), path))
	}
	testenv.DefaultSignals()
	os.Exit(m.Run())
}

// A rig is a session's host with a session socket and an executor, and no sandbox.
type rig struct {
	t       testing.TB
	dir     string // workspace
	socket  string
	environ []string
	intents *sessionsocket.Intents
	human   *human
	log     *log
	cancel  context.CancelFunc
	served  chan error
}

// A human answers questions.
type human struct {
	mu    sync.Mutex
	asked []bawn.Action
	gone  int
	say   func(ctx context.Context, a bawn.Action) (bawn.Answer, error)
}

func (h *human) Approve(ctx context.Context, a bawn.Action, _ bawn.Decision) (bawn.Answer, error) {
	h.mu.Lock()
	h.asked = append(h.asked, a)
	say := h.say
	h.mu.Unlock()
	answer, err := say(ctx, a)
	if ctx.Err() != nil {
		h.mu.Lock()
		h.gone++
		h.mu.Unlock()
	}
	return answer, err
}

func (h *human) questions() []bawn.Action {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.asked)
}

func (h *human) set(say func(ctx context.Context, a bawn.Action) (bawn.Answer, error)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.say = say
}

func always(v bawn.Verdict) func(context.Context, bawn.Action) (bawn.Answer, error) {
	return func(context.Context, bawn.Action) (bawn.Answer, error) {
		return bawn.Answer{Verdict: v, By: "ann"}, nil
	}
}

// A log keeps events.
type log struct {
	mu     sync.Mutex
	events []bawn.Event
}

func (l *log) Record(_ context.Context, e bawn.Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
	return nil
}

func (l *log) all() []bawn.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.events)
}

// newRig starts a session with the policy's built-in rules and others. The
// human says no to everything until set otherwise.
func newRig(t testing.TB, rules ...bawn.Rule) *rig {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	place, err := os.MkdirTemp("", "socket") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(place) })
	r := &rig{t: t, dir: dir, socket: filepath.Join(place, "socket"), human: &human{say: always(bawn.Deny)}, log: &log{}, served: make(chan error, 1)}
	r.environ = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + dir, "LANG=C.UTF-8", "TERM=dumb", socketVariable + "=" + r.socket, raceOptions}
	p, err := policy.New(rules, policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	session := bawn.Session{ID: "s1", Agent: "agent", Mode: bawn.ModeNormal}
	issuer := ticket.NewIssuer(time.Now)
	plan := sha256.Sum256([]byte("plan"))
	r.intents = &sessionsocket.Intents{
		Session: session, Issuer: issuer, Plan: plan, Executor: r.executor(issuer, plan), Terminal: pty.Open,
		Guard: guard.Guard{
			Decider: decider{policy: p, session: policy.Question{
				Mode: bawn.ModeNormal, Autonomy: bawn.AutonomyModerate, Contained: bawn.ContainedFully, Workspace: dir, Home: dir, System: "linux",
			}},
			Approver: r.human, Recorder: r.log,
		},
		Environ: sessionsocket.Environ{
			Reasoning: r.environ, Execution: r.environ[:4],
			Never: func(name, value string) bool { return strings.Contains(name, "SECRET") },
		},
		Ask: func(a bawn.Action, _ bawn.Decision) string { return "bawn request --command " + a.Resource },
	}
	r.serve()
	return r
}

// uncontained has the rig decide as where nothing contains the commands, so that more is
// asked about.
func (r *rig) uncontained() *rig {
	d := r.intents.Guard.Decider.(decider)
	d.session.Contained = bawn.Contained{}
	r.intents.Guard.Decider = d
	return r
}

// A decider puts each action to a policy.
type decider struct {
	policy  *policy.Policy
	session policy.Question
}

func (d decider) Decide(_ context.Context, a bawn.Action) (bawn.Decision, error) {
	q := d.session
	q.Action = a
	return d.policy.Decide(&q), nil
}

func (r *rig) executor(issuer *ticket.Issuer, plan [32]byte) *executor.Client {
	r.t.Helper()
	ours, theirs, err := ipc.Pair()
	if err != nil {
		r.t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env, cmd.Stdin, cmd.Stderr, cmd.Dir = append(r.environ[:4:4], roleVariable+"=executor", raceOptions), theirs, os.Stderr, r.dir
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	theirs.Close()
	c, err := executor.New(ours)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { c.Close(); _ = cmd.Wait() })
	if _, err := c.Start(testenv.Context(r.t), executor.Start{Keys: issuer.Keys(), Session: "s1", Plan: plan}); err != nil {
		r.t.Fatal(err)
	}
	return c
}

func (r *rig) serve() {
	r.t.Helper()
	l, err := sessionsocket.Listen(r.socket)
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	go func() {
		r.served <- sessionsocket.Serve(ctx, l, sessionsocket.Handlers{Session: "s1", Exec: r.intents.Exec})
	}()
	r.t.Cleanup(func() {
		cancel()
		if err := testenv.Receive(r.t, "the end of the session socket", r.served); err != nil {
			r.t.Error(err)
		}
	})
}

// shell is a command that runs the shim, and is killed where it hangs.
func (r *rig) shell(argv ...string) *exec.Cmd {
	cmd := exec.CommandContext(testenv.Context(r.t), "/proc/self/exe")
	cmd.Args, cmd.Env, cmd.Dir = argv, slices.Clone(r.environ), r.dir
	return cmd
}

// A result is what a user of a shell sees.
type result struct {
	Out, Err string
	Code     int
	Signal   syscall.Signal
}

// finish runs cmd, with what it reads, to its end.
func finish(t testing.TB, cmd *exec.Cmd, stdin string) result {
	t.Helper()
	var out, errs strings.Builder
	if cmd.Stdin == nil {
		cmd.Stdin = strings.NewReader(stdin)
	}
	if cmd.Stdout == nil {
		cmd.Stdout = &out
	}
	if cmd.Stderr == nil {
		cmd.Stderr = &errs
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%q: %v", cmd.Args, err)
	}
	status := cmd.ProcessState.Sys().(syscall.WaitStatus)
	res := result{Out: out.String(), Err: errs.String(), Code: status.ExitStatus()}
	if status.Signaled() {
		res.Signal = status.Signal()
	}
	return res
}

// runStarted is finish for a command whose input is taken care of.
func runStarted(t testing.TB, cmd *exec.Cmd) result {
	t.Helper()
	return finish(t, cmd, "")
}
