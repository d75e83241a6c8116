package native

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/linux/cgroup"
	"github.com/bawn-dev/bawn/internal/linux/notify"
	"github.com/bawn-dev/bawn/internal/linux/rawproc"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// guest is a running sandbox.
type guest struct {
	plan  *Plan
	init  *rawproc.Init
	super *supervisor
	group *cgroup.Group
	// probeCache is where the outcome of probing is kept, or "".
	probeCache string
	once       sync.Once
}

// start carries the plan out.
func start(p *Plan, group *cgroup.Group, first *rawproc.Command, onDenial func(sandbox.Denial)) (*guest, error) {
	var joins []*os.File
	if group != nil {
		joins = group.ProcFiles()
	}
	prog, err := compile(p, joins)
	if err != nil {
		return nil, err
	}
	in, err := rawproc.Start(rawproc.Config{
		Namespaces: prog.namespaces, Program: &prog.Program, Ready: []rawproc.Slot{prog.root, prog.listener}, First: first,
	})
	if err != nil {
		return nil, err
	}
	g := &guest{plan: p, init: in, group: group}
	g.supervise(onDenial)
	return g, nil
}

// supervise starts the supervisor on what PID 1 handed back.
func (g *guest) supervise(onDenial func(sandbox.Denial)) {
	root, listener := g.init.Ready()[0], g.init.Ready()[1]
	g.super = &supervisor{
		listener: notify.NewListener(listener), root: int(root.Fd()), onDenial: onDenial, stop: make(chan struct{}),
		names: g.protector(), targets: targets(g.plan.Mounts), fileSize: g.plan.Limits.FileSizeMB << 20, repos: newRepositories(),
		sockets: &sockets{private: privateDevices(int(root.Fd()), g.plan.Mounts), dir: g.plan.Tmp, bound: fileSet{}, ownNetwork: g.plan.Loopback},
	}
	g.super.run()
}

// protector is where names and, without mounts, writes are ruled on.
func (g *guest) protector() *protector {
	p := newProtector(g.plan.Protected, g.plan.ExtraNames)
	p.absent, p.targets = g.plan.Absent, g.plan.Targets
	if g.plan.Rung == rungLandlock {
		p.only = g.plan.Landlock.Writable
	}
	return p
}

// targets lists where the plan mounts something.
func targets(mounts []Mount) []string {
	list := make([]string, len(mounts))
	for i, m := range mounts {
		list[i] = m.Target
	}
	return list
}

// privateDevices are the device numbers of the session's own file systems.
func privateDevices(root int, mounts []Mount) map[uint64]bool {
	devs := map[uint64]bool{}
	for _, m := range mounts {
		targets := []string{m.Target}
		if m.Kind == kindDev {
			targets = []string{m.Target + "/shm"}
		} else if m.Kind != kindTmpfs {
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
		return notFound(n, n.complete(c), ee.Errno)
	}
	return err
}

// OpenTerminal opens a pseudo-terminal in the guest's own /dev/pts, where
// programs find it by its name.
func (g *guest) OpenTerminal() (master, slave *os.File, err error) {
	root := int(g.init.Ready()[0].Fd())
	how := unix.OpenHow{Flags: unix.O_RDWR | unix.O_NOCTTY | unix.O_CLOEXEC, Resolve: resolveGuest}
	m, err := unix.Openat2(root, "/dev/pts/ptmx", &how)
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
		close(g.super.stop)
		if g.plan.Rung == rungLandlock {
			endDescendants(g)
		}
		g.init.Kill()
		g.super.wait.Wait()
		if g.group != nil {
			err = g.group.Remove()
			sweep(g.probeCache)
		}
	})
	return err
}

// process is a command of a guest.
type process struct {
	guest   *guest
	pid     int
	changes chan sandbox.Change
}

func newProcess() *process { return &process{changes: make(chan sandbox.Change, 64)} }

// changed hands a change on; where nobody fetches them, an old one gives way.
func (p *process) changed(ws unix.WaitStatus) {
	ch := sandbox.Change{Stopped: ws.Stopped(), Status: syscall.WaitStatus(ws)}
	for sent := false; !sent; {
		select {
		case p.changes <- ch:
			sent = true
		default:
			select {
			case <-p.changes:
			default:
			}
		}
	}
	if !ch.Stopped {
		close(p.changes)
	}
}

// Changes delivers stops and the end.
func (p *process) Changes() <-chan sandbox.Change { return p.changes }

// Signal sends sig to the command's process group.
func (p *process) Signal(sig syscall.Signal) error { return p.guest.init.Signal(p.pid, sig) }

// Foreground gives the command the terminal.
func (p *process) Foreground() error { return p.guest.init.Foreground(p.pid) }
