package docker

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/moby/moby/client"
	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/intent"
	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/inside"
	"github.com/bawn-dev/bawn/internal/sandbox/inside/stream"
	"github.com/bawn-dev/bawn/internal/sandbox/native"
	"github.com/bawn-dev/bawn/internal/sealed"
)

// A line is the connection to the standard streams of a container's first
// process, which the engine carries.
type line struct {
	host *stream.Host
	conn net.Conn

	mu   sync.Mutex
	said []byte // the first of its standard error
}

// attach connects to the streams of a container that does not run yet.
func (s *session) attach(ctx context.Context) (*os.File, error) {
	var r client.ContainerAttachResult
	err := s.engine.call(ctx, s.engine.life, "attach to the container", func(ctx context.Context) (err error) {
		r, err = s.engine.client.ContainerAttach(ctx, s.id, client.ContainerAttachOptions{Stream: true, Stdin: true, Stdout: true, Stderr: true})
		return err
	})
	if err != nil {
		return nil, err
	}
	s.line = &line{conn: r.Conn}
	wire, inner, err := intent.Pair()
	if err != nil {
		return nil, err
	}
	local, err := net.FileConn(inner)
	if err = errors.Join(err, inner.Close()); err != nil {
		return nil, errors.Join(err, wire.Close())
	}
	if s.line.host, err = stream.OpenPorts(wire, s.ports()); err != nil {
		return nil, errors.Join(err, local.Close())
	}
	go s.line.out(local)
	go s.line.in(local, r.Reader)
	return s.line.host.Control(), nil
}

// out carries what we say.
func (l *line) out(local net.Conn) {
	_, _ = io.Copy(l.conn, struct{ io.Reader }{local})
	_ = l.conn.Close()
}

// Streams of an engine's multiplexed connection (Engine API, "attach").
const (
	streamOut    = 1
	streamErr    = 2
	streamHeader = 8
	maxSaid      = 4 << 10
)

// in carries what the container says, and ends the session when the engine does.
func (l *line) in(local net.Conn, from io.Reader) {
	var head [streamHeader]byte
	for {
		if _, err := io.ReadFull(from, head[:]); err != nil {
			break
		}
		part := io.LimitReader(from, int64(binary.BigEndian.Uint32(head[4:])))
		to := io.Writer(local)
		if head[0] == streamErr {
			to = l
		} else if head[0] != streamOut {
			break
		}
		if _, err := io.Copy(struct{ io.Writer }{to}, part); err != nil {
			break
		}
	}
	_ = local.Close()
	_ = l.conn.Close()
}

// lastWords is how long the engine has to deliver what was said before the end.
const lastWords = time.Second

// watch calls ended once gVisor has ended, and then ends the connection: the
// engine may be late to say it, or never does (when the kernel has killed gVisor
// for its memory).
func (l *line) watch(pidfd int, ended func()) error {
	fd, err := unix.FcntlInt(uintptr(pidfd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	go func() {
		defer unix.Close(fd)
		for err := error(unix.EINTR); errors.Is(err, unix.EINTR); {
			_, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
		}
		ended()
		time.Sleep(lastWords)
		_ = l.conn.Close() // it may be closed already
	}()
	return nil
}

// Write keeps the first of what is said beside the stream.
func (l *line) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.said = append(l.said, b[:min(len(b), maxSaid-len(l.said))]...)
	return len(b), nil
}

// explain adds to err what was said.
func (l *line) explain(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if text := strings.TrimSpace(string(l.said)); text != "" {
		err = fmt.Errorf("%w; the container says: %s", err, redact.Visible(text))
	}
	return err
}

// close ends the connection, and with it the session.
func (l *line) close() error {
	err := l.conn.Close()
	if l.host != nil {
		err = l.host.Close()
	}
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// hold starts the container that holds the network, and makes the gateway behind
// it.
func (g *guest) hold(ctx context.Context) error {
	n := g.plan.Gateway
	if n == nil {
		return nil
	}
	if os.Geteuid() != 0 {
		return errors.New(rootsNetwork)
	}
	text, _ := os.ReadFile(resolvTarget) // without it the servers alone remain
	if err := g.place.resolv(n.Servers(string(text))); err != nil {
		return err
	}
	var err error
	if g.holder, err = g.helperGuest(ctx, g.plan.Holder, inside.Setup{}); err != nil {
		return fmt.Errorf("start the container that holds the session's network: %w", err)
	}
	pid := g.holder.pid
	step := func(f func() error) {
		if err == nil {
			_, err = enter(pid, func() ([]*os.File, error) { return nil, f() })
		}
	}
	step(native.BringUpLoopback) // nothing where the namespace is our own
	if err == nil {
		g.joined, err = n.Join(pid)
	}
	step(n.UpGuest)
	if err != nil {
		return fmt.Errorf("make the session's network: %w", err)
	}
	g.carry = native.GuestNetwork(&n.Network, g.joined.Files)
	return nil
}

const rootsNetwork = "to lead the network of a container of gVisor's to the relay takes root"

// Patience with files that somebody changes while they are compared.
const lookTries = 5

// seen wants the guest to have what was planned, by what a command of ours in it
// says. Nobody on the host can look into gVisor.
func (g *guest) seen() error {
	var planned []native.Mount
	var q inside.Question
	for _, m := range slices.Concat(g.plan.Inside.Mounts, g.plan.pins) {
		if m.ID != (native.Identity{}) {
			planned, q.Paths = append(planned, m), append(q.Paths, m.Target)
		}
	}
	var err error
	for range lookTries {
		var before, after []inside.Stamp
		if before, err = stamps(planned); err != nil {
			return err
		}
		s, lerr := g.look(q)
		if lerr != nil {
			return lerr
		}
		if after, err = stamps(planned); err != nil {
			return err
		}
		if err = g.agree(s.Status, g.plan.Inside.UID.Inside, g.plan.Inside.GID.Inside); err != nil {
			return err
		}
		if err = compare(planned, before, s.Stamps); err == nil {
			return nil
		}
		if slices.Equal(before, after) {
			return err
		}
	}
	return err
}

// stamps are those of planned places on the host, which must be what they were.
func stamps(planned []native.Mount) ([]inside.Stamp, error) {
	var list []inside.Stamp
	for _, m := range planned {
		f, err := sealed.Reach(m.Source) // which private git directories take
		if err != nil {
			return nil, replaced(m)
		}
		var st syscall.Stat_t
		err = syscall.Fstat(int(f.Fd()), &st)
		f.Close()
		if err != nil || (native.Identity{Dev: st.Dev, Ino: st.Ino}) != m.ID {
			return nil, replaced(m)
		}
		list = append(list, inside.StampFrom(&st))
	}
	return list, nil
}

// compare wants the same stamps.
func compare(planned []native.Mount, want, got []inside.Stamp) error {
	if len(got) != len(want) {
		return fmt.Errorf("the container's first process tells of %d places; want %d", len(got), len(want))
	}
	for i, m := range planned {
		if got[i] != want[i] {
			return replaced(m)
		}
	}
	return nil
}

// lookTime bounds how long an answer from inside takes.
const lookTime = 10 * time.Second

// look has a command of our own answer a question.
func (g *guest) look(q inside.Question) (s inside.Sight, err error) {
	text, err := json.Marshal(q)
	if err != nil {
		return s, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return s, err
	}
	defer r.Close()
	_, err = g.Exec(sandbox.Command{Argv: []string{programPlace, inside.Argument, inside.LookArgument, string(text)}, Stdio: [3]*os.File{nil, w, nil}})
	w.Close()
	if err != nil {
		return s, err
	}
	if err := r.SetReadDeadline(time.Now().Add(lookTime)); err != nil {
		return s, err
	}
	if err := json.NewDecoder(io.LimitReader(r, maxRecord)).Decode(&s); err != nil {
		return s, fmt.Errorf("look at the container from inside: %w", err)
	}
	return s, nil
}

// OpenTerminal opens a terminal of the guest's own, or one that stands for it.
func (g *guest) OpenTerminal() (master, slave *os.File, err error) {
	if g.line != nil {
		return g.line.host.OpenTerminal()
	}
	return g.Guest.OpenTerminal()
}

// ownPorts are those of the guest's loopback that lead out of it.
func (g *guest) ownPorts() (list []uint16) {
	if g.plan.Remote != nil {
		return g.plan.Remote.dialled()
	}
	n := g.plan.Inside.Network
	if gw := g.plan.Gateway; gw != nil {
		n = &gw.Network
	}
	if n == nil {
		return nil
	}
	return append([]uint16{53, n.Listen, n.DNS, n.Proxy}, n.HostPorts...)
}

// sentryMemoryMB is enough for gVisor to start in.
const sentryMemoryMB = 256

// sentryTrial looks at a container of gVisor's from inside: what may reach its
// workspace from there, where place is, and what may not.
func (g *guest) sentryTrial(f *probed, place *place) error {
	const made = "made"
	at := g.plan.layout.guest
	s, err := g.look(inside.Question{Connect: at + "/" + controlName, Create: at + "/" + made})
	if err != nil {
		return err
	}
	if s.Connect == 0 {
		f.Open = "the engine's runtime lets guests connect to sockets of the host (its argument --host-uds)"
	}
	err = os.Remove(place.at(controlEntry + "/" + made))
	if s.Create != 0 {
		err = s.Create
	}
	if err != nil {
		return fmt.Errorf("what a guest writes does not arrive in its workspace (has the engine's runtime the argument --overlay2?): %w", err)
	}
	return nil
}
