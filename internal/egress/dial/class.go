package dial

import (
	"encoding/binary"
	"net/netip"
)

// A block is a range of addresses that is not the public Internet.
type block struct {
	prefix netip.Prefix
	class  string
}

// blocks are IANA's special-purpose registries for IPv4 and IPv6 (RFC 6890 and
// later registrations), multicast, and the services for virtual machines,
// narrow before wide. IPv6 addresses outside of global unicast (2000::/3) are
// reserved.
var blocks = []block{
	// Services that hand credentials or control to a virtual machine.
	{netip.MustParsePrefix("169.254.169.254/32"), "cloud metadata"},
	{netip.MustParsePrefix("169.254.170.2/32"), "cloud metadata"},   // credentials of containers
	{netip.MustParsePrefix("169.254.170.23/32"), "cloud metadata"},  // the same in Kubernetes
	{netip.MustParsePrefix("100.100.100.200/32"), "cloud metadata"}, // Alibaba
	{netip.MustParsePrefix("192.0.0.192/32"), "cloud metadata"},     // Oracle, old
	{netip.MustParsePrefix("168.63.129.16/32"), "cloud metadata"},   // Azure's agent, at a public address
	{netip.MustParsePrefix("fd00:ec2::/32"), "cloud metadata"},      // Amazon
	{netip.MustParsePrefix("fd20:ce::254/128"), "cloud metadata"},   // Google
	{netip.MustParsePrefix("fd00:c1::a9fe:a9fe/128"), "cloud metadata"},
	{netip.MustParsePrefix("fd00:42::42/128"), "cloud metadata"},

	{netip.MustParsePrefix("0.0.0.0/32"), "unspecified"},
	{netip.MustParsePrefix("0.0.0.0/8"), "this network"},
	{netip.MustParsePrefix("10.0.0.0/8"), "private"},
	{netip.MustParsePrefix("100.64.0.0/10"), "carrier-grade NAT"},
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback"},
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local"},
	{netip.MustParsePrefix("172.16.0.0/12"), "private"},
	{netip.MustParsePrefix("192.0.0.0/24"), "protocol assignments"},
	{netip.MustParsePrefix("192.0.2.0/24"), "documentation"},
	{netip.MustParsePrefix("192.31.196.0/24"), "AS112 sink"},
	{netip.MustParsePrefix("192.52.193.0/24"), "multicast relay"},
	{netip.MustParsePrefix("192.88.99.0/24"), "6to4 relay"},
	{netip.MustParsePrefix("192.168.0.0/16"), "private"},
	{netip.MustParsePrefix("192.175.48.0/24"), "AS112 sink"},
	{netip.MustParsePrefix("198.18.0.0/15"), "benchmarking"},
	{netip.MustParsePrefix("198.51.100.0/24"), "documentation"},
	{netip.MustParsePrefix("203.0.113.0/24"), "documentation"},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast"},
	{netip.MustParsePrefix("255.255.255.255/32"), "broadcast"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved"},

	{netip.MustParsePrefix("::/128"), "unspecified"},
	{netip.MustParsePrefix("::1/128"), "loopback"},
	{netip.MustParsePrefix("::/96"), "IPv4-compatible"},
	{netip.MustParsePrefix("::ffff:0:0:0/96"), "IPv4-translated"},
	{netip.MustParsePrefix("64:ff9b:1::/48"), "IPv4-translated"},
	{netip.MustParsePrefix("100::/64"), "discard"},
	{netip.MustParsePrefix("100:0:0:1::/64"), "discard"},
	{netip.MustParsePrefix("2001::/32"), "Teredo"},
	{netip.MustParsePrefix("2001:2::/48"), "benchmarking"},
	{netip.MustParsePrefix("2001:db8::/32"), "documentation"},
	{netip.MustParsePrefix("2001::/23"), "protocol assignments"},
	{netip.MustParsePrefix("2002::/16"), "6to4"},
	{netip.MustParsePrefix("2620:4f:8000::/48"), "AS112 sink"},
	{netip.MustParsePrefix("3fff::/20"), "documentation"},
	{netip.MustParsePrefix("5f00::/16"), "segment routing"},
	{netip.MustParsePrefix("fc00::/7"), "private"},
	{netip.MustParsePrefix("fe80::/10"), "link-local"},
	{netip.MustParsePrefix("fec0::/10"), "site-local"},
	{netip.MustParsePrefix("ff00::/8"), "multicast"},
}

var (
	// nat64 is the prefix by which an IPv6-only network writes public IPv4
	// addresses (RFC 6052). Prefixes that a network chose itself can't be
	// known.
	nat64  = netip.MustParsePrefix("64:ff9b::/96")
	global = netip.MustParsePrefix("2000::/3")
)

// Class returns the class of an address that is not a host on the public
// Internet ("loopback", "private", "cloud metadata" …), or "". An IPv4 address
// inside an IPv6 address (::ffff:0:0/96, 64:ff9b::/96) is judged as itself.
// Other tunnels and translators to IPv4 have a class of their own. The invalid
// address is "no address".
func Class(a netip.Addr) string {
	if !a.IsValid() {
		return "no address"
	}
	a = embedded(a.WithZone("").Unmap())
	for _, b := range blocks {
		if b.prefix.Contains(a) {
			return b.class
		}
	}
	if a.Is6() && !global.Contains(a) {
		return "reserved"
	}
	return ""
}

// embedded returns the IPv4 address that a translator would dial for a.
func embedded(a netip.Addr) netip.Addr {
	if !nat64.Contains(a) {
		return a
	}
	b := a.As16()
	var v4 [4]byte
	binary.BigEndian.PutUint32(v4[:], binary.BigEndian.Uint32(b[12:]))
	return netip.AddrFrom4(v4)
}
