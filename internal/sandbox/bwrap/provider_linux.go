package bwrap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/bawn-dev/bawn/internal/ipc"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/inside"
	"github.com/bawn-dev/bawn/internal/sandbox/kernel"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// Provider starts sandboxes with bubblewrap.
type Provider struct {
	cache    string
	search   string        // where bwrap is, as PATH
	patience time.Duration // of all trials

	once    sync.Once
	machine *kernel.Machine // what this machine's kernel can do, and the layout
	path    string          // of bwrap
	facts   Facts
	found   support
}

// New returns the provider that uses the bwrap in PATH. It starts nothing. What
// bwrap can do here is tried when Capabilities or Plan is called. Unless
// probeCache is "", that file keeps the outcome until the machine is booted again
// or another bwrap is installed.
//
// bwrap is looked for in searchPath, which has the form of PATH; "" stands for
// the usual directories of a system.
func New(probeCache, searchPath string) *Provider {
	return &Provider{cache: probeCache, search: cmp.Or(searchPath, usual), patience: probePatience}
}

// usual are the directories in which systems have their programs.
const usual = "/usr/local/bin:/usr/bin:/bin"

// look finds out what there is here, once.
func (p *Provider) look() support {
	p.once.Do(func() {
		cache := ""
		if p.cache != "" {
			cache = p.cache + "-kernel"
		}
		p.machine, p.facts = kernel.Look(cache), Facts{Interfaces: interfaces()}
		p.path, p.found = p.probe()
	})
	return p.found
}

// Name returns "bwrap".
func (*Provider) Name() string { return Name }

// Abilities says that a guest can speak to its session, be split, and work on a copy.
func (*Provider) Abilities() sandbox.Abilities {
	return sandbox.Abilities{Socket: true, Split: true, Copy: true}
}

// Plan makes a plan without touching anything. It errs with a
// *sandbox.MismatchError when the isolation asks for more than can be enforced
// here.
func (p *Provider) Plan(req sandbox.Request) (sandbox.Plan, error) {
	partly, err := sandbox.Negotiate(req.Session.Isolation, p)
	if err != nil {
		return nil, err
	}
	facts := p.machine.Facts()
	facts.IPv6 = p.look().ipv6
	layout, err := layout.Layout(req, facts)
	if err != nil {
		return nil, err
	}
	layout.InPart = partly
	return makePlan(layout, p.facts)
}

// Start carries a plan out.
func (p *Provider) Start(plan sandbox.Plan, onDenial func(sandbox.Denial)) (sandbox.Guest, error) {
	b, ok := plan.(*Plan)
	if !ok {
		return nil, fmt.Errorf("BUG(bawn): %T is no plan of provider %q", plan, Name)
	}
	ctx, cancel := context.WithTimeout(context.Background(), startPatience)
	defer cancel()
	now := b.current()
	g, err := p.start(ctx, now, onDenial)
	for range startsAgain {
		before := now
		if now = b.current(); err == nil || !passing(err) && len(now.Mounts) == len(before.Mounts) {
			break
		}
		g, err = p.start(ctx, now, onDenial)
	}
	if err != nil {
		forget(p.cache)
		return nil, explain(err)
	}
	return g, nil
}

// startsAgain is how often a start is tried again where a mount of the host, or a name
// of the closed home, went away while bwrap came to it: container engines mount and
// unmount all the time, and programs make and remove files in the home.
const startsAgain = 10

// startPatience is how long a sandbox may take to be ready.
const startPatience = 20 * time.Second

// start makes what the plan says. On an error it leaves nothing.
func (p *Provider) start(ctx context.Context, b *Plan, onDenial func(sandbox.Denial)) (_ *guest, err error) {
	g := &guest{plan: b, machine: p.machine}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.Close())
		}
	}()
	if g.group, err = p.machine.Group(b.Plan); err != nil {
		return nil, err
	}
	standing, err := b.standing()
	if err != nil {
		return nil, err
	}
	ours, theirs, err := ipc.Pair()
	if err != nil {
		return nil, err
	}
	g.process, err = launch(ctx, p.path, b, theirs)
	theirs.Close()
	if err != nil {
		ours.Close()
		return nil, err
	}
	if err := g.meet(ctx, ours); err != nil {
		return nil, g.process.why(err)
	}
	g.supervise(onDenial)
	return g, errors.Join(b.settle(g.Mounts, g.process.pid), b.unmade(standing))
}

// meet has the first process do what is left to do, and takes control.
func (g *guest) meet(ctx context.Context, control *os.File) error {
	setup, err := g.plan.setup()
	if err == nil && g.group != nil {
		setup.Groups, err = g.group.OpenProcs()
		defer closeAll(setup.Groups)
	}
	if err != nil {
		return errors.Join(err, control.Close())
	}
	g.Guest, err = inside.Start(ctx, control, setup)
	return err
}
