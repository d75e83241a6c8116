package kernel

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/linux/netlink"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// loIndex is the number of the loopback device in every namespace.
const loIndex = 1

// backlog is how many connections may wait for the relay. The kernel caps it
// at net.core.somaxconn, which is 4096 in a fresh namespace.
const backlog = 4096

// NetworkStep begins the names of steps that a kernel may lack a part for.
const NetworkStep = "network: "

// Network sets up what the plan says, while the child may: lo is up.
func (c *Steps) Network(n *layout.Network) {
	c.netlink(unix.NETLINK_ROUTE, routes(n))
	c.netlink(unix.NETLINK_NETFILTER, ruleset(n))
	for _, e := range ends(n) {
		c.listen(e.at, e.kind)
	}
}

// routes give the namespace its addresses and make every other one local.
func routes(n *layout.Network) []netlink.Message {
	var list []netlink.Message
	for _, a := range n.Own {
		list = append(list, netlink.AddAddress(loIndex, a), netlink.AddLocalRoute(loIndex, a))
	}
	return list
}

// An end is where one of our sockets is bound, and its type (socket(2)).
type end struct {
	at   netip.AddrPort
	kind int
}

// ends are all of them, in the order of sandbox.GuestNetwork.
func ends(n *layout.Network) []end {
	var list []end
	for _, kind := range []struct{ port, kind int }{
		{int(n.Listen), unix.SOCK_STREAM}, {int(n.DNS), unix.SOCK_DGRAM}, {int(n.DNS), unix.SOCK_STREAM}, {int(n.Proxy), unix.SOCK_STREAM},
	} {
		for _, a := range n.Own {
			list = append(list, end{netip.AddrPortFrom(loopback(a).addr, uint16(kind.port)), kind.kind})
		}
	}
	return list
}

// netlink sends messages as one datagram and wants each to be answered well.
func (c *Steps) netlink(protocol int, list []netlink.Message) {
	fd := c.FD
	c.Call(NetworkStep+"open a netlink socket", unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, protocol).Into(fd)
	data := netlink.Encode(list)
	c.Call("send netlink messages", unix.SYS_SENDTO, fd, data, len(data), 0, 0, 0)
	for _, m := range list {
		if m.Acknowledged() {
			c.ExpectAnswer(NetworkStep+m.Name, fd)
		}
	}
	c.Call("close the netlink socket", unix.SYS_CLOSE, fd)
}

// ruleset is the packet filter. Rules that redirect see the first packet of
// each connection.
func ruleset(n *layout.Network) []netlink.Message {
	t := netlink.NewTable("bawn")
	nat := t.Output("redirect", "nat", netlink.PriorityNAT, false)
	nat.Rule("lead DNS datagrams to the resolver", netlink.Protocol(unix.IPPROTO_UDP), netlink.Port(53), netlink.Redirect(n.DNS))
	nat.Rule("lead DNS connections to the resolver", netlink.Protocol(unix.IPPROTO_TCP), netlink.Port(53), netlink.Redirect(n.DNS))
	for _, p := range n.HostPorts {
		for _, a := range n.Own {
			lo := loopback(a).addr
			nat.Rule(fmt.Sprintf("lead %v to the relay", netip.AddrPortFrom(lo, p)),
				netlink.To(netip.PrefixFrom(lo, lo.BitLen())), netlink.Protocol(unix.IPPROTO_TCP), netlink.Port(p), netlink.Redirect(n.Listen))
		}
	}
	for _, p := range loopbacks(n) {
		nat.Rule("leave "+p.String()+" alone", netlink.To(p), netlink.Accept())
	}
	nat.Rule("lead TCP to the relay", netlink.Protocol(unix.IPPROTO_TCP), netlink.Redirect(n.Listen))
	filter := t.Output("refuse", "filter", netlink.PriorityFilter, true)
	for _, p := range loopbacks(n) {
		filter.Rule("allow "+p.String(), netlink.To(p), netlink.Accept())
	}
	// Answers to sockets that are bound to some other address.
	filter.Rule("allow answers", netlink.Established(), netlink.Accept())
	filter.Rule("refuse the rest", netlink.Reject())
	return t.Messages()
}

// loopbacks are the addresses that stay inside: of each family the loopback
// network and the guest's own.
func loopbacks(n *layout.Network) []netip.Prefix {
	var list []netip.Prefix
	for _, a := range n.Own {
		list = append(list, loopback(a).network, netip.PrefixFrom(a, a.BitLen()))
	}
	return list
}

// local is the loopback of a family.
type local struct {
	addr    netip.Addr
	network netip.Prefix
}

// loopback is the one of a's family.
func loopback(a netip.Addr) local {
	if a.Is4() {
		lo := netip.AddrFrom4([4]byte{127, 0, 0, 1})
		return local{lo, netip.PrefixFrom(lo, 8).Masked()}
	}
	return local{netip.IPv6Loopback(), netip.PrefixFrom(netip.IPv6Loopback(), 128)}
}

// listen makes a socket that is handed to the parent.
func (c *Steps) listen(at netip.AddrPort, kind int) {
	family, addr := sockaddrOf(at)
	sock := c.NewSlot()
	c.Sockets = append(c.Sockets, sock)
	c.Call("open a socket for "+at.String(), unix.SYS_SOCKET, family, kind|unix.SOCK_CLOEXEC, 0).Into(sock)
	one := binary.NativeEndian.AppendUint32(nil, 1)
	if kind == unix.SOCK_DGRAM {
		// This comes before the first query arrives: for an earlier one it
		// would be unknown from which address to answer.
		level, option := unix.IPPROTO_IP, unix.IP_PKTINFO
		if family == unix.AF_INET6 {
			level, option = unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO
		}
		c.Call("have destinations told at "+at.String(), unix.SYS_SETSOCKOPT, sock, level, option, one, len(one))
	}
	if family == unix.AF_INET6 {
		c.Call("keep IPv4 apart", unix.SYS_SETSOCKOPT, sock, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, one, len(one))
	}
	c.Call("bind "+at.String(), unix.SYS_BIND, sock, addr, len(addr))
	if kind == unix.SOCK_STREAM {
		c.Call("listen at "+at.String(), unix.SYS_LISTEN, sock, backlog)
	}
}

// sockaddrOf is the address as the kernel takes it (ip(7), ipv6(7)).
func sockaddrOf(at netip.AddrPort) (family int, addr []byte) {
	family = unix.AF_INET
	if !at.Addr().Is4() {
		family = unix.AF_INET6
	}
	addr = binary.NativeEndian.AppendUint16(nil, uint16(family))
	addr = binary.BigEndian.AppendUint16(addr, at.Port())
	if family == unix.AF_INET {
		return family, append(append(addr, at.Addr().AsSlice()...), make([]byte, 8)...)
	}
	addr = append(addr, 0, 0, 0, 0) // flow
	return family, append(append(addr, at.Addr().AsSlice()...), 0, 0, 0, 0)
}

// GuestNetwork sorts the sockets that MakeNetwork, or a child that did the
// same, handed back. It is nil where n is.
func GuestNetwork(n *layout.Network, files []*os.File) *sandbox.GuestNetwork {
	if n == nil {
		return nil
	}
	k := len(n.Own)
	return &sandbox.GuestNetwork{
		Connect: files[:k:k], DNS: files[k : 2*k : 2*k], DNSStream: files[2*k : 3*k : 3*k], Proxy: files[3*k : 4*k : 4*k], ProxyPort: n.Proxy,
	}
}
