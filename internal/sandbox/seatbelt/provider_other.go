//go:build !darwin

package seatbelt

import (
	"path/filepath"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// Provider makes plans; on this system it carries none out.
type Provider struct{}

// New returns a provider that plans only.
func New() *Provider { return &Provider{} }

// Name returns "seatbelt".
func (*Provider) Name() string { return Name }

// Capabilities says that nothing is enforced here.
func (*Provider) Capabilities() []bawn.Capability {
	return capabilities("Seatbelt is part of macOS", "use provider \"native\"")
}

// Plan makes a plan, which can be shown.
func (p *Provider) Plan(req sandbox.Request) (sandbox.Plan, error) {
	return Make(req, Facts{Real: filepath.Clean, Capabilities: p.Capabilities()})
}

// Start returns sandbox.ErrUnsupported.
func (*Provider) Start(sandbox.Plan, func(sandbox.Denial)) (sandbox.Guest, error) {
	return nil, sandbox.ErrUnsupported
}
