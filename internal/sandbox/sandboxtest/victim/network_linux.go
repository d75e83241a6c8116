package main

import (
	"net/netip"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The network of a session without one: nothing of the host answers.
var netRefused = []errno{unix.ECONNREFUSED, unix.ENETUNREACH, unix.EHOSTUNREACH, unix.EPERM, unix.EACCES, unix.EAFNOSUPPORT, unix.EADDRNOTAVAIL, unix.ENETDOWN, nothing, killed}

func networkChecks() []Check {
	list := []Check{
		{Name: "E075", Why: "a service on the host's loopback", Do: func(fx Fixtures) error { return dial4(loopback4(fx.TCP4)) }},
		{Name: "E077", Why: "the same without blocking", Do: func(fx Fixtures) error { return dialNonblock(loopback4(fx.TCP4)) }},
		{Name: "A800", Why: "a service on the host's IPv6 loopback", Unavailable: []errno{nothing}, Do: dialLoopback6},
		{Name: "A801", Why: "the same by an IPv4 address in IPv6", Unavailable: []errno{unix.EAFNOSUPPORT}, Do: func(fx Fixtures) error { return dial6("::ffff:127.0.0.1", fx.TCP4) }},
		{Name: "A802", Why: "the address 0.0.0.0", Do: func(fx Fixtures) error { return dial4(&unix.SockaddrInet4{Port: fx.TCP4}) }},
		{Name: "A803", Why: "another loopback address", Do: func(fx Fixtures) error { return dial4(&unix.SockaddrInet4{Port: fx.TCP4, Addr: [4]byte{127, 9, 9, 9}}) }},
		{Name: "E088", Why: "an address of the host that is no loopback", Unavailable: []errno{nothing}, Do: dialExternal},
		{Name: "A804", Why: "a datagram to the host's loopback", Do: func(fx Fixtures) error { return askDatagram(loopback4(fx.UDP4)) }},
		{Name: "A805", Why: "the same, connected", Do: func(fx Fixtures) error { return askConnected(loopback4(fx.UDP4)) }},
		{Name: "E079", Why: "raw ICMP", RootOnly: true, Do: func(Fixtures) error { return openSocket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP) }},
		{Name: "A806", Why: "raw IPv6", RootOnly: true, Unavailable: []errno{unix.EAFNOSUPPORT}, Do: func(Fixtures) error { return openSocket(unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_ICMPV6) }},
		{Name: "A807", Why: "raw IP, the whole packet", RootOnly: true, Do: func(Fixtures) error { return openSocket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_RAW) }},
		{Name: "E080", Why: "ICMP without privileges, a way to carry data out", Unavailable: []errno{unix.EACCES}, Do: ping},
		{Name: "E082", Why: "the host's interfaces by netlink", Unavailable: []errno{nothing}, Do: netlinkLinks},
		{Name: "E099", Why: "a service in the sandbox that the host's network reaches", Do: listenInbound},
	}
	for i := range list {
		list[i].Want = netRefused
	}
	return named("net", list)
}

func loopback4(port int) *unix.SockaddrInet4 {
	return &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}
}

// patience is how long an answer may take.
var patience = unix.NsecToTimeval(int64(time.Second))

// impatient makes a socket that gives up after patience.
func impatient(family, kind, proto int) (int, error) {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, proto)
	if err != nil {
		return -1, err
	}
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &patience)
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &patience)
	return fd, nil
}

func dialAny(family int, to unix.Sockaddr) error {
	fd, err := impatient(family, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, to); err != nil {
		return err
	}
	return late(answered(fd))
}

// late turns "no answer in time" into nothing.
func late(err error) error {
	if err == unix.EAGAIN || err == unix.EINPROGRESS {
		return nothing
	}
	return err
}

func dial4(to *unix.SockaddrInet4) error { return dialAny(unix.AF_INET, to) }

func dial6(addr string, port int) error {
	return dialAny(unix.AF_INET6, &unix.SockaddrInet6{Port: port, Addr: netip.MustParseAddr(addr).As16()})
}

func dialLoopback6(fx Fixtures) error {
	if fx.TCP6 == 0 {
		return nothing
	}
	return dial6("::1", fx.TCP6)
}

func dialExternal(fx Fixtures) error {
	to, err := netip.ParseAddrPort(fx.External)
	if err != nil {
		return nothing
	}
	return dial4(&unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()})
}

func dialNonblock(to *unix.SockaddrInet4) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := unix.Connect(fd, to); err != nil && err != unix.EINPROGRESS {
		return err
	}
	ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	if n, err := unix.Poll(ready, 1000); err != nil || n == 0 {
		return orNothing(err)
	}
	return late(answered(fd))
}

func askDatagram(to *unix.SockaddrInet4) error {
	fd, err := impatient(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	if err := unix.Sendto(fd, []byte("?"), 0, to); err != nil {
		return err
	}
	return late(answered(fd))
}

func askConnected(to *unix.SockaddrInet4) error {
	fd, err := impatient(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	if err := unix.Connect(fd, to); err != nil {
		return err
	}
	if _, err := unix.Write(fd, []byte("?")); err != nil {
		return err
	}
	return late(answered(fd))
}

func openSocket(family, kind, proto int) error {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, proto)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// ping needs only the socket: what it can reach is another question.
func ping(Fixtures) error { return openSocket(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP) }

// netlinkLinks asks for every interface; it worked if one is not the loopback.
func netlinkLinks(Fixtures) error {
	text, err := syscall.NetlinkRIB(unix.RTM_GETLINK, unix.AF_UNSPEC)
	if err != nil {
		return err
	}
	messages, err := syscall.ParseNetlinkMessage(text)
	if err != nil {
		return broken(err)
	}
	for _, m := range messages {
		attrs, err := syscall.ParseNetlinkRouteAttr(&m)
		if m.Header.Type != unix.RTM_NEWLINK || err != nil {
			continue
		}
		for _, a := range attrs {
			if a.Attr.Type == unix.IFLA_IFNAME && len(a.Value) > 1 {
				if name := string(a.Value[:len(a.Value)-1]); name != "lo" && !tunnel(name) {
					return nil
				}
			}
		}
	}
	return nothing
}

// listenInbound listens where the host keeps dialling.
func listenInbound(fx Fixtures) error {
	fd, err := impatient(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	if err := unix.Bind(fd, &unix.SockaddrInet4{Port: fx.Inbound}); err != nil {
		return err
	}
	if err := unix.Listen(fd, 8); err != nil {
		return err
	}
	for err = unix.EINTR; err == unix.EINTR; { // a call that times out is not restarted after a signal: signal(7)
		_, _, err = unix.Accept4(fd, unix.SOCK_CLOEXEC)
	}
	return late(err)
}

// familyChecks open sockets of families that no guest needs.
func familyChecks() []Check {
	families := []struct {
		name, why           string
		family, kind, proto int
		root                bool
	}{
		{"E081", "raw packets", unix.AF_PACKET, unix.SOCK_RAW, 0, true},
		{"E083", "the hypervisor", unix.AF_VSOCK, unix.SOCK_STREAM, 0, false},
		{"A810", "the kernel's ciphers", unix.AF_ALG, unix.SOCK_SEQPACKET, 0, false},
		{"A811", "packets without copying", unix.AF_XDP, unix.SOCK_RAW, 0, true},
		{"A812", "IPsec keys", unix.AF_KEY, unix.SOCK_RAW, 2, true},
		{"A813", "Bluetooth", unix.AF_BLUETOOTH, unix.SOCK_RAW, 1, false},
		{"A814", "TIPC", unix.AF_TIPC, unix.SOCK_RDM, 0, false},
		{"A815", "CAN", unix.AF_CAN, unix.SOCK_RAW, 1, false},
		{"A816", "RDS", unix.AF_RDS, unix.SOCK_SEQPACKET, 0, false},
		{"A817", "SMC", unix.AF_SMC, unix.SOCK_STREAM, 0, false},
		{"A818", "KCM", unix.AF_KCM, unix.SOCK_DGRAM, 0, false},
		{"A819", "netlink: netfilter", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER, false},
		{"A820", "netlink: audit", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT, false},
		{"A821", "netlink: kernel events", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_KOBJECT_UEVENT, false},
		{"A822", "netlink: generic", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_GENERIC, false},
		{"A823", "netlink: IPsec", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_XFRM, false},
		{"A824", "netlink: socket monitoring", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_SOCK_DIAG, false},
		{"A825", "netlink: crypto", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_CRYPTO, false},
	}
	var list []Check
	for _, f := range families {
		list = append(list, Check{Name: f.name, Why: "a socket for " + f.why, RootOnly: f.root,
			Want:        []errno{unix.EPERM, unix.EACCES, unix.EAFNOSUPPORT, unix.EPROTONOSUPPORT, unix.ESOCKTNOSUPPORT, killed},
			Unavailable: []errno{unix.EAFNOSUPPORT, unix.EPROTONOSUPPORT, unix.ESOCKTNOSUPPORT},
			Do:          func(Fixtures) error { return openSocket(f.family, f.kind, f.proto) }})
	}
	return named("net", list)
}
