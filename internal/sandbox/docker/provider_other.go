//go:build !linux

package docker

import (
	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// Provider has a container engine of this machine's kernel make sandboxes;
// elsewhere it refuses: there an engine runs in a virtual machine, into which
// no socket of the session's leads.
type Provider struct{}

// New returns a provider that refuses.
func New(Options, Setting) *Provider { return &Provider{} }

// Name returns "docker".
func (*Provider) Name() string { return Name }

// Capabilities says of every attribute that it is not enforced, and why.
func (*Provider) Capabilities() []bawn.Capability {
	return nothing("the engine's containers are in a virtual machine, which the session's sockets do not reach", "run bawn on Linux, in that machine or elsewhere")
}

// Plan returns sandbox.ErrUnsupported.
func (*Provider) Plan(sandbox.Request) (sandbox.Plan, error) { return nil, sandbox.ErrUnsupported }

// Start returns sandbox.ErrUnsupported.
func (*Provider) Start(sandbox.Plan, func(sandbox.Denial)) (sandbox.Guest, error) {
	return nil, sandbox.ErrUnsupported
}
