package gvisor

import (
	"fmt"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// A Plan is all that Start will do, as a value. Its JSON form is printed by
// --plan and compared in golden tests.
type Plan struct {
	Layout   *layout.Plan      `json:"layout"` // what the guest sees, and with which environment
	Network  string            `json:"network"`
	Gateway  *Gateway          `json:"gateway,omitempty"`
	Resolver *Resolver         `json:"resolver,omitempty"`
	Runsc    []string          `json:"runsc"` // its flags
	Config   spec              `json:"config"`
	InPart   []bawn.Capability `json:"enforced_in_part,omitempty"`
}

// makePlan turns a request into a plan, by what is known of the machine.
func makePlan(req sandbox.Request, facts layout.Facts) (*Plan, error) {
	if len(req.Sockets) > 0 {
		return nil, fmt.Errorf("socket %q can't be shown to the guest: no socket of the host passes gVisor's border", req.Sockets[0])
	}
	facts.LandlockABI = 0 // gVisor's kernel has none
	req.GitPool = ""      // nothing is mounted later
	layout, err := layout.Layout(req, facts)
	if err != nil {
		return nil, err
	}
	layout.InPart, layout.Supervised, layout.Seccomp = nil, false, "guest"
	layout.Programs, layout.Holds = false, nil
	gateway := NewGateway(layout.Network)
	layout.Network = nil // the rest of it belongs to the gateway
	network := req.Session.Isolation.Network
	return &Plan{
		Layout: layout, Network: network.String(), Gateway: gateway, Resolver: newResolver(gateway, layout, facts),
		Runsc: flags(network), Config: newSpec(layout, gateway),
	}, nil
}

// Provider returns "gvisor".
func (*Plan) Provider() string { return Name }

// OnHost is the layout, by the host's paths.
func (p *Plan) OnHost() *layout.Plan { return p.Layout }

// Places says what the guest sees and writes of the host.
func (p *Plan) Places() []bawn.Mount { return p.Layout.Places() }

// Partly lists what is enforced in part.
func (p *Plan) Partly() []bawn.Capability { return p.InPart }

// Environ is the guest's environment.
func (p *Plan) Environ() []string { return p.Layout.Environ() }

// flags are runsc's. The guest's files are shared with the host, whose programs
// change them meanwhile; sockets, pipes and devices of the host stay closed.
func flags(network bawn.NetworkMode) []string {
	mode, gofer := "none", "host" // the launcher's, which leads nowhere
	switch network {
	case bawn.NetworkFull:
		mode, gofer = "host", "new"
	case bawn.NetworkAllowlist:
		mode = "sandbox"
	}
	return []string{
		"--root=" + stateAt, "--platform=systrap", "--network=" + mode, "--gofer-network-namespace=" + gofer,
		"--file-access=shared", "--overlay2=none", "--host-uds=none", "--host-fifo=none", "--ignore-cgroups", "--host-settings=ignore",
	}
}

// below reports whether p lies strictly below dir; both are absolute and clean.
func below(p, dir string) bool {
	return p != dir && strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}
