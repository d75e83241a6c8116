package gvisor

import (
	"net/netip"
	"strconv"

	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// A Gateway connects a guest that reaches other machines by name. gVisor's
// network stack ends at a veth pair, whose other end lies in a namespace without
// any other device. There every address is local, every TCP connection ends at
// one of our listeners, every DNS query at our resolver, and everything else is
// refused at once.
type Gateway struct {
	layout.Network
	Addresses []netip.Addr `json:"gateway_addresses"` // its own, one for each of the guest's
}

// The gateway's own addresses, beside those of the guest (native.Network.Own).
var gateway4, gateway6 = netip.AddrFrom4([4]byte{192, 0, 0, 9}), netip.MustParseAddr("fd62:6177:6e00:1::2")

// NewGateway is the gateway for a layout's network; nil for nil.
func NewGateway(n *layout.Network) *Gateway {
	if n == nil {
		return nil
	}
	g := &Gateway{Network: *n}
	for _, a := range n.Own {
		if a.Is4() {
			g.Addresses = append(g.Addresses, gateway4)
		} else {
			g.Addresses = append(g.Addresses, gateway6)
		}
	}
	return g
}

// Forwards are the words for the guest's first process: ports of its loopback
// which it carries to the gateway.
func (g *Gateway) Forwards() []string {
	list := []string{g.Addresses[0].String(), strconv.Itoa(int(g.Proxy))}
	for _, p := range g.HostPorts {
		list = append(list, strconv.Itoa(int(p)))
	}
	return list
}
