//go:build !linux

package gvisor

import (
	"os"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// Options are what the provider is made of.
type Options struct {
	Runsc, Path, Cache, Native, Program string

	Unprotected bool
	Patience    time.Duration
}

// Provider can't work here: gVisor runs on Linux.
type Provider struct{}

// New returns a provider that can enforce nothing.
func New(Options) *Provider { return &Provider{} }

// Name returns "gvisor".
func (*Provider) Name() string { return Name }

// Capabilities is empty.
func (*Provider) Capabilities() []bawn.Capability {
	f := finding{Why: "gVisor runs on Linux only", Remedy: "use provider \"native\""}
	return f.capabilities(false)
}

// Plan returns sandbox.ErrUnsupported.
func (*Provider) Plan(sandbox.Request) (sandbox.Plan, error) { return nil, sandbox.ErrUnsupported }

// Start returns sandbox.ErrUnsupported.
func (*Provider) Start(sandbox.Plan, func(sandbox.Denial)) (sandbox.Guest, error) {
	return nil, sandbox.ErrUnsupported
}

// Main can't work here. It closes control and returns 1.
func Main(control *os.File) int {
	control.Close()
	return 1
}
