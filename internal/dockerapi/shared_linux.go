package dockerapi

import (
	"context"
	"net"
	"os"

	"github.com/bawn-dev/bawn/internal/sandbox"
)

// Shared is the Network for a guest that runs in a container itself: the containers that
// it makes share its network.
type Shared struct {
	Container string // the engine's ID
	Guest     interface {
		sandbox.Guest
		sandbox.Loopback
	}
}

var _ Network = Shared{}

// Mode returns the network mode that joins the guest's container.
func (s Shared) Mode(context.Context, string) (string, error) {
	return "container:" + s.Container, nil
}

// Dial connects to a TCP port of the loopback that the guest and its containers share.
func (s Shared) Dial(port uint16) (*os.File, error) { return s.Guest.Dial(port) }

// Listen listens on a TCP port of that loopback.
func (s Shared) Listen(port uint16) (*net.TCPListener, error) { return listenAt(s.Guest, port) }
