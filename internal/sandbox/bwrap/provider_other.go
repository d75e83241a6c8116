//go:build !linux

package bwrap

import (
	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// Provider needs Linux; elsewhere it refuses.
type Provider struct{}

// New returns a provider that refuses.
func New(_, _ string) *Provider { return &Provider{} }

// Name returns "bwrap".
func (*Provider) Name() string { return Name }

// Capabilities says of every attribute that nothing is enforced here.
func (*Provider) Capabilities() []bawn.Capability {
	return none("bubblewrap exists on Linux only", "use another provider")
}

// Plan returns sandbox.ErrUnsupported.
func (*Provider) Plan(sandbox.Request) (sandbox.Plan, error) { return nil, sandbox.ErrUnsupported }

// Start returns sandbox.ErrUnsupported.
func (*Provider) Start(sandbox.Plan, func(sandbox.Denial)) (sandbox.Guest, error) {
	return nil, sandbox.ErrUnsupported
}
