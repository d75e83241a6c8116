package docker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/linux/cgroup"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/inside"
	"github.com/bawn-dev/bawn/internal/sandbox/kernel"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
	"github.com/bawn-dev/bawn/internal/sandbox/maker"
	"github.com/bawn-dev/bawn/internal/sandbox/supervise"
)

// A session is a container with what is ours of it.
type session struct {
	engine *engine
	plan   *Plan
	maker  maker.Maker
	place  *place
	id     string // of the container; "" before it was created
	pid    int    // of its first process
	pidfd  int    // -1 before it runs
	known  bool   // that they are of the container, and not of somebody else's
	groups *cgroup.Reading
}

// guest is a running sandbox.
type guest struct {
	*inside.Guest
	*session
	super  *supervise.Supervision // nil where the kernel is not ours to ask
	carry  *sandbox.GuestNetwork
	sweep  sync.WaitGroup
	once   sync.Once
	closed error
}

// start makes a container for a plan and everything around it; on an error
// nothing is left but what the engine does not release.
func (p *Provider) start(ctx context.Context, e *engine, plan *Plan, onDenial func(sandbox.Denial)) (*guest, error) {
	m, err := maker.Self()
	if err != nil {
		return nil, err
	}
	g := &guest{session: &session{engine: e, plan: plan, maker: m, pidfd: -1}}
	g.sweep.Go(func() { sweep(e, p.setting.Runtime, m) })
	if err := g.make(ctx, p.setting.Runtime, onDenial); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// make goes from the session's own directory to a guest that is ready.
func (g *guest) make(ctx context.Context, runtime string, onDenial func(sandbox.Denial)) (err error) {
	if g.place, err = makePlace(runtime, g.maker); err != nil {
		return err
	}
	return g.begin(ctx, onDenial)
}

// begin starts the container, and makes it a guest that is ready.
func (g *guest) begin(ctx context.Context, onDenial func(sandbox.Denial)) error {
	conn, err := g.run(ctx)
	if err != nil {
		return err
	}
	if err := g.copied(); err != nil {
		return errors.Join(err, conn.Close())
	}
	if g.carry, err = g.network(ctx); err != nil {
		return errors.Join(err, conn.Close())
	}
	setup, err := g.setup()
	if err != nil {
		return errors.Join(err, conn.Close())
	}
	setup.NotFound = g.notFound
	ready, cancel := context.WithTimeout(ctx, g.engine.life)
	defer cancel()
	if g.Guest, err = inside.Start(ready, conn, setup); err != nil {
		return err
	}
	if setup.Filter == inside.FilterSupervised {
		g.super = supervise.Supervise(g.Root, g.Listener, g.plan.Inside, onDenial)
	}
	return g.verify()
}

// run creates and starts the container, and returns the connection to its
// first process.
func (s *session) run(ctx context.Context) (conn *os.File, err error) {
	options, err := s.plan.create(s.place.path, s.maker.Labels(nil, s.plan.Inside.Session, s.plan.role))
	if err != nil {
		return nil, err
	}
	if s.id, err = s.engine.create(ctx, options); err != nil {
		return nil, err
	}
	if err := s.engine.start(ctx, s.id); err != nil {
		return nil, err
	}
	if err := s.running(ctx); err != nil {
		return nil, err
	}
	waiting, cancel := context.WithTimeout(ctx, s.engine.life)
	defer cancel()
	conn, err = s.place.accept(waiting, s.pid, s.pidfd)
	s.known = s.known || err == nil // no other process can reach that socket
	return conn, err
}

// running finds the container's first process.
func (s *session) running(ctx context.Context) error {
	c, err := s.engine.inspect(ctx, s.id)
	if err != nil {
		return err
	}
	if c.State == nil || !c.State.Running || c.State.Pid <= 0 {
		return &EndedError{"the engine says so"}
	}
	s.pid = c.State.Pid
	s.pidfd, err = unix.PidfdOpen(s.pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return &EndedError{"it has gone, or " + otherIDs}
	}
	if err != nil {
		return fmt.Errorf("find the container's first process %d, which the engine should have on this machine: %w", s.pid, err)
	}
	if s.known = groupNames(s.pid, s.id); !s.known && !first(s.pid) {
		if n, err := unix.Poll([]unix.PollFd{{Fd: int32(s.pidfd), Events: unix.POLLIN}}, 0); n > 0 || err != nil {
			return &EndedError{"it has gone"}
		}
		return fmt.Errorf("process %d is not the container's first: %s", s.pid, otherIDs)
	}
	s.groups, _ = cgroup.Of(s.pid) // nothing is proven without
	return nil
}

const otherIDs = "the engine counts processes otherwise than this machine (is it in a container or a virtual machine?); run bawn where the engine runs"

// groupNames reports whether a process is in a control group of a container,
// which engines name by its ID.
func groupNames(pid int, id string) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	return err == nil && id != "" && strings.Contains(string(text), id)
}

// first reports whether a process is the first one of a PID namespace of its own
// (proc_pid_status(5), "NSpid").
func first(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		if ids, ok := strings.CutPrefix(line, "NSpid:"); ok {
			list := strings.Fields(ids)
			return len(list) > 1 && list[len(list)-1] == "1"
		}
	}
	return false
}

// setup is what the first process does before the first command.
func (s *session) setup() (inside.Setup, error) {
	digest, err := s.plan.digest()
	in := s.plan.Inside
	limits := in.Limits
	// The engine's control groups hold these. RLIMIT_NPROC would count what its
	// user runs outside.
	limits.PIDs, limits.MemoryMB = 0, 0
	filter := inside.FilterGuest
	if in.Supervised {
		filter = inside.FilterSupervised
	}
	return inside.Setup{
		Session: in.Session, Plan: digest, Limits: limits, Landlock: in.Landlock, Filter: filter,
		Environ: s.plan.env, Dir: in.Dir, Ports: true,
	}, err
}

// verify compares what the container has with what was planned: the engine
// found files by their names, and later than the plan did.
func (g *guest) verify() error {
	if err := g.whoItIs(); err != nil {
		return err
	}
	raw, err := g.Root.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(root uintptr) {
		for _, m := range slices.Concat(g.plan.Inside.Mounts, g.plan.pins) {
			if m.ID != (layout.Identity{}) && m.Kind != layout.KindCopy && failed == nil { // whose parts were looked at
				failed = same(int(root), m)
			}
		}
	})
	return errors.Join(err, failed)
}

// same wants a planned place where the guest will find it.
func same(root int, m layout.Mount) error {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	fd, err := unix.Openat2(root, strings.TrimPrefix(m.Target, "/"), &how)
	if err != nil {
		return fmt.Errorf("find %q in the container: %w", m.Target, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if (layout.Identity{Dev: st.Dev, Ino: st.Ino}) != m.ID {
		return replaced(m)
	}
	return nil
}

func replaced(m layout.Mount) error {
	return fmt.Errorf("%q in the container is not the %q that was planned: it was replaced meanwhile, or the engine has other files than this machine: then run bawn where the engine runs", m.Target, m.Source)
}

// whoItIs wants the first process to be the user that was planned, without a
// capability and without other groups than were allowed.
func (g *guest) whoItIs() error {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", g.pid))
	if err != nil {
		return fmt.Errorf("read what the container's first process is: %w", err)
	}
	in := g.plan.Inside
	return g.agree(string(text), in.UID.Outside, in.GID.Outside)
}

// agree wants a status to be that of the user that was planned, without a
// capability.
func (g *guest) agree(status string, uid, gid int) error {
	want := map[string]string{
		"Uid": four(uid), "Gid": four(gid), "NoNewPrivs": "1", "Seccomp": "2",
		"CapInh": noCaps, "CapPrm": noCaps, "CapEff": noCaps, "CapBnd": noCaps, "CapAmb": noCaps,
	}
	for line := range strings.Lines(status) {
		name, value, _ := strings.Cut(line, ":")
		if w, ok := want[name]; ok && strings.Join(strings.Fields(value), " ") != w {
			return fmt.Errorf("the container's first process has %s %q; want %q: the engine did not do what it was told", name, strings.TrimSpace(value), w)
		}
		delete(want, name)
	}
	if len(want) > 0 {
		return fmt.Errorf("what the container's first process is can't be read: %d lines are missing", len(want))
	}
	return nil
}

const noCaps = "0000000000000000"

func four(id int) string { return fmt.Sprintf("%d %d %d %d", id, id, id, id) }

// ContainerID is the engine's name of the container, for containers that share
// its network.
func (g *guest) ContainerID() string { return g.id }

// Network returns the sockets that carry the guest's network, or nil.
func (g *guest) Network() *sandbox.GuestNetwork { return g.carry }

// Dial connects to a port of the guest's loopback that is its own.
func (g *guest) Dial(port uint16) (*os.File, error) {
	if slices.Contains(g.ownPorts(), port) {
		return nil, fmt.Errorf("port %d is not the guest's own: %w", port, unix.ECONNREFUSED)
	}
	return g.Guest.Dial(port)
}

// ownPorts are the ports of the guest's loopback that lead out of it.
func (g *guest) ownPorts() []uint16 {
	n := g.plan.Inside.Network
	if n == nil {
		return nil
	}
	return append([]uint16{53, n.Listen, n.DNS, n.Proxy}, n.HostPorts...)
}

// Hits lists the limits that the engine's control groups prove.
func (g *guest) Hits() []sandbox.Hit {
	if g.groups == nil {
		return nil
	}
	used, err := g.groups.Stats()
	if err != nil {
		return nil
	}
	return kernel.Hits(used, g.groups.Limits(), g.plan.Inside.Limits)
}

// Close ends every process of the container, with or without the engine, and
// has it removed. It says what the engine did not remove.
func (g *guest) Close() error {
	g.once.Do(func() {
		errs := []error{g.end()}
		if g.id != "" {
			errs = append(errs, g.engine.remove(context.Background(), g.id))
		}
		if g.carry != nil {
			errs = append(errs, g.carry.Close())
		}
		if g.place != nil {
			errs = append(errs, g.place.remove())
		}
		g.sweep.Wait()
		g.closed = errors.Join(errs...)
	})
	return g.closed
}

// end kills the container's first process, with which the kernel ends all others;
// then what served it ends.
func (g *guest) end() error {
	if g.super != nil {
		g.super.Stop()
	}
	var errs []error
	killed := false
	if g.pidfd >= 0 && g.known { // by an ID alone it may be anybody's
		killed = unix.PidfdSendSignal(g.pidfd, unix.SIGKILL, nil, 0) == nil // it may have ended, or be another user's
	}
	if g.Guest != nil {
		errs = append(errs, g.Guest.Close())
	}
	if g.super != nil {
		errs = append(errs, g.super.Close())
	}
	if g.pidfd >= 0 {
		if killed {
			errs = append(errs, inside.Gone(g.pidfd))
		}
		errs = append(errs, unix.Close(g.pidfd))
		g.pidfd = -1
	}
	return errors.Join(errs...)
}
