package host

import (
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/linux/cgroup"
	"github.com/bawn-dev/bawn/internal/linux/rawproc"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// Provider runs a guest without isolation.
type Provider struct{ groups func() cgroup.Support }

// New returns the provider. What control groups can do here is tried when it is
// first needed.
func New() *Provider { return &Provider{groups: sync.OnceValue(cgroup.Probe)} }

// Capabilities says what a process like any other is held by.
func (p *Provider) Capabilities() []bawn.Capability {
	groups := p.groups()
	return append(unenforced(),
		limit(sandbox.LimitMemory, groups.Memory, bawn.Capability{Strength: bawn.Partly, How: "RLIMIT_DATA: each process by itself"}),
		limit(sandbox.LimitPIDs, groups.PIDs, bawn.Capability{}),
		limit(sandbox.LimitCPU, groups.CPU, bawn.Capability{}),
		rlimit(sandbox.LimitFiles, "RLIMIT_NOFILE"),
		rlimit(sandbox.LimitFileSize, "RLIMIT_FSIZE"),
		bawn.Capability{Attribute: sandbox.LimitTime, Strength: bawn.Partly, How: "what the session started is killed", Why: "what has another user's rights by then goes on, and what has ended Bawn's first process before", Remedy: remedy},
	)
}

// limit is what a control group is worth whose members have the rights to leave
// it, or else something weaker.
func limit(attribute string, c cgroup.Controller, otherwise bawn.Capability) bawn.Capability {
	if c.Version == 0 {
		otherwise.Attribute, otherwise.Why, otherwise.Remedy = attribute, c.Why, c.Remedy
		return otherwise
	}
	return bawn.Capability{
		Attribute: attribute, Strength: bawn.Partly, How: fmt.Sprintf("control group v%d", c.Version),
		Why: "the guest has your rights, and may have that to leave the group", Remedy: remedy,
	}
}

// rlimit is a limit that only root's processes can raise again (setrlimit(2)).
func rlimit(attribute, how string) bawn.Capability {
	if os.Geteuid() == 0 {
		return bawn.Capability{Attribute: attribute, Strength: bawn.Partly, How: how, Why: "root's processes may raise it again", Remedy: remedy}
	}
	return bawn.Capability{Attribute: attribute, Strength: bawn.Enforced, How: how}
}

// Plan makes a plan. It refuses nothing for want of isolation: who gets here has
// named this provider, and the plan lists what is missing.
func (p *Provider) Plan(req sandbox.Request) (sandbox.Plan, error) {
	switch {
	case req.Relay:
		return nil, fmt.Errorf("provider %q leads nothing to the relay of a network by name; %s", Name, remedy)
	case len(req.Files) > 0 || req.Tmp != "":
		return nil, fmt.Errorf("provider %q shows the host as it is, and no file at another place; %s", Name, remedy)
	}
	return plan(req, p.Capabilities()), nil
}

// Start carries a plan out.
func (p *Provider) Start(n sandbox.Plan, _ func(sandbox.Denial)) (sandbox.Guest, error) {
	own, ok := n.(*Plan)
	if !ok {
		return nil, fmt.Errorf("BUG(bawn): %T is no plan of provider %q", n, Name)
	}
	group, err := p.group(own)
	if err != nil {
		return nil, err
	}
	in, err := rawproc.Start(rawproc.Config{Program: first(own.Limits, group)})
	if err != nil {
		if group != nil {
			_ = group.Remove() // nobody is in it
		}
		return nil, fmt.Errorf("start the first process of the session: %w", err)
	}
	return &guest{plan: own, init: in, group: group}, nil
}

// group makes the control group for the limits that one can hold here, or none.
func (p *Provider) group(n *Plan) (*cgroup.Group, error) {
	var l cgroup.Limits
	groups := p.groups()
	if groups.Memory.Version > 0 {
		l.MemoryMB = n.Limits.MemoryMB
	}
	if groups.PIDs.Version > 0 {
		l.PIDs = n.Limits.PIDs
	}
	if groups.CPU.Version > 0 {
		l.CPUs, l.CPUShares = n.Limits.CPUs, n.Limits.CPUShares
	}
	if l == (cgroup.Limits{}) {
		return nil, nil
	}
	return cgroup.New(n.session, l)
}

// first is the program of the session's first process, which adopts what loses
// its parent and ends with Bawn.
func first(limits bawn.Resources, group *cgroup.Group) *rawproc.Program {
	p := &rawproc.Program{}
	fd := p.NewSlot()
	p.Call("die with the parent", unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, int(unix.SIGKILL), 0, 0, 0)
	p.Call("adopt orphans", unix.SYS_PRCTL, unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	if group != nil {
		for _, f := range group.ProcFiles() {
			p.Call("join "+f.Name(), unix.SYS_WRITE, int(f.Fd()), "0", 1)
		}
	}
	p.Call("new session", unix.SYS_SETSID)
	p.Call("open /dev/null", unix.SYS_OPENAT, unix.AT_FDCWD, "/dev/null", unix.O_RDWR|unix.O_CLOEXEC).Into(fd)
	for i := range 3 {
		p.Call("close the user's terminal", unix.SYS_DUP3, fd, i, 0)
	}
	p.Call("close /dev/null", unix.SYS_CLOSE, fd)
	for _, l := range []struct {
		name     string
		resource int
		n        int64
		shift    uint
	}{
		{"open files", unix.RLIMIT_NOFILE, limits.OpenFiles, 0}, {"file size", unix.RLIMIT_FSIZE, limits.FileSizeMB, 20}, {"data", unix.RLIMIT_DATA, limits.MemoryMB, 20},
	} {
		if l.n > 0 {
			lower(p, l.name, l.resource, uint64(l.n)<<l.shift)
		}
	}
	return p
}

// lower sets a limit, never above the one that holds already.
func lower(p *rawproc.Program, name string, resource int, n uint64) {
	var have unix.Rlimit
	if unix.Getrlimit(resource, &have) == nil {
		n = min(n, have.Max)
	}
	p.Call("limit "+name, unix.SYS_PRLIMIT64, 0, resource, rawproc.Put(p, unix.Rlimit{Cur: n, Max: n}), 0)
}
