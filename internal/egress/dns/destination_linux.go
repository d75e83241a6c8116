package dns

import (
	"net"

	"golang.org/x/sys/unix"
)

// tellDestination makes the kernel report at which address each datagram
// arrived. IPv4 sockets use IP_PKTINFO; IPv6 sockets use IPV6_RECVPKTINFO,
// which also covers their IPv4 datagrams.
func tellDestination(c *net.UDPConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var set error
	err = raw.Control(func(fd uintptr) {
		domain, e := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_DOMAIN)
		switch {
		case e != nil:
			set = e
		case domain == unix.AF_INET6:
			set = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1)
		default:
			set = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_PKTINFO, 1)
		}
	})
	if err != nil {
		return err
	}
	return set
}
