package relay

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// soOriginalDst is SO_ORIGINAL_DST and IP6T_SO_ORIGINAL_DST
// (linux/netfilter_ipv4.h, linux/netfilter_ipv6/ip6_tables.h).
const soOriginalDst = 80

// original returns the address that the guest wanted to reach before the
// session's namespace redirected it here.
func original(c *net.TCPConn) (netip.AddrPort, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return netip.AddrPort{}, err
	}
	peer, ok := c.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}, fmt.Errorf("%v is no TCP address", c.RemoteAddr())
	}
	var to netip.AddrPort
	var failed error
	err = raw.Control(func(fd uintptr) {
		if peer.AddrPort().Addr().Unmap().Is4() {
			to, failed = original4(fd)
		} else {
			to, failed = original6(fd)
		}
	})
	if err != nil {
		return to, err
	}
	return to, failed
}

func original4(fd uintptr) (netip.AddrPort, error) {
	var sa unix.RawSockaddrInet4
	if err := getsockopt(fd, unix.SOL_IP, unsafe.Pointer(&sa), unsafe.Sizeof(sa)); err != nil {
		return netip.AddrPort{}, err
	}
	return netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), bigEndian(sa.Port)), nil
}

func original6(fd uintptr) (netip.AddrPort, error) {
	var sa unix.RawSockaddrInet6
	if err := getsockopt(fd, unix.SOL_IPV6, unsafe.Pointer(&sa), unsafe.Sizeof(sa)); err != nil {
		return netip.AddrPort{}, err
	}
	return netip.AddrPortFrom(netip.AddrFrom16(sa.Addr).Unmap(), bigEndian(sa.Port)), nil
}

// bigEndian reads a port as it lies in a sockaddr.
func bigEndian(port uint16) uint16 {
	var b [2]byte
	binary.NativeEndian.PutUint16(b[:], port)
	return binary.BigEndian.Uint16(b[:])
}

func getsockopt(fd uintptr, level int, at unsafe.Pointer, size uintptr) error {
	n := uint32(size)
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, fd, uintptr(level), soOriginalDst, uintptr(at), uintptr(unsafe.Pointer(&n)), 0)
	if errno != 0 {
		return fmt.Errorf("find where the guest wanted to connect: %w", errno)
	}
	return nil
}
