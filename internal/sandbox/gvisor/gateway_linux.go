package gvisor

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/linux/netlink"
	"github.com/bawn-dev/bawn/internal/sandbox/inside/stream"
	"github.com/bawn-dev/bawn/internal/sandbox/kernel"
)

// Names of the two ends of the pair of interfaces.
const (
	guestLink   = "eth0"
	gatewayLink = "guest"
)

// Prefixes of the link between the two.
const (
	bits4 = 31
	bits6 = 64
)

// backlog is how many connections may wait for the relay.
const backlog = 4096

// echoRequest is the type of a ping in ICMPv6 (RFC 4443).
const echoRequest = 128

// set makes the gateway in the network namespace of this process, which must be
// fresh. It moves the calling thread, which must be locked and not the first,
// into a new one for the guest. It returns the sockets that carry the network,
// in the order of native.GuestNetwork.
func (g *Gateway) set() ([]*os.File, error) {
	if err := kernel.BringUpLoopback(); err != nil {
		return nil, err
	}
	files, err := g.listenAll()
	if err != nil {
		return nil, err
	}
	if err := netlink.Do(unix.NETLINK_NETFILTER, g.ruleset()); err != nil {
		return nil, err
	}
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return nil, fmt.Errorf("make a network namespace: %w", err)
	}
	if err := kernel.BringUpLoopback(); err != nil {
		return nil, err
	}
	if err := netlink.Do(unix.NETLINK_ROUTE, []netlink.Message{netlink.AddVeth(guestLink, gatewayLink, os.Getpid())}); err != nil {
		return nil, err
	}
	outside := make(chan error)
	go func() { outside <- g.up() }() // on a thread that is where the process is
	if err := <-outside; err != nil {
		return nil, err
	}
	return files, g.upGuest()
}

// up configures the gateway's end of the pair, and carries ports of the host.
func (g *Gateway) up() error {
	if err := g.upLink(); err != nil {
		return err
	}
	list, err := g.listenHostPorts()
	for i, l := range list {
		go stream.Forward(l, netip.AddrPortFrom(loopback, g.HostPorts[i]), stream.Reach)
	}
	return err
}

// upLink configures the gateway's end of the pair.
func (g *Gateway) upLink() error {
	index, err := indexOf(gatewayLink)
	if err != nil {
		return err
	}
	var list []netlink.Message
	for _, a := range g.Addresses {
		list = append(list, netlink.AddPrefix(index, linkPrefix(a)))
	}
	list = append(list, netlink.SetUp(index))
	for _, a := range g.Addresses {
		list = append(list, netlink.AddRest(1, a))
	}
	return netlink.Do(unix.NETLINK_ROUTE, list)
}

// listenHostPorts listens at ports of the host. What arrives there is to be
// carried to the same ports of our loopback, from where it is led to the relay,
// which so learns what the guest has dialled.
func (g *Gateway) listenHostPorts() (list []net.Listener, err error) {
	for _, p := range g.HostPorts {
		l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(g.Addresses[0], p)))
		if err != nil {
			return list, err
		}
		list = append(list, l)
	}
	return list, nil
}

// loopback is where the guest finds opened ports of the host.
var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// upGuest configures the guest's end, from which gVisor takes it.
func (g *Gateway) upGuest() error {
	index, err := indexOf(guestLink)
	if err != nil {
		return err
	}
	var list []netlink.Message
	for _, a := range g.Own {
		list = append(list, netlink.AddPrefix(index, linkPrefix(a)))
	}
	list = append(list, netlink.SetUp(index))
	for _, a := range g.Addresses {
		list = append(list, netlink.AddRoute(index, a))
	}
	return netlink.Do(unix.NETLINK_ROUTE, list)
}

// linkPrefix is an address with the network of the link.
func linkPrefix(a netip.Addr) netip.Prefix {
	if a.Is4() {
		return netip.PrefixFrom(a, bits4)
	}
	return netip.PrefixFrom(a, bits6)
}

// indexOf returns an interface's number in the calling thread's namespace.
func indexOf(name string) (uint32, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	req, err := unix.NewIfreq(name)
	if err != nil {
		return 0, err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFINDEX, req); err != nil {
		return 0, fmt.Errorf("find interface %q: %w", name, err)
	}
	return req.Uint32(), nil
}

// ruleset leads what arrives from the guest to our sockets, and refuses the rest.
func (g *Gateway) ruleset() []netlink.Message {
	t := netlink.NewTable("bawn")
	nat := t.Prerouting("redirect", "nat", netlink.PriorityNAT, false)
	nat.Rule("lead DNS datagrams to the resolver", netlink.Protocol(unix.IPPROTO_UDP), netlink.Port(53), netlink.Redirect(g.DNS))
	nat.Rule("lead DNS connections to the resolver", netlink.Protocol(unix.IPPROTO_TCP), netlink.Port(53), netlink.Redirect(g.DNS))
	for _, a := range g.Addresses {
		for _, p := range append([]uint16{g.Proxy}, g.HostPorts...) {
			nat.Rule("leave our own alone", netlink.To(netip.PrefixFrom(a, a.BitLen())), netlink.Protocol(unix.IPPROTO_TCP), netlink.Port(p), netlink.Accept())
		}
	}
	nat.Rule("lead TCP to the relay", netlink.Protocol(unix.IPPROTO_TCP), netlink.Redirect(g.Listen))
	out := t.Output("host", "nat", netlink.PriorityNAT, false)
	for _, p := range g.HostPorts {
		out.Rule("lead ports of the host to the relay", netlink.To(netip.PrefixFrom(loopback, loopback.BitLen())), netlink.Protocol(unix.IPPROTO_TCP), netlink.Port(p), netlink.Redirect(g.Listen))
	}
	filter := t.Input("refuse", "filter", netlink.PriorityFilter, true)
	filter.Rule("allow answers", netlink.Established(), netlink.Accept())
	for _, port := range append([]uint16{g.Listen, g.DNS, g.Proxy}, g.HostPorts...) {
		filter.Rule("allow what was led here", netlink.Protocol(unix.IPPROTO_TCP), netlink.Port(port), netlink.Accept())
	}
	filter.Rule("allow questions that were led here", netlink.Protocol(unix.IPPROTO_UDP), netlink.Port(g.DNS), netlink.Accept())
	// gVisor tells a socket of no other refusal of a datagram.
	filter.Rule("refuse datagrams", netlink.Protocol(unix.IPPROTO_UDP), netlink.RejectPort())
	filter.Rule("refuse pings", netlink.ICMPv6(echoRequest), netlink.Reject())
	filter.Rule("allow neighbours to find each other", netlink.Protocol(unix.IPPROTO_ICMPV6), netlink.Accept())
	filter.Rule("refuse the rest", netlink.Reject())
	return t.Messages()
}

// listenAll makes the sockets.
func (g *Gateway) listenAll() ([]*os.File, error) {
	var files []*os.File
	for _, kind := range []struct {
		port uint16
		kind int
	}{{g.Listen, unix.SOCK_STREAM}, {g.DNS, unix.SOCK_DGRAM}, {g.DNS, unix.SOCK_STREAM}, {g.Proxy, unix.SOCK_STREAM}} {
		for _, a := range g.Own {
			f, err := listen(a.Is4(), kind.port, kind.kind)
			if err != nil {
				return nil, fmt.Errorf("listen at port %d: %w", kind.port, err)
			}
			files = append(files, f)
		}
	}
	return files, nil
}

// listen makes one socket, at every address of the namespace: nobody but the
// guest is at the other end.
func listen(v4 bool, port uint16, kind int) (*os.File, error) {
	family, addr := unix.AF_INET, unix.Sockaddr(&unix.SockaddrInet4{Port: int(port)})
	if !v4 {
		family, addr = unix.AF_INET6, &unix.SockaddrInet6{Port: int(port)}
	}
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if !v4 {
		err = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1)
	}
	if kind == unix.SOCK_DGRAM {
		// This comes before the first query arrives: for an earlier one it would
		// be unknown from which address to answer.
		level, option := unix.IPPROTO_IP, unix.IP_PKTINFO
		if !v4 {
			level, option = unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO
		}
		err = errors.Join(err, unix.SetsockoptInt(fd, level, option, 1))
	}
	err = errors.Join(err, unix.Bind(fd, addr))
	if kind == unix.SOCK_STREAM {
		err = errors.Join(err, unix.Listen(fd, backlog))
	}
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), "gateway"), nil
}
