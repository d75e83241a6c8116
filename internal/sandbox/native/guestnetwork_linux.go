package native

import (
	"fmt"
	"os"

	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/kernel"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

var (
	_ sandbox.Loopback = (*guest)(nil)
	_ sandbox.Visible  = (*guest)(nil)
)

// View opens the guest's root. Where nothing but Landlock hides files, that is
// the host's, and there is no view.
func (g *guest) View() (*os.File, error) {
	if g.plan.Rung == layout.RungLandlock {
		return nil, fmt.Errorf("a guest that sees the host's own files has no view of its own: %w", sandbox.ErrUnsupported)
	}
	return kernel.Copy(g.init.Ready()[0])
}

// Listen makes a socket that listens at a port of the guest's loopback.
func (g *guest) Listen(port uint16) (*os.File, error) {
	if !g.plan.Loopback {
		return nil, fmt.Errorf("a guest without a network of its own has no port %d: %w", port, sandbox.ErrUnsupported)
	}
	return kernel.Listen(g.plan.Network, port, g.init.Socket)
}

// Network returns the sockets that carry the guest's network, or nil.
func (g *guest) Network() *sandbox.GuestNetwork { return g.network }

// Dial connects to a port of the guest's loopback. The guest has no part in
// it: its first process makes the socket when this process says so, and this
// process connects it.
func (g *guest) Dial(port uint16) (*os.File, error) {
	if !g.plan.Loopback {
		return nil, fmt.Errorf("a guest without a network of its own has no port %d: %w", port, sandbox.ErrUnsupported)
	}
	return kernel.Dial(g.plan.Network, port, g.init.Socket)
}
