package layout

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// A Network connects a guest that reaches other machines by name. Its network
// namespace has no device but loopback. There every address is local, every TCP
// connection ends at one of our listeners, every DNS query at our resolver, and
// everything else is refused at once.
type Network struct {
	Listen    uint16         `json:"listener_port"` // TCP to other machines
	DNS       uint16         `json:"dns_port"`      // TCP and UDP to port 53
	Proxy     uint16         `json:"proxy_port"`    // for programs that insist on one
	HostPorts []uint16       `json:"host_ports,omitempty"`
	Own       []netip.Addr   `json:"own_addresses"` // IPv4, and IPv6 where there is one
	Names     []netip.Prefix `json:"name_pools"`    // from which the resolver answers
}

// Our ports inside: above those that a fresh namespace gives to sockets
// without a port (32768 to 60999, ip(7)), where no server has its own.
const (
	PortListen = 61001
	PortDNS    = 61053
	PortProxy  = 61128
)

// Own4 and Own6 are the guest's own addresses. With loopback alone getaddrinfo(3) with
// AI_ADDRCONFIG would find no name of either family. 192.0.0.8 is a source and never a
// destination (RFC 7600); the other is a unique local address (RFC 4193) beside the pool
// of names.
var Own4, Own6 = netip.AddrFrom4([4]byte{192, 0, 0, 8}), netip.MustParseAddr("fd62:6177:6e00:1::1")

// Addresses that the resolver gives to names: those for benchmarks (RFC 2544),
// which no network uses, and unique local ones.
var pool4, pool6 = netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("fd62:6177:6e00::/64")

// ownNetwork reports whether the session has a network namespace.
func ownNetwork(iso bawn.Isolation) bool { return iso.Network != bawn.NetworkFull }

// maxHostPorts bounds the rules that opened ports of the host take.
const maxHostPorts = 256

// network plans the network of a guest that reaches others by name.
func (b *builder) network() (*Network, error) {
	if b.iso.Network != bawn.NetworkAllowlist {
		return nil, nil
	}
	if !b.req.Relay {
		return nil, &sandbox.MismatchError{Provider: NativeName, Unmet: []bawn.Capability{{
			Attribute: sandbox.NetAllow, Why: "nothing serves the guest's network", Remedy: "use --net none or --net full",
		}}}
	}
	n := NewNetwork(b.facts.IPv6)
	n.HostPorts = slices.Clone(b.req.HostPorts)
	slices.SortFunc(n.HostPorts, cmp.Compare)
	n.HostPorts = slices.Compact(n.HostPorts)
	if len(n.HostPorts) > maxHostPorts {
		return nil, fmt.Errorf("%d ports of the host are to be opened; want at most %d", len(n.HostPorts), maxHostPorts)
	}
	for _, p := range n.HostPorts {
		if p == 0 || n.Ours(p) {
			return nil, fmt.Errorf("port %d of the host can't be opened to the guest: the session uses that number itself", p)
		}
	}
	return n, nil
}

// NewNetwork is the network of a guest to which no port of the host is open.
func NewNetwork(ipv6 bool) *Network {
	n := &Network{Listen: PortListen, DNS: PortDNS, Proxy: PortProxy, Own: []netip.Addr{Own4}, Names: []netip.Prefix{pool4}}
	if ipv6 {
		n.Own, n.Names = append(n.Own, Own6), append(n.Names, pool6)
	}
	return n
}

// Ours reports whether a port of loopback does not belong to the guest: 53 is
// the resolver's at every address.
func (n *Network) Ours(p uint16) bool {
	return p == n.Listen || p == n.DNS || p == n.Proxy || p == 53
}
