package native

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/linux/cgroup"
	"github.com/bawn-dev/bawn/internal/linux/rawproc"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// guest is a running sandbox.
type guest struct {
	plan  *Plan
	init  *rawproc.Init
	group *cgroup.Group
	*Supervision
	// network holds the sockets that carry the guest's network, or is nil.
	network *sandbox.GuestNetwork
	// probeCache is where the outcome of probing is kept, or "".
	probeCache string
	once       sync.Once
}

// targets lists where the plan mounts something.
func targets(mounts []Mount) []string {
	list := make([]string, len(mounts))
	for i, m := range mounts {
		list[i] = m.Target
	}
	return list
}

// shownSockets are the sockets of the host that the guest may connect to.
func shownSockets(p *Plan) map[string]Identity {
	list := map[string]Identity{}
	for _, m := range p.Mounts {
		if m.Why == WhyFile && slices.Contains(p.Sockets, m.Target) {
			list[m.Target] = m.ID
		}
	}
	return list
}

// privateDevices are the device numbers of the session's own file systems.
func privateDevices(root int, mounts []Mount) map[uint64]bool {
	devs := map[uint64]bool{}
	for _, m := range mounts {
		targets := []string{m.Target}
		if m.Kind == KindDev {
			targets = []string{m.Target + "/shm"}
		} else if m.Kind != KindTmpfs {
			continue
		}
		var st unix.Stat_t
		if unix.Fstatat(root, "."+targets[0], &st, 0) == nil {
			devs[st.Dev] = true
		}
	}
	return devs
}

// Exec starts a command.
func (g *guest) Exec(c sandbox.Command) (sandbox.Process, error) {
	p := newProcess()
	p.guest = g
	command, err := g.plan.command(c, p)
	if err != nil {
		return nil, err
	}
	if p.pid, err = g.init.Run(command); err != nil {
		return nil, g.plan.startError(c, err)
	}
	return p, nil
}

// command is c in the terms of the session's first process, which reports to p.
func (n *Plan) command(c sandbox.Command, p *process) (rawproc.Command, error) {
	c = n.complete(c)
	if len(c.Argv) == 0 || c.Argv[0] == "" {
		return rawproc.Command{}, &sandbox.NotFoundError{Name: `""`, Err: unix.ENOENT, Absent: true}
	}
	return rawproc.Command{
		Paths: candidates(c.Argv[0], c.Dir, lookupEnv(c.Env, "PATH")), Args: c.Argv, Env: c.Env, Dir: c.Dir,
		Stdio: c.Stdio, Terminal: c.Terminal, Foreground: c.Foreground, Last: c.Last, OnStatus: p.changed,
	}, nil
}

// complete gives c the session's environment and directory where it has none
// of its own.
func (n *Plan) complete(c sandbox.Command) sandbox.Command {
	if c.Env == nil {
		c.Env = n.Env
	}
	if c.Dir == "" {
		c.Dir = n.Dir
	}
	return c
}

// startError is err as a guest's caller knows it.
func (n *Plan) startError(c sandbox.Command, err error) error {
	var ee *rawproc.ExecError
	if errors.As(err, &ee) {
		return NotFound(n, n.complete(c), ee.Errno)
	}
	return err
}

// OpenTerminal opens a pseudo-terminal in the guest's own /dev/pts, where
// programs find it by its name.
func (g *guest) OpenTerminal() (master, slave *os.File, err error) {
	return OpenTerminal(g.init.Ready()[0])
}

// OpenTerminal opens a pseudo-terminal in the /dev/pts below root, which is an
// O_PATH of a guest's "/".
func OpenTerminal(root *os.File) (master, slave *os.File, err error) {
	how := unix.OpenHow{Flags: unix.O_RDWR | unix.O_NOCTTY | unix.O_CLOEXEC, Resolve: resolveGuest}
	m, err := unix.Openat2(int(root.Fd()), "/dev/pts/ptmx", &how)
	if err != nil {
		return nil, nil, fmt.Errorf("open the guest's /dev/pts/ptmx: %w", err)
	}
	if err := unix.IoctlSetPointerInt(m, unix.TIOCSPTLCK, 0); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("unlock the terminal: %w", err), unix.Close(m))
	}
	s, err := terminalPeer(m)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("open the terminal's other side: %w", err), unix.Close(m))
	}
	return os.NewFile(uintptr(m), "ptmx"), os.NewFile(uintptr(s), "pts"), nil
}

// Done is closed when the guest has ended.
func (g *guest) Done() <-chan struct{} { return g.init.Done() }

// Close ends the guest and removes its control group.
func (g *guest) Close() error {
	var err error
	g.once.Do(func() {
		g.Stop()
		if g.plan.Rung == RungLandlock {
			endDescendants(g)
		}
		g.init.Kill()
		err = g.Supervision.Close()
		if g.group != nil {
			err = errors.Join(err, g.group.Remove())
			sweep(g.probeCache)
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
