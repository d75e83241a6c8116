package kernel

import (
	"errors"
	"fmt"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/linux/netlink"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// BringUpLoopback sets "lo" up in the network namespace of the calling thread,
// which must be locked if that is not the process'. It needs CAP_NET_ADMIN there
// (netdevice(7)), unless lo is up already.
func BringUpLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("bring up lo: %w", err)
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, lo); err == nil && lo.Uint16()&unix.IFF_UP != 0 {
		return nil
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		return fmt.Errorf("bring up lo: %w", err)
	}
	return nil
}

// MakeNetwork sets n up in the network namespace of the calling thread, which
// must be locked unless it is the process's, and returns the sockets that carry
// it, for GuestNetwork. It needs CAP_NET_ADMIN there, and lo up. The namespace
// must be fresh: what is there already is an error.
func MakeNetwork(n *layout.Network) ([]*os.File, error) {
	if err := netlink.Do(unix.NETLINK_ROUTE, routes(n)); err != nil {
		return nil, err
	}
	if err := netlink.Do(unix.NETLINK_NETFILTER, ruleset(n)); err != nil {
		return nil, err
	}
	var files []*os.File
	for _, e := range ends(n) {
		f, err := listen(e)
		if err != nil {
			for _, f := range files {
				f.Close()
			}
			return nil, fmt.Errorf("listen at %v: %w", e.at, err)
		}
		files = append(files, f)
	}
	return files, nil
}

// listen makes one socket; see (*Steps).listen for why it has its options.
func listen(e end) (*os.File, error) {
	family, addr := sockaddr46(e.at)
	fd, err := unix.Socket(family, e.kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if e.kind == unix.SOCK_DGRAM && family == unix.AF_INET {
		err = unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_PKTINFO, 1)
	}
	if e.kind == unix.SOCK_DGRAM && family == unix.AF_INET6 {
		err = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1)
	}
	if family == unix.AF_INET6 {
		err = errors.Join(err, unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1))
	}
	err = errors.Join(err, unix.Bind(fd, addr))
	if e.kind == unix.SOCK_STREAM {
		err = errors.Join(err, unix.Listen(fd, backlog))
	}
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), e.at.String()), nil
}

// sockaddr46 is the address as package unix takes it.
func sockaddr46(at netip.AddrPort) (family int, addr unix.Sockaddr) {
	if at.Addr().Is4() {
		return unix.AF_INET, &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}
	}
	return unix.AF_INET6, &unix.SockaddrInet6{Port: int(at.Port()), Addr: at.Addr().As16()}
}
