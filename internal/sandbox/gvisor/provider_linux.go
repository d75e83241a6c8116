package gvisor

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/intent"
	"github.com/bawn-dev/bawn/internal/ipc"
	"github.com/bawn-dev/bawn/internal/linux/cgroup"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/inside"
	"github.com/bawn-dev/bawn/internal/sandbox/inside/stream"
	"github.com/bawn-dev/bawn/internal/sandbox/kernel"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// Options are what the provider is made of.
type Options struct {
	Runsc   string // path of runsc; "" looks for it in PATH
	Path    string // where it is looked for, as the variable PATH
	Cache   string // where the outcome of trials is kept until the next boot; "" for nowhere
	Native  string // the same of provider native, for what control groups can do
	Program string // path of Bawn; "" for the one that is running
	// Unprotected says that the user accepts sessions whose guests can make files
	// that the host executes later.
	Unprotected bool
	// Patience bounds how long a sandbox may take until it can run commands; 0
	// stands for 30 s.
	Patience time.Duration
}

// Provider makes sandboxes with runsc. Making one starts nothing: what takes a
// trial is tried when Capabilities is called.
type Provider struct {
	options Options
	once    sync.Once
	machine *kernel.Machine
	found   finding
}

// New returns the provider.
func New(o Options) *Provider { return &Provider{options: o} }

// Name returns "gvisor".
func (*Provider) Name() string { return Name }

// look finds out what there is, once.
func (p *Provider) look() {
	p.once.Do(func() {
		p.machine = kernel.Look(p.options.Native)
		p.found = p.find()
	})
}

// Plan makes a plan without starting anything but trials. It errs with a
// *sandbox.MismatchError when the isolation asks for more than can be enforced.
func (p *Provider) Plan(req sandbox.Request) (sandbox.Plan, error) {
	partly, err := sandbox.Negotiate(req.Session.Isolation, p)
	if err != nil {
		return nil, err
	}
	facts := p.machine.Facts()
	facts.IPv6 = p.found.IPv6
	plan, err := makePlan(req, facts)
	if err != nil {
		return nil, err
	}
	plan.InPart = partly
	return plan, nil
}

// digest is what tickets name the plan by.
func (p *Plan) digest() ([32]byte, error) {
	text, err := json.Marshal(p)
	return sha256.Sum256(text), err
}

// Start carries a plan out. A refusal is gVisor's own errno: onDenial is never
// called.
func (p *Provider) Start(plan sandbox.Plan, _ func(sandbox.Denial)) (sandbox.Guest, error) {
	n, ok := plan.(*Plan)
	if !ok {
		return nil, fmt.Errorf("BUG(bawn): %T is no plan of provider %q", plan, Name)
	}
	p.look()
	group, err := p.machine.Group(grouped(n.Layout))
	if err != nil {
		return nil, &kernel.StartError{Err: err, Remedy: "try again; \"bawn doctor\" shows what this machine can limit"}
	}
	g, err := start(n, group, p.found.Path, p.options, startTime)
	if err != nil {
		if group != nil {
			_ = group.Remove()
		}
		p.forget()
		return nil, err
	}
	return g, nil
}

// startTime and trialTime bound how long a sandbox may take until it can run
// commands, and one that is a trial.
const (
	startTime = 30 * time.Second
	trialTime = 10 * time.Second
)

// start starts the launcher, and with it everything.
func start(n *Plan, group *cgroup.Group, runsc string, o Options, patience time.Duration) (*guest, error) {
	ctx, cancel := context.WithTimeout(context.Background(), cmp.Or(o.Patience, patience))
	defer cancel()
	program, err := launcherOf(o.Program)
	if err != nil {
		return nil, err
	}
	g := &guest{plan: n, group: group}
	wire, err := g.launch(program, runsc)
	if err == nil {
		err = g.hear(ctx)
	}
	if err == nil {
		err = g.greet(ctx, wire)
	} else if wire != nil {
		wire.Close()
	}
	if err != nil {
		return nil, errors.Join(g.explain(err), g.Close())
	}
	return g, nil
}

// launcherOf is the program that becomes the launcher. A program of tests would begin
// its tests anew.
func launcherOf(program string) (string, error) {
	if program != "" {
		return program, nil
	}
	program, err := os.Executable()
	if err == nil && strings.HasSuffix(program, ".test") {
		err = errors.New("BUG(bawn): a test has not said which program becomes the launcher")
	}
	return program, err
}

// grouped is the layout as a control group is made from it: the processes of the
// guest are counted together with gVisor's own.
func grouped(l *layout.Plan) *layout.Plan {
	p := *l
	if p.Limits.PIDs > 0 {
		p.Limits.PIDs += Overhead
	}
	return &p
}

// launch starts the launcher and tells it what to make. It returns the socket of
// the guest's first process.
func (g *guest) launch(program, runsc string) (wire *os.File, err error) {
	ours, theirs, err := ipc.Pair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	if g.conn, err = ipc.New(ours, intent.Limits); err != nil {
		return nil, errors.Join(err, ours.Close())
	}
	wire, inner, err := ipc.Pair()
	if err != nil {
		return nil, err
	}
	defer inner.Close()
	a := launch{Mounts: mounts(g.plan.Layout), Gateway: g.plan.Gateway, Resolver: g.plan.Resolver, Config: g.plan.Config, Runsc: runsc, Flags: g.plan.Runsc, Program: program}
	a.Processes = grouped(g.plan.Layout).Limits.PIDs
	g.cmd = exec.Command(program, Argument)
	g.cmd.Stdin, g.cmd.ExtraFiles = theirs, []*os.File{inner}
	if g.group != nil {
		procs, err := g.group.OpenProcs()
		if err != nil {
			return nil, errors.Join(err, wire.Close())
		}
		defer closeAll(procs)
		a.Groups = len(procs)
		g.cmd.ExtraFiles = append(g.cmd.ExtraFiles, procs...)
	}
	g.cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	g.cmd.Dir = "/"
	g.cmd.SysProcAttr = g.plan.attributes()
	if err := g.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start the launcher: %w", err), wire.Close())
	}
	g.ended = make(chan struct{})
	go func() {
		_ = g.cmd.Wait() // it is killed, as a rule
		close(g.ended)
	}()
	if err := g.conn.Send(&order{Launch: &a}); err != nil {
		return nil, errors.Join(fmt.Errorf("tell the launcher what to make: %w", err), wire.Close())
	}
	return wire, nil
}

// attributes are those of the launcher: namespaces of its own, the one user in
// them, and an end with this process.
func (p *Plan) attributes() *syscall.SysProcAttr {
	l := p.Layout
	a := &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: l.UID.Inside, HostID: l.UID.Outside, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: l.GID.Inside, HostID: l.GID.Outside, Size: 1}},
		Setsid:      true, Pdeathsig: syscall.SIGKILL,
	}
	if l.Loopback {
		a.Cloneflags |= unix.CLONE_NEWNET
	}
	for c := range uintptr(unix.CAP_LAST_CAP + 1) {
		a.AmbientCaps = append(a.AmbientCaps, c)
	}
	return a
}

// hear waits until the launcher has made everything.
func (g *guest) hear(ctx context.Context) error {
	over := context.AfterFunc(ctx, func() { _ = g.conn.SetDeadline(time.Unix(1, 0)) })
	defer over()
	var sockets []*os.File
	for {
		var r report
		files, err := g.conn.Receive(&r)
		switch {
		case err != nil:
			closeAll(sockets)
			return fmt.Errorf("the launcher has ended before the sandbox was made: %w", err)
		case r.Sockets > 0 && r.Sockets == len(files):
			sockets = append(sockets, files...)
			continue
		case r.Failed != nil:
			closeAll(sockets)
			return &stepFailure{*r.Failed}
		case !r.Started:
			closeAll(sockets)
			return errors.New("the launcher says something else than was asked for")
		}
		if n := g.plan.Gateway; n != nil {
			if len(sockets) != 4*len(n.Own) {
				closeAll(sockets)
				return errors.New("the launcher hands out other sockets than were asked for")
			}
			g.network = kernel.GuestNetwork(&n.Network, sockets)
		}
		return nil
	}
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// greet speaks to the guest's first process.
func (g *guest) greet(ctx context.Context, wire *os.File) error {
	g.heard = make(chan struct{})
	go g.listen()
	var err error
	if g.Host, err = stream.Open(wire); err != nil {
		return err
	}
	digest, err := g.plan.digest()
	if err != nil {
		return err
	}
	l := g.plan.Layout
	limits := l.Limits
	limits.PIDs, limits.MemoryMB = 0, 0 // a control group's: gVisor's kernel knows no such limits
	g.Guest, err = inside.Start(ctx, g.Host.Control(), inside.Setup{
		Session: l.Session, Plan: digest, Limits: limits, Filter: inside.FilterGuest, Stream: true,
		Environ: l.Env, Dir: l.Dir,
		NotFound: func(c sandbox.Command, errno syscall.Errno) *sandbox.NotFoundError {
			return layout.NotFound(l, c, errno)
		},
	})
	return err
}

// A stepFailure is what the launcher could not do.
type stepFailure struct{ step }

func (e *stepFailure) Error() string { return e.Name + ": " + e.Why }

func (e *stepFailure) Unwrap() error { return syscall.Errno(e.Errno) }

// explain adds runsc's message to err, and a remedy if there is one.
func (g *guest) explain(err error) error {
	var s *stepFailure
	if errors.As(err, &s) && strings.HasPrefix(s.Name, layout.KindCopy+" ") {
		return &kernel.StartError{Err: err, Remedy: kernel.OverlayRemedy(syscall.Errno(s.Errno))}
	}
	if errors.As(err, &s) {
		return &kernel.StartError{Err: err, Remedy: "\"bawn doctor\" shows what this machine can enforce"}
	}
	if g.heard != nil {
		select {
		case <-g.heard:
		case <-time.After(time.Second):
		}
	}
	if text := strings.TrimSpace(g.text()); text != "" {
		err = fmt.Errorf("%w; runsc says: %s", err, text)
	}
	return &kernel.StartError{Err: err, Remedy: "try \"runsc do true\"; \"bawn doctor\" shows what this machine can enforce"}
}
