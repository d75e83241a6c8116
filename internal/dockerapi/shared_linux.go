package dockerapi

import (
	"context"
	"net"
	"os"

	"github.com/bawn-dev/bawn/internal/sandbox"
)

// Shared is the network of a guest that is a container itself: those that it
// makes join it.
type Shared struct {
	Container string // the engine's ID
	Guest     interface {
		sandbox.Guest
		sandbox.Loopback
	}
}

var _ Network = Shared{}

// Mode is that container's.
func (s Shared) Mode(context.Context, string) (string, error) {
	return "container:" + s.Container, nil
}

// Dial connects to a port of the guest's loopback, which is its containers'.
func (s Shared) Dial(port uint16) (*os.File, error) { return s.Guest.Dial(port) }

// Listen takes a port there.
func (s Shared) Listen(port uint16) (*net.TCPListener, error) { return listenAt(s.Guest, port) }
