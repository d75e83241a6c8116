package native

import (
	"errors"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/linux/cgroup"
	"github.com/bawn-dev/bawn/internal/linux/rawproc"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/kernel"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
	"github.com/bawn-dev/bawn/internal/sandbox/supervise"
)

// guest is a running sandbox.
type guest struct {
	plan  *layout.Plan
	init  *rawproc.Init
	group *cgroup.Group
	*supervise.Supervision
	// network holds the sockets that carry the guest's network, or is nil.
	network *sandbox.GuestNetwork
	machine *kernel.Machine
	once    sync.Once
}

// Exec starts a command.
func (g *guest) Exec(c sandbox.Command) (sandbox.Process, error) {
	p := newProcess()
	p.guest = g
	first, err := command(g.plan, c, p)
	if err != nil {
		return nil, err
	}
	if p.pid, err = g.init.Run(first); err != nil {
		return nil, startError(g.plan, c, err)
	}
	return p, nil
}

// command is c in the terms of the session's first process, which reports to p.
func command(n *layout.Plan, c sandbox.Command, p *process) (rawproc.Command, error) {
	c = complete(n, c)
	if len(c.Argv) == 0 || c.Argv[0] == "" {
		return rawproc.Command{}, &sandbox.NotFoundError{Name: `""`, Err: unix.ENOENT, Absent: true}
	}
	return rawproc.Command{
		Paths: layout.Candidates(c.Argv[0], c.Dir, layout.LookupEnv(c.Env, "PATH")), Args: c.Argv, Env: c.Env, Dir: c.Dir,
		Stdio: c.Stdio, Terminal: c.Terminal, Foreground: c.Foreground, Last: c.Last, OnStatus: p.changed,
	}, nil
}

// complete adds the session's environment and directory to c where it has none
// of its own.
func complete(n *layout.Plan, c sandbox.Command) sandbox.Command {
	if c.Env == nil {
		c.Env = n.Env
	}
	if c.Dir == "" {
		c.Dir = n.Dir
	}
	return c
}

// startError is err as a guest's caller knows it.
func startError(n *layout.Plan, c sandbox.Command, err error) error {
	var ee *rawproc.ExecError
	if errors.As(err, &ee) {
		return layout.NotFound(n, complete(n, c), ee.Errno)
	}
	return err
}

// OpenTerminal opens a pseudo-terminal in the guest's own /dev/pts, where
// programs find it by its name.
func (g *guest) OpenTerminal() (master, slave *os.File, err error) {
	return kernel.OpenTerminal(g.init.Ready()[0])
}

// Done is closed when the guest has ended.
func (g *guest) Done() <-chan struct{} { return g.init.Done() }

// Root is the first process of the sandbox.
func (g *guest) Root() int { return g.init.PID() }

// Close ends the guest and removes its control group.
func (g *guest) Close() error {
	var err error
	g.once.Do(func() {
		g.Stop()
		if g.plan.Rung == layout.RungLandlock {
			endDescendants(g)
		}
		g.init.Kill()
		err = g.Supervision.Close()
		if g.group != nil {
			err = errors.Join(err, g.group.Remove())
			g.machine.Sweep()
		}
	})
	return err
}

// process is a command of a guest.
type process struct {
	sandbox.ChangeList
	guest *guest
	pid   int
}

func newProcess() *process { return &process{ChangeList: sandbox.NewChangeList()} }

func (p *process) changed(ws unix.WaitStatus) {
	p.Put(sandbox.Change{Stopped: ws.Stopped(), Status: syscall.WaitStatus(ws)})
	if !ws.Stopped() {
		p.End()
	}
}

// Signal sends sig to the command's process group.
func (p *process) Signal(sig syscall.Signal) error { return p.guest.init.Signal(p.pid, sig) }

// Foreground gives the command the terminal.
func (p *process) Foreground() error { return p.guest.init.Foreground(p.pid) }

// Hits reads the control group's counters. An unreadable file proves nothing,
// and rlimits count nothing.
func (g *guest) Hits() []sandbox.Hit {
	return append(g.Supervision.Hits(), kernel.GroupHits(g.group, g.plan.Limits)...)
}
