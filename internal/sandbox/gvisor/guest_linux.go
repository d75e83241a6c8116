package gvisor

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/ipc"
	"github.com/bawn-dev/bawn/internal/linux/cgroup"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/inside"
	"github.com/bawn-dev/bawn/internal/sandbox/inside/stream"
	"github.com/bawn-dev/bawn/internal/sandbox/kernel"
)

// guest is a running sandbox.
type guest struct {
	*inside.Guest              // nil before the first process was reached
	Host          *stream.Host // the same
	plan          *Plan
	group         *cgroup.Group // or nil
	network       *sandbox.GuestNetwork
	conn          *ipc.Conn // to the launcher
	cmd           *exec.Cmd
	ended         chan struct{} // closed once the launcher was reaped

	mu    sync.Mutex
	last  string        // what runsc has said
	heard chan struct{} // closed when the launcher says no more
	once  sync.Once
	err   error
}

// listen hears what the launcher has to say from now on.
func (g *guest) listen() {
	defer close(g.heard)
	for {
		var r report
		files, err := g.conn.Receive(&r)
		closeAll(files)
		if err != nil {
			return
		}
		if r.Ended != nil {
			g.mu.Lock()
			g.last = r.Ended.Text
			g.mu.Unlock()
		}
	}
}

func (g *guest) text() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.last
}

// OpenTerminal opens a terminal that stands for one of the guest's own.
func (g *guest) OpenTerminal() (master, slave *os.File, err error) { return g.Host.OpenTerminal() }

// Network returns the sockets that carry the guest's network, or nil.
func (g *guest) Network() *sandbox.GuestNetwork { return g.network }

// Dial connects to a port of the guest's loopback: its first process does, and
// carries the bytes.
func (g *guest) Dial(port uint16) (*os.File, error) {
	if !g.plan.Layout.Loopback {
		return nil, fmt.Errorf("a guest without a network of its own has no port %d: %w", port, sandbox.ErrUnsupported)
	}
	if n := g.plan.Gateway; n != nil && (port == n.Proxy || slices.Contains(n.HostPorts, port)) {
		return nil, fmt.Errorf("port %d is not the guest's own: %w", port, unix.ECONNREFUSED)
	}
	return g.Host.Dial(port)
}

// Hits lists the limits that the guest ran into.
func (g *guest) Hits() []sandbox.Hit {
	hits := kernel.GroupHits(g.group, g.plan.Layout.Limits)
	for i := range hits {
		if hits[i].Rule == "limits:pids" {
			hits[i].Killed = true // gVisor ends where it can have no more threads
			hits[i].Reason = fmt.Sprintf("the session reached its limit of %d processes, with %d more that are left to gVisor's own threads, and gVisor can't go on", g.plan.Layout.Limits.PIDs, Overhead)
		}
	}
	return hits
}

// closeTime bounds how long the kernel may take to end the sandbox's processes.
const closeTime = 10 * time.Second

// Close ends the sandbox: with its first process the kernel ends all others. It
// may be called more than once.
func (g *guest) Close() error {
	g.once.Do(func() {
		if g.Guest != nil {
			g.Guest.End()
		}
		if g.cmd != nil && g.cmd.Process != nil {
			g.err = g.kill()
		}
		if g.conn != nil {
			g.err = errors.Join(g.err, g.conn.Close())
		}
		if g.Host != nil {
			g.err = errors.Join(g.err, g.Host.Close())
		}
		if g.Guest != nil {
			g.err = errors.Join(g.err, g.Guest.Close())
		}
		if g.network != nil {
			g.err = errors.Join(g.err, g.network.Close())
		}
		if g.group != nil {
			g.err = errors.Join(g.err, g.group.Remove())
			_, _ = cgroup.Sweep() // what killed ones have left; the next one tries again
		}
	})
	return g.err
}

// kill ends the launcher, and waits for it.
func (g *guest) kill() error {
	_ = g.cmd.Process.Kill() // it may have ended
	select {
	case <-g.ended:
		return nil
	case <-time.After(closeTime):
		return fmt.Errorf("the sandbox's first process %d does not end", g.cmd.Process.Pid)
	}
}
