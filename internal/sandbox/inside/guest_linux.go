package inside

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/executor"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/kernel"
	"github.com/bawn-dev/bawn/internal/ticket"
)

// Bounds of one command's start.
const (
	startPatience = 30 * time.Second // until it runs
	ticketLife    = time.Minute      // longer than that
)

// A Guest is the host's end of a sandbox's first process. It does what
// sandbox.Guest says, but for Hits; a provider embeds it, and adds to Close what
// its engine has to be told. It may be used from several goroutines.
type Guest struct {
	// Root is an O_PATH of the sandbox's "/", and Listener that of its filter, and
	// Mounts its mount namespace; each is nil where the setup asks for none. They
	// are whose who takes them first (native.Supervise, which closes them), and
	// Close closes the others.
	Root, Listener, Mounts *os.File
	// Ready says what keeps commands from the executor.
	Ready executor.Ready

	setup   Setup
	client  *executor.Client // nil before the executor was reached
	issuer  *ticket.Issuer
	network *sandbox.GuestNetwork
	once    sync.Once
	closed  error
}

func newGuest(s Setup) *Guest { return &Guest{setup: s} }

// Exec starts a command, with a ticket of its own. It errs with a
// *sandbox.NotFoundError where the program can't be executed, and with
// executor.ErrGone once the sandbox has ended.
func (g *Guest) Exec(c sandbox.Command) (sandbox.Process, error) {
	if c.Env == nil {
		c.Env = g.setup.Environ
	}
	if c.Dir == "" {
		c.Dir = g.setup.Dir
	}
	if len(c.Argv) == 0 || c.Argv[0] == "" {
		return nil, &sandbox.NotFoundError{Name: `""`, Err: unix.ENOENT, Absent: true}
	}
	d, err := g.permitted(c)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startPatience)
	defer cancel()
	p, err := g.client.Do(ctx, d, c.Stdio)
	var failed *executor.StartError
	if errors.As(err, &failed) {
		return nil, g.notFound(c, failed.Errno)
	}
	if err != nil {
		return nil, fmt.Errorf("start %q in the sandbox: %w", c.Argv[0], err)
	}
	return g.follow(p, c.Last), nil
}

// permitted is c with a ticket.
func (g *Guest) permitted(c sandbox.Command) (executor.Do, error) {
	d := executor.Do{Argv: c.Argv, Env: unique(c.Env), Dir: g.real(c.Dir)}
	for i, f := range c.Stdio {
		d.Stdio[i] = f != nil
		if f != nil && f == c.Terminal && !d.Terminal {
			d.Terminal, d.Control, d.Led, d.Behind = true, i, !g.setup.Stream, !c.Foreground
		}
	}
	if c.Terminal != nil && !d.Terminal {
		return d, errors.New("BUG(bawn): a command's terminal is not among its descriptors 0 to 2")
	}
	digest, err := d.Digest(g.setup.Session, g.setup.Plan)
	if err == nil {
		d.Ticket, err = g.issuer.Issue(g.setup.Session, digest, ticketLife)
	}
	if err != nil {
		return d, fmt.Errorf("start %q in the sandbox: %w", c.Argv[0], err)
	}
	return d, nil
}

// unique is env with each variable once, with the value that was set last, and
// without what is no variable. Programs disagree on which of several counts, and
// no ticket covers that.
func unique(env []string) []string {
	at := make(map[string]int, len(env))
	list := make([]string, 0, len(env))
	for _, kv := range env {
		name, _, ok := strings.Cut(kv, "=")
		if !ok || name == "" {
			continue
		}
		if i, twice := at[name]; twice {
			list[i] = kv
			continue
		}
		at[name] = len(list)
		list = append(list, kv)
	}
	return list
}

// real is dir without symbolic links, which the executor wants, if the sandbox
// has it. The executor looks again.
func (g *Guest) real(dir string) string {
	dir = path.Clean(dir)
	if g.Root == nil {
		return dir
	}
	raw, err := g.Root.SyscallConn()
	if err != nil {
		return dir
	}
	_ = raw.Control(func(root uintptr) { // fails once it is closed
		how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_DIRECTORY, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
		fd, err := unix.Openat2(int(root), dir, &how)
		if err != nil {
			return
		}
		defer unix.Close(fd)
		if p, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd)); err == nil && path.IsAbs(p) {
			dir = p
		}
	})
	return dir
}

// notFound says why c could not be executed.
func (g *Guest) notFound(c sandbox.Command, errno syscall.Errno) error {
	if g.setup.NotFound != nil {
		return g.setup.NotFound(c, errno)
	}
	return &sandbox.NotFoundError{Name: c.Argv[0], Err: errno, Absent: errno == unix.ENOENT || errno == unix.ENOTDIR}
}

// OpenTerminal opens a pseudo-terminal of the sandbox's own /dev/pts. It errs
// with sandbox.ErrUnsupported where its root was not handed out.
func (g *Guest) OpenTerminal() (master, slave *os.File, err error) {
	if g.Root == nil {
		return nil, nil, fmt.Errorf("open a terminal in the sandbox: %w", sandbox.ErrUnsupported)
	}
	return kernel.OpenTerminal(g.Root)
}

// Network returns the sockets that carry the guest's network, or nil.
func (g *Guest) Network() *sandbox.GuestNetwork { return g.network }

// Dial connects to a port of the sandbox's loopback. Nobody enters the sandbox
// for that: the executor makes the socket, and this process connects it.
func (g *Guest) Dial(port uint16) (*os.File, error) {
	if !g.setup.Ports || g.setup.Stream {
		return nil, fmt.Errorf("a guest without a network of its own has no port %d: %w", port, sandbox.ErrUnsupported)
	}
	return kernel.Dial(g.setup.Network, port, g.client.Socket)
}

// Listen makes a socket that listens at a port of the sandbox's loopback, as
// sandbox.Loopback says.
func (g *Guest) Listen(port uint16) (*os.File, error) {
	if !g.setup.Ports || g.setup.Stream {
		return nil, fmt.Errorf("a guest without a network of its own has no port %d: %w", port, sandbox.ErrUnsupported)
	}
	return kernel.Listen(g.setup.Network, port, g.client.Socket)
}

// View opens the sandbox's root, as sandbox.Visible says.
func (g *Guest) View() (*os.File, error) { return kernel.Copy(g.Root) }

// Done is closed when the first process has ended, and everything it started.
func (g *Guest) Done() <-chan struct{} { return g.client.Done() }

// End has the first process kill everything and end, and does not wait for it.
func (g *Guest) End() { _ = g.client.End() } // it fails if no process is left

// Close ends the first process and everything it has started, waits for that at
// most 5 s, and closes every file that was handed out. It may be called more than
// once.
func (g *Guest) Close() error {
	g.once.Do(func() {
		if g.client != nil {
			g.closed = g.client.Close()
			g.issuer.Close()
		}
		if g.network != nil {
			g.closed = errors.Join(g.closed, g.network.Close())
		}
		for _, f := range []*os.File{g.Root, g.Listener, g.Mounts} {
			if f != nil {
				f.Close() // its taker may have closed it
			}
		}
	})
	return g.closed
}
