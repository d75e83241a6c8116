//go:build !linux

package host

import (
	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// Provider runs a guest without isolation; on this system it refuses.
type Provider struct{}

// New returns a provider that refuses.
func New() *Provider { return &Provider{} }

// Capabilities returns nothing that is enforced.
func (*Provider) Capabilities() []bawn.Capability { return unenforced() }

// Plan makes a plan, which can be shown.
func (*Provider) Plan(req sandbox.Request) (sandbox.Plan, error) { return plan(req, unenforced()), nil }

// Start returns sandbox.ErrUnsupported.
func (*Provider) Start(sandbox.Plan, func(sandbox.Denial)) (sandbox.Guest, error) {
	return nil, sandbox.ErrUnsupported
}
