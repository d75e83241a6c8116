package netlink

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Do sends messages of a protocol (NETLINK_ROUTE, NETLINK_NETFILTER) as one
// datagram to the network namespace of the calling thread. It errs with the
// errno of the first message that the kernel refuses, after its name.
func Do(protocol int, list []Message) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return fmt.Errorf("open a netlink socket: %w", err)
	}
	defer unix.Close(fd)
	if err := unix.Sendto(fd, Encode(list), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return fmt.Errorf("send netlink messages: %w", err)
	}
	buf := make([]byte, 8<<10)
	for _, m := range list {
		if !m.Acknowledged() {
			continue
		}
		n, err := unix.Read(fd, buf)
		if err == nil {
			err = answered(buf[:n])
		}
		if err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
	}
	return nil
}

// answered reads one NLMSG_ERROR, of which errno 0 is an acknowledgement
// (netlink(7)).
func answered(b []byte) error {
	if len(b) < unix.SizeofNlMsghdr+4 || binary.NativeEndian.Uint16(b[4:]) != unix.NLMSG_ERROR {
		return errors.New("the kernel's answer is no acknowledgement")
	}
	if errno := int32(binary.NativeEndian.Uint32(b[unix.SizeofNlMsghdr:])); errno != 0 {
		return unix.Errno(-errno)
	}
	return nil
}
