package bwrap

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"os"
	"path"
	"sync"
	"syscall"

	"github.com/bawn-dev/bawn/internal/linux/cgroup"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/inside"
	"github.com/bawn-dev/bawn/internal/sandbox/kernel"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
	"github.com/bawn-dev/bawn/internal/sandbox/supervise"
)

// guest is a running sandbox.
type guest struct {
	*inside.Guest
	plan    *Plan
	machine *kernel.Machine
	process *process
	group   *cgroup.Group
	super   *supervise.Supervision
	once    sync.Once
	closed  error
}

// setup is what the first process is to do.
func (p *Plan) setup() (inside.Setup, error) {
	text, err := json.Marshal(p)
	return inside.Setup{
		Session: p.Session, Plan: sha256.Sum256(text), Copy: copyOf(p.Plan), Network: p.Network, Limits: p.Limits, Landlock: p.Landlock,
		Filter: filterOf(p.Plan), Mounts: true, Environ: p.Env, Dir: p.Dir, Ports: p.Loopback,
		NotFound: func(c sandbox.Command, errno syscall.Errno) *sandbox.NotFoundError {
			return layout.NotFound(p.Plan, c, errno)
		},
	}, err
}

// filterOf is the filter under which the guest runs.
func filterOf(p *layout.Plan) inside.Filter {
	if p.Programs {
		return inside.FilterPrograms
	}
	return inside.FilterSupervised
}

// supervise serves the calls that the guest's filter holds, and keeps hidden
// places hidden.
func (g *guest) supervise(onDenial func(sandbox.Denial)) {
	g.super = supervise.Supervise(g.Guest.Root, g.Listener, g.plan.Plan, onDenial)
	g.super.Keep(g.Mounts, g.plan.Plan, g)
}

// Root returns the PID of the sandbox's first process (sandbox.Rooted).
func (g *guest) Root() int { return g.process.pid }

// End ends every process of the guest, and does not wait for it.
func (g *guest) End() { g.process.kill() }

// Hits lists the limits that the guest ran into so far.
func (g *guest) Hits() []sandbox.Hit {
	return append(g.super.Hits(), kernel.GroupHits(g.group, g.plan.Limits)...)
}

// Close ends the guest and removes its control group. It returns within some
// 15 s, and says what could not be removed.
func (g *guest) Close() error {
	g.once.Do(func() { g.closed = g.close() })
	return g.closed
}

func (g *guest) close() error {
	var errs []error
	if g.super != nil {
		g.super.Stop()
	}
	if g.process != nil {
		errs = append(errs, g.process.end())
	}
	if g.Guest != nil {
		errs = append(errs, g.Guest.Close())
	}
	if g.super != nil {
		errs = append(errs, g.super.Close())
	}
	if g.group != nil {
		errs = append(errs, g.group.Remove())
		g.machine.Sweep()
	}
	return errors.Join(errs...)
}

// interfaces are the directories of /sys that hold the host's network
// interfaces.
func interfaces() []string {
	const class, virtual = "/sys/class/net", "/sys/devices/virtual/net"
	list := []string{}
	add := func(dir string) {
		if fi, err := os.Lstat(dir); err == nil && fi.IsDir() {
			list = append(list, dir)
		}
	}
	entries, _ := os.ReadDir(class) // nothing to hide without it
	add(class)
	add(virtual)
	for _, e := range entries {
		to, err := os.Readlink(path.Join(class, e.Name()))
		if dir := path.Dir(path.Join(class, to)); err == nil && dir != virtual {
			add(dir)
		}
	}
	return list
}
