package native

import (
	"errors"
	"fmt"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/kernel"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// Provider is the sandbox made of the kernel's own parts.
type Provider struct {
	*kernel.Machine
	facts     layout.Facts // the machine's, and whether guests have IPv6
	spaces    spaceSupport
	preforked *Preforked
	early     chan *build // begun by Prepare, and not taken yet
}

// New looks at this machine. Control groups and network namespaces take a
// trial; if probeCache names a file, it keeps the outcome until the machine is
// booted again. A stale outcome only makes Start fail.
func New(probeCache string) *Provider {
	m, own := kernel.LookAlso(probeCache, spaceFields, func() []string { return probeSpaces().fields() })
	p := &Provider{Machine: m, spaces: parseSpaces(own), early: make(chan *build, 1)}
	p.facts = m.Facts()
	return p
}

// Name returns "native".
func (*Provider) Name() string { return layout.NativeName }

// Abilities says that all is there: the mounts are the session's own.
func (*Provider) Abilities() sandbox.Abilities {
	return sandbox.Abilities{Socket: true, Split: true, Copy: true}
}

// Plan makes a plan without touching anything. It errs with a
// *sandbox.MismatchError when the isolation asks for more than can be
// enforced here.
func (p *Provider) Plan(req sandbox.Request) (sandbox.Plan, error) {
	p = p.again(req.Session.Isolation)
	partly, err := sandbox.Negotiate(req.Session.Isolation, p)
	if err != nil {
		return nil, err
	}
	plan, err := layout.Layout(req, p.facts)
	if err != nil {
		return nil, err
	}
	plan.InPart = partly
	plan.OwnNames(req.NoFiles)
	return plan, nil
}

// again looks once more whether a network that is asked for can be had, where
// it could not: a remedy may have been applied since.
func (p *Provider) again(iso bawn.Isolation) *Provider {
	if iso.Network != bawn.NetworkAllowlist || p.HasNetwork() {
		return p
	}
	now := *p
	now.Machine = p.TryNetworkAgain()
	now.facts.IPv6 = now.Machine.Facts().IPv6
	return &now
}

// Start carries a plan out.
func (p *Provider) Start(plan sandbox.Plan, onDenial func(sandbox.Denial)) (sandbox.Guest, error) {
	n, err := own(plan)
	if err != nil {
		return nil, err
	}
	g, err := p.start(n, nil, onDenial)
	if err != nil {
		return nil, err
	}
	return g, nil
}

// Launch carries a plan out and starts its first command.
func (p *Provider) Launch(plan sandbox.Plan, c sandbox.Command, onDenial func(sandbox.Denial)) (sandbox.Guest, sandbox.Process, error) {
	n, err := own(plan)
	if err != nil {
		return nil, nil, err
	}
	proc := newProcess()
	first, err := command(n, c, proc)
	if err != nil {
		return nil, nil, err
	}
	g, err := p.start(n, &first, onDenial)
	if err != nil {
		return nil, nil, err
	}
	if proc.pid, err = g.init.First(); err != nil {
		return nil, nil, errors.Join(startError(n, c, err), g.Close())
	}
	proc.guest = g
	return g, proc, nil
}

// own is a plan that this package has made.
func own(plan sandbox.Plan) (*layout.Plan, error) {
	n, ok := plan.(*layout.Plan)
	if !ok {
		return nil, fmt.Errorf("BUG(bawn): %T is no plan of provider %q", plan, layout.NativeName)
	}
	return n, nil
}

// Capabilities says what this provider enforces here: nothing, where the sandbox
// can't be made.
func (p *Provider) Capabilities() []bawn.Capability { return p.spaces.unless(p.promised()) }

// promised is what each mechanism is worth where the sandbox can be made.
func (p *Provider) promised() []bawn.Capability {
	yes := func(attribute, how string) bawn.Capability {
		return bawn.Capability{Attribute: attribute, Strength: bawn.Enforced, How: how}
	}
	write := "read-only mounts"
	if p.facts.LandlockABI > 0 {
		write += fmt.Sprintf(" and Landlock (ABI %d)", p.facts.LandlockABI)
	}
	list := append([]bawn.Capability{
		yes(sandbox.FSWrite, write),
		yes(sandbox.FSRead, "covered by empty mounts"),
		sandbox.PatternsSupervised(),
		yes(sandbox.FSProtect, "seccomp user notification: the supervisor opens and names files itself"),
		yes(sandbox.FSPrivate, "tmpfs"),
		yes(sandbox.Processes, "PID namespace that ends with the session"),
		yes(sandbox.IPC, "IPC namespace; UNIX sockets connected by the supervisor"),
		yes(sandbox.Kernel, "seccomp filter, no capability, no new privileges"),
		yes(sandbox.Terminal, "new session, own pseudo-terminal, TIOCSTI and TIOCLINUX refused"),
		yes(sandbox.NetNone, "empty network namespace"),
		yes(sandbox.NetFull, "the host's network"),
	}, p.NetworkByName())
	list = append(list, p.Limits()...)
	return append(list, yes(sandbox.DevicesByName, "bound into a minimal /dev"))
}
