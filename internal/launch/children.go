package launch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval/asking"
	"github.com/bawn-dev/bawn/internal/approval/link"
	"github.com/bawn-dev/bawn/internal/executor"
	"github.com/bawn-dev/bawn/internal/fspath"
	"github.com/bawn-dev/bawn/internal/guard"
	"github.com/bawn-dev/bawn/internal/intent"
	"github.com/bawn-dev/bawn/internal/peercred"
	"github.com/bawn-dev/bawn/internal/session"
	"github.com/bawn-dev/bawn/internal/sessionsocket"
	"github.com/bawn-dev/bawn/internal/verb"
)

// Bounds of a tree of sessions: each has limits of its own, so that many
// together could have more than the first.
const (
	maxChildren = 8  // of one session, at once
	maxTree     = 16 // below the first one, at once
	maxDepth    = 4
)

// childGrace is how long a child has to end once its guest is gone.
const childGrace = 6 * time.Second

// AsksName is how much of a session's ID names the socket for the questions of
// its children: a socket's path is short, and this is 80 bits.
const AsksName = 16

// RuleChild is recorded when a guest starts a session below its own.
const RuleChild = "builtin:child"

// children starts the sessions that a guest wants below its own.
type children struct {
	env      *Env
	parent   session.Parent
	guard    guard.Guard
	prompter *asking.Prompter
	copied   bool // the session works on a copy, which a child would not see
	// covered reports whether a checkpoint covers the files that the children
	// destroy; nil for no.
	covered func() bool
	// refused records who may not put questions at the socket of the children.
	refused func(error)
	// split is the environment of the zone in which commands run; nil where
	// there are no zones, and no command is decided by itself.
	split   []string
	running atomic.Int32
	pids    sync.Map  // of the children
	once    sync.Once // makes the first child's needs
	failed  error
	// listener takes their questions; nil before the first.
	listener net.Listener
}

// A childRequest is a session that a guest asks for.
type childRequest struct {
	spec    session.Spec
	dir     string   // in which the command starts
	from    string   // where the guest is
	environ []string // the guest's
	setEnv  []string // that the command was judged with
}

// Run serves a guest's `bawn run`: a handler of its session socket.
func (k *children) Run(ctx context.Context, c *sessionsocket.Conn, r intent.Run, files [3]*os.File) {
	if k.copied {
		c.Refuse(RuleChild, errCopied.Error(), "run the command in this session, without \"bawn run\"")
		return
	}
	w, err := k.check(&r)
	if err != nil {
		c.Refuse(RuleChild, err.Error(), "see \"bawn run --help\"")
		return
	}
	if k.running.Add(1) > maxChildren {
		k.running.Add(-1)
		c.Refuse(RuleChild, fmt.Sprintf("this session has %d others below it already", maxChildren), "wait for one of them to end")
		return
	}
	defer k.running.Add(-1)
	if d := k.decide(ctx, w); d.Verdict != bawn.Allow {
		c.Deny(d.Rule, d.Reason, "do it another way, or ask the human for it")
		return
	}
	win := sessionsocket.Window{Terminal: r.Terminal, Rows: r.Rows, Cols: r.Cols}
	_ = sessionsocket.Attend(ctx, c, files, win, pty.Open, func(files [3]*os.File, _ bool) (sessionsocket.Program, error) {
		return k.start(w, files)
	}) // the guest has been told
}

// decide has the command judged. If a session has two zones, it is judged as in
// the second, word for word, with everything that the judgement relies on.
func (k *children) decide(ctx context.Context, w *childRequest) bawn.Decision {
	s := k.parent.Session
	a := bawn.Action{
		Kind: bawn.Command, Operation: bawn.Exec, Resource: strings.Join(w.spec.Argv, " "), Args: w.spec.Argv, Session: s.ID, Agent: s.Agent, Dir: w.dir, At: time.Now(),
	}
	if k.split != nil {
		text, err := commandLine(w.spec.Argv)
		if err != nil {
			return bawn.Denied(err.Error(), RuleChild)
		}
		a.Resource, a.Args = text, nil
	}
	d := k.guard.Check(ctx, a, bawn.Event{Parent: s.Parent, Provider: s.Provider, Mode: s.Mode, Details: map[string]string{"session": "a child"}})
	if d.Verdict == bawn.Allow && k.split != nil && d.Canonical != "" && d.Canonical != a.Resource {
		return bawn.Denied("it was judged as other words than these; run it without a session of its own", RuleChild)
	}
	w.setEnv = d.Env
	return d
}

// refusedFlags are those that no guest may give.
var refusedFlags = []string{"plan", "detach", "attachable", "detach-keys", "split", "split-workspace", "model", "copy", "name", "from"}

// check refuses what no guest may ask for.
func (k *children) check(r *intent.Run) (*childRequest, error) {
	spec, err := (&Env{World: verb.World{Dir: r.Dir, Environ: k.env.Environ}}).parse(r.Args)
	if err != nil {
		return nil, err
	}
	for _, name := range refusedFlags {
		if spec.Has(name) {
			return nil, fmt.Errorf("--%s is not for a session that a guest starts", name)
		}
	}
	switch {
	case len(spec.Argv) == 0 || spec.Argv[0] == "":
		return nil, errors.New("no command to run")
	case k.parent.Depth >= maxDepth:
		return nil, fmt.Errorf("sessions stand %d deep already", maxDepth)
	case filepath.Clean(r.Dir) != r.Dir || !fspath.Below(r.Dir, k.parent.Session.Isolation.Workspace):
		return nil, errors.New("the directory is outside of the workspace; start it there")
	case strings.ContainsRune(strings.Join(slices.Concat(r.Args, r.Env), ""), 0):
		return nil, errors.New("a word holds a NUL, where the kernel would cut it")
	}
	return &childRequest{spec: *spec, dir: cmp.Or(spec.Dir, r.Dir), from: r.Dir, environ: r.Env}, nil
}

// start starts bawn once more, outside of every sandbox. It makes the child's
// sandbox from the guest's flags and the parent's rights. Its environment has
// nothing of the guest's.
func (k *children) start(w *childRequest, files [3]*os.File) (sessionsocket.Program, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return k.launch(self, w, files)
}

// launch starts one of Bawn's programs as a child.
func (k *children) launch(program string, w *childRequest, files [3]*os.File) (sessionsocket.Program, error) {
	if k.copied {
		return nil, errCopied
	}
	k.once.Do(func() { k.failed = k.prepare() })
	if k.failed != nil {
		return nil, k.failed
	}
	text, err := k.below(w).Encode()
	if err != nil {
		return nil, err
	}
	slot, err := takeSlot(k.parent.Tree)
	if err != nil {
		return nil, err
	}
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, slot.Close())
	}
	defer theirs.Close()
	cmd := exec.Command(program, Verb)
	cmd.Args[0] = filepath.Base(program)
	cmd.Env, cmd.Dir, cmd.ExtraFiles = k.env.Environ, "/", []*os.File{specEnd - 3: theirs}
	if files[0] != nil { // else /dev/null, as for the others
		cmd.Stdin = files[0]
	}
	if files[1] != nil {
		cmd.Stdout = files[1]
	}
	if files[2] != nil {
		cmd.Stderr = files[2]
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // the guest's terminal controls nothing outside
	DieWithParent(cmd.SysProcAttr)
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, ours.Close(), slot.Close())
	}
	k.pids.Store(cmd.Process.Pid, true)
	c := &childSession{process: cmd.Process, life: ours, changes: make(chan executor.Change, 1), ended: make(chan struct{})}
	c.gone = func() {
		k.pids.Delete(cmd.Process.Pid)
		_ = slot.Close() // nothing is written to it
	}
	go func() { _, _ = ours.Write(text) }() // a child that does not read it ends by itself
	go c.wait()
	return c, nil
}

// below is the spec of the child, with its limits.
func (k *children) below(w *childRequest) *session.Spec {
	s, p := w.spec, k.parent
	p.Depth, p.Dir, p.Environ, p.SetEnv = p.Depth+1, w.from, w.environ, w.setEnv
	p.Covered = k.covered != nil && k.covered()
	if k.split != nil {
		p.Environ = k.split
	}
	s.Parent = &p
	return &s
}

// errCopied refuses a child of a session on a copy: it would change the workspace itself.
var errCopied = errors.New("this session works on a copy of the workspace, and a session below it would work on the workspace itself")

// takeSlot makes one session of the tree count, until the file is closed or
// this process has ended.
func takeSlot(tree string) (*os.File, error) {
	for _, name := range slots(tree) {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, err
		}
		if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
			return f, nil
		}
		f.Close()
	}
	return nil, fmt.Errorf("the first session has %d others below it already", maxTree)
}

// slots are the files that count the sessions of a tree.
func slots(tree string) []string {
	list := make([]string, maxTree)
	for i := range list {
		list[i] = fmt.Sprintf("%s.%d", tree, i)
	}
	return list
}

// A childSession is a session that a guest has started.
type childSession struct {
	process *os.Process
	life    *os.File // it ends when this is closed
	changes chan executor.Change
	ended   chan struct{}
	gone    func()
}

// wait follows the child. It is not os.Process that waits, which does not tell
// of stops.
func (c *childSession) wait() {
	defer close(c.changes)
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(c.process.Pid, &status, unix.WUNTRACED, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err == nil && pid == c.process.Pid && status.Stopped():
			c.changes <- executor.Change{Status: syscall.WaitStatus(status)}
		default:
			c.gone()
			close(c.ended)
			_ = c.life.Close()
			_ = c.process.Release() // it has been waited for
			if err == nil {
				c.changes <- executor.Change{Status: syscall.WaitStatus(status)}
			}
			return
		}
	}
}

// Changes delivers each stop, and the end.
func (c *childSession) Changes() <-chan executor.Change { return c.changes }

// Signal passes a signal on to the child's bawn, which passes it on to its
// guest. For SIGKILL it ends the session, which is recorded.
func (c *childSession) Signal(sig syscall.Signal) error {
	select {
	case <-c.ended:
		return os.ErrProcessDone
	default:
	}
	if sig != syscall.SIGKILL {
		return c.process.Signal(sig)
	}
	go func() {
		select {
		case <-c.ended:
		case <-time.After(childGrace):
			_ = c.process.Kill()
		}
	}()
	return c.life.Close()
}

// Resized tells the child's bawn that its terminal has another size. The kernel
// tells only the processes that a terminal controls, and this one is not among
// them.
func (c *childSession) Resized() { _ = c.Signal(syscall.SIGWINCH) } // an ended session needs no size

// prepare makes what children need: a socket for their questions.
func (k *children) prepare() error {
	l, err := net.Listen("unix", k.parent.Asks)
	if errors.Is(err, syscall.EINVAL) { // the directory's name is too long for a socket (unix(7))
		k.parent.Asks, k.parent.CanAsk = "", false
		return nil
	}
	if err == nil {
		err = os.Chmod(k.parent.Asks, 0o600)
	}
	if err != nil {
		return fmt.Errorf("make the socket for the questions of child sessions: %w", err)
	}
	server := &link.Server{Prompter: k.prompter.Below(), Admit: k.admit, Keyless: k.refused}
	go func() { _ = server.Serve(l) }() // until this process ends, or close
	k.listener = l
	return nil
}

// close ends the questions of children, which have ended.
func (k *children) close() {
	k.once.Do(func() {})
	if k.listener == nil {
		return
	}
	_ = k.listener.Close() // removes it
	_ = os.Remove(link.KeyOf(k.parent.Asks))
	for _, name := range slots(k.parent.Tree) {
		if k.parent.Depth == 0 {
			_ = os.Remove(name) // few are there
		}
	}
}

// admit lets those speak that this process has started. Others are recorded.
func (k *children) admit(c net.Conn) error {
	peer, err := peercred.Of(c)
	if err != nil {
		return err
	}
	defer peer.Close()
	if _, ours := k.pids.Load(peer.PID); !ours || peer.UID != os.Geteuid() {
		err := &peercred.RefusedError{PID: peer.PID, UID: peer.UID, Why: "it is no child session of this one"}
		k.refused(err)
		return err
	}
	return nil
}
