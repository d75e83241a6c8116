package native

import (
	"errors"
	"os"

	"github.com/bawn-dev/bawn/internal/linux/cgroup"
	"github.com/bawn-dev/bawn/internal/linux/rawproc"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/kernel"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
	"github.com/bawn-dev/bawn/internal/sandbox/supervise"
)

// maxGroups is how many control groups a session has: one for each controller.
const maxGroups = 3

// A build is a sandbox that is being made. Its first process makes namespaces
// and mounts while this one makes the control group and the rest of the program.
// No program of the guest's runs in it.
type build struct {
	plan  *layout.Plan
	prog  *program
	init  *rawproc.Init
	group *cgroup.Group
	early bool  // it began as a Preforked
	err   error // why it could not be made, as Start returns it
}

// Prepare begins to make the sandbox of a plan, for the Start or Launch of that
// plan, which also returns its errors. abandon ends it unless it was taken.
func (p *Provider) Prepare(plan sandbox.Plan) (abandon func()) {
	n, err := own(plan)
	if err != nil || n.Rung == layout.RungLandlock {
		return func() {}
	}
	b := p.begin(n)
	select {
	case p.early <- b:
	default:
		b.abandon()
	}
	return func() {
		select {
		case left := <-p.early:
			left.abandon()
		default:
		}
	}
}

// build is the one that was prepared for the plan, or a new one.
func (p *Provider) build(n *layout.Plan) *build {
	select {
	case b := <-p.early:
		if b.plan == n {
			return b
		}
		b.abandon()
	default:
	}
	return p.begin(n)
}

// begin starts to carry out the plan. If a start that was begun without the
// plan fails, it begins anew: the error is that of an ordinary start.
func (p *Provider) begin(n *layout.Plan) *build {
	b := p.attempt(n)
	if b.err != nil && b.early {
		return p.attempt(n)
	}
	return b
}

func (p *Provider) attempt(n *layout.Plan) *build {
	b := &build{plan: n}
	if n.Rung == layout.RungLandlock {
		b.err = p.beginLandlock(b)
	} else {
		b.err = p.beginNamespaces(b)
	}
	if b.err != nil {
		b.abandon()
	}
	return b
}

// first has the first process make the guest's tree, and wait at the gate that it
// returns.
func (p *Provider) first(b *build, slots []rawproc.Slot) (gate rawproc.Gate, err error) {
	preforked := p.preforked
	p.preforked = nil
	if !preforked.become(b) {
		b.prog = newProgram()
		b.prog.enter(everyNamespace, b.plan.Namespaces, b.plan.Loopback)
	}
	taken, err := b.prog.awaitCopy(b.plan.SharedCopy)
	if err != nil {
		return gate, err
	}
	b.prog.assemble(b.plan)
	for i := range slots {
		slots[i] = b.prog.NewSlot()
	}
	gate = b.prog.Await("wait for the control group", slots...)
	if b.early {
		err = b.init.Open(preforked.gate, nil)
	} else {
		b.init, err = rawproc.Begin(rawproc.Config{Namespaces: b.prog.namespaces, Program: &b.prog.Program, Alone: true})
	}
	if err == nil && taken.mount != nil {
		err = b.init.Open(taken.gate, []*os.File{taken.mount})
	}
	return gate, err
}

// beginNamespaces forks first: making the control group takes as long as the
// mounts do, and neither needs the other.
func (p *Provider) beginNamespaces(b *build) error {
	var groups [maxGroups]rawproc.Slot
	gate, err := p.first(b, groups[:])
	if err != nil {
		return p.explained(b.plan, err)
	}
	if err := p.limit(b); err != nil {
		return err
	}
	joins := b.group.ProcFiles()
	b.prog.joinLater(joins, groups[:])
	if err := b.prog.confine(b.plan); err != nil {
		return p.explained(b.plan, err)
	}
	if err := b.init.Open(gate, joins, b.prog.ready()...); err != nil {
		b.init.Kill()
		return p.explained(b.plan, b.why(err))
	}
	return nil
}

// why is err, or the step at which the first process has ended before.
func (b *build) why(err error) error {
	var step *rawproc.StepError
	if failed := b.init.Wait(); errors.As(failed, &step) {
		return failed
	}
	return err
}

// beginLandlock makes the sandbox of a plan without namespaces, whose first
// process is like any of ours until it has joined its group.
func (p *Provider) beginLandlock(b *build) error {
	if err := p.limit(b); err != nil {
		return err
	}
	var err error
	if b.prog, err = compileLandlock(b.plan, b.group.ProcFiles()); err != nil {
		return p.explained(b.plan, err)
	}
	if b.init, err = rawproc.Begin(rawproc.Config{Program: &b.prog.Program, Ready: b.prog.ready()}); err != nil {
		return p.explained(b.plan, err)
	}
	return nil
}

// limit makes the control group.
func (p *Provider) limit(b *build) (err error) {
	if b.group, err = p.Group(b.plan); err != nil {
		p.Forget()
		return &kernel.StartError{Err: err, Remedy: "try again; \"bawn doctor\" shows what this machine can limit"}
	}
	return nil
}

// explained is err with its remedy.
func (p *Provider) explained(n *layout.Plan, err error) error {
	if n.Network != nil {
		p.Forget()
	}
	return explain(err)
}

// abandon ends a sandbox that is not needed.
func (b *build) abandon() {
	if b.init != nil {
		b.init.Kill()
	}
	if b.group != nil {
		b.group.Remove()
	}
}

// start carries out the plan, and starts first in it, if any.
func (p *Provider) start(n *layout.Plan, first *rawproc.Command, onDenial func(sandbox.Denial)) (*guest, error) {
	b := p.build(n)
	g, err := p.finish(b, first, onDenial)
	if err != nil && b.early {
		return p.finish(p.begin(n), first, onDenial)
	}
	return g, err
}

// finish waits until the sandbox is made.
func (p *Provider) finish(b *build, first *rawproc.Command, onDenial func(sandbox.Denial)) (*guest, error) {
	if b.err != nil {
		return nil, b.err
	}
	var err error
	if first != nil {
		err = b.init.Ask(*first) // before Wait, so that neither side waits for the other
	}
	if err == nil {
		err = b.init.Wait()
	}
	if err != nil {
		b.init.Kill()
		err = b.why(err)
		b.abandon()
		return nil, p.explained(b.plan, err)
	}
	g := b.guest(onDenial)
	g.machine = p.Machine
	return g, nil
}

// guest is the sandbox that is made.
func (b *build) guest(onDenial func(sandbox.Denial)) *guest {
	handed := b.init.Ready()[2:]
	g := &guest{plan: b.plan, init: b.init, group: b.group, network: kernel.GuestNetwork(b.plan.Network, handed[:len(b.prog.Sockets)])}
	g.Supervision = supervise.Supervise(b.init.Ready()[0], b.init.Ready()[1], b.plan, onDenial)
	if len(b.prog.spaces) > 0 { // without mounts nothing can be uncovered
		g.Keep(handed[len(b.prog.Sockets)], b.plan, b.init)
	}
	switch {
	case len(b.prog.copies) > 0:
		b.plan.SharedCopy.Give(handed[len(b.prog.Sockets)+len(b.prog.spaces)])
	case b.prog.taken != nil:
		_ = b.plan.SharedCopy.Close() // the sandbox has it
	}
	return g
}

var _ sandbox.Preparer = (*Provider)(nil)
