//go:build !linux

package native

import (
	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// Provider is the sandbox made of Linux's own parts; elsewhere it refuses.
type Provider struct{}

// New returns a provider that refuses.
func New(string) *Provider { return &Provider{} }

// LandlockProvider refuses on systems without Landlock.
type LandlockProvider struct{ Provider }

// NewLandlock returns a provider that refuses.
func NewLandlock(string) *LandlockProvider { return &LandlockProvider{} }

// Name returns "landlock".
func (*LandlockProvider) Name() string { return layout.LandlockName }

// Name returns "native".
func (*Provider) Name() string { return layout.NativeName }

// Capabilities returns nothing: nothing is enforced here.
func (*Provider) Capabilities() []bawn.Capability { return nil }

// Plan returns sandbox.ErrUnsupported.
func (*Provider) Plan(sandbox.Request) (sandbox.Plan, error) { return nil, sandbox.ErrUnsupported }

// Start returns sandbox.ErrUnsupported.
func (*Provider) Start(sandbox.Plan, func(sandbox.Denial)) (sandbox.Guest, error) {
	return nil, sandbox.ErrUnsupported
}

// A Preforked can't exist on this system.
type Preforked struct{}

// Expect returns nil.
func Prefork() *Preforked { return nil }

// Abandon does nothing.
func (*Preforked) Abandon() {}

// Adopt does nothing.
func (*Provider) Adopt(*Preforked) {}
