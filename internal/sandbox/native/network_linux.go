package native

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/linux/netlink"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// loIndex is the number of the loopback device in every namespace.
const loIndex = 1

// backlog is how many connections may wait for the relay. The kernel caps it
// at net.core.somaxconn, which is 4096 in a fresh namespace.
const backlog = 4096

// networkStep begins the names of steps that a kernel may lack a part for.
const networkStep = "network: "

// network sets up what the plan says, while the child may: lo is up.
func (c *program) network(n *Network) {
	c.netlink(unix.NETLINK_ROUTE, n.routes())
	c.netlink(unix.NETLINK_NETFILTER, ruleset(n))
	for _, e := range n.ends() {
		c.listen(e.at, e.kind)
	}
}

// routes give the namespace its addresses and make every other one local.
func (n *Network) routes() []netlink.Message {
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
func (n *Network) ends() []end {
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
func (c *program) netlink(protocol int, list []netlink.Message) {
	fd := c.fd
	c.Call(networkStep+"open a netlink socket", unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, protocol).Into(fd)
	data := netlink.Encode(list)
	c.Call("send netlink messages", unix.SYS_SENDTO, fd, data, len(data), 0, 0, 0)
	for _, m := range list {
		if m.Acknowledged() {
			c.ExpectAnswer(networkStep+m.Name, fd)
		}
	}
	c.Call("close the netlink socket", unix.SYS_CLOSE, fd)
}

// ruleset is the packet filter. Rules that redirect see the first packet of
// each connection.
func ruleset(n *Network) []netlink.Message {
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
	for _, p := range n.loopbacks() {
		nat.Rule("leave "+p.String()+" alone", netlink.To(p), netlink.Accept())
	}
	nat.Rule("lead TCP to the relay", netlink.Protocol(unix.IPPROTO_TCP), netlink.Redirect(n.Listen))
	filter := t.Output("refuse", "filter", netlink.PriorityFilter, true)
	for _, p := range n.loopbacks() {
		filter.Rule("allow "+p.String(), netlink.To(p), netlink.Accept())
	}
	// Answers to sockets that are bound to some other address.
	filter.Rule("allow answers", netlink.Established(), netlink.Accept())
	filter.Rule("refuse the rest", netlink.Reject())
	return t.Messages()
}

// loopbacks are the addresses that stay inside: of each family the loopback
// network and the guest's own.
func (n *Network) loopbacks() []netip.Prefix {
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
func (c *program) listen(at netip.AddrPort, kind int) {
	family, addr := sockaddrOf(at)
	sock := c.NewSlot()
	c.sockets = append(c.sockets, sock)
	c.Call("open a socket for "+at.String(), unix.SYS_SOCKET, family, kind|unix.SOCK_CLOEXEC, 0).Into(sock)
	one := binary.NativeEndian.AppendUint32(nil, 1)
	if kind == unix.SOCK_DGRAM {
		// Before the first question arrives: of one that came earlier nobody
		// would know from which address its answer has to leave.
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
func GuestNetwork(n *Network, files []*os.File) *sandbox.GuestNetwork {
	if n == nil {
		return nil
	}
	k := len(n.Own)
	return &sandbox.GuestNetwork{
		Connect: files[:k:k], DNS: files[k : 2*k : 2*k], DNSStream: files[2*k : 3*k : 3*k], Proxy: files[3*k : 4*k : 4*k], ProxyPort: n.Proxy,
	}
}

// Network returns the sockets that carry the guest's network, or nil.
func (g *guest) Network() *sandbox.GuestNetwork { return g.network }

// Dial connects to a port of the guest's loopback. The guest has no part in
// it: its first process makes the socket when this process says so, and this
// process connects it.
func (g *guest) Dial(port uint16) (*os.File, error) {
	if !g.plan.Loopback {
		return nil, fmt.Errorf("a guest without a network of its own has no port %d: %w", port, sandbox.ErrUnsupported)
	}
	return Dial(g.plan.Network, port, g.init.Socket)
}

// Dial connects to a port of a guest's loopback, IPv4 first and then IPv6, with
// TCP sockets of a family (AF_INET, AF_INET6) that were made in the guest's
// network namespace. n is the guest's network by name, or nil; its ports are
// not the guest's. It errs with ECONNREFUSED where nothing listens.
func Dial(n *Network, port uint16, socket func(family int) (*os.File, error)) (*os.File, error) {
	if n != nil && (n.ours(port) || slices.Contains(n.HostPorts, port)) {
		return nil, fmt.Errorf("port %d is not the guest's own: %w", port, unix.ECONNREFUSED)
	}
	f, err := dial(socket, unix.AF_INET, &unix.SockaddrInet4{Port: int(port), Addr: [4]byte{127, 0, 0, 1}})
	if err == nil {
		return f, nil
	}
	if f, err6 := dial(socket, unix.AF_INET6, &unix.SockaddrInet6{Port: int(port), Addr: netip.IPv6Loopback().As16()}); err6 == nil {
		return f, nil
	}
	return nil, err
}

func dial(socket func(family int) (*os.File, error), family int, to unix.Sockaddr) (*os.File, error) {
	f, err := socket(family)
	if err != nil {
		return nil, err
	}
	fd := int(f.Fd())
	if err := errors.Join(sendTimeout(fd, dialTimeout), unix.Connect(fd, to), sendTimeout(fd, 0)); err != nil {
		f.Close()
		return nil, fmt.Errorf("connect to the guest: %w", err)
	}
	return f, nil
}

// dialTimeout is how long a listener of the guest may leave a connection
// waiting for room in its queue.
const dialTimeout = 5 * time.Second

// sendTimeout bounds connect(2), too (socket(7)); 0 is no bound.
func sendTimeout(fd int, d time.Duration) error {
	tv := unix.NsecToTimeval(int64(d))
	return unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &tv)
}
