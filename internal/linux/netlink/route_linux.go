package netlink

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

// family of an address.
func family(a netip.Addr) byte {
	if a.Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

// AddAddress gives an interface an address of its own, for all scopes and
// without looking whether another machine has it (RTM_NEWADDR, rtnetlink(7)).
func AddAddress(index uint32, a netip.Addr) Message {
	return AddPrefix(index, netip.PrefixFrom(a, a.BitLen()))
}

// AddPrefix is AddAddress for an address with the network it is in.
func AddPrefix(index uint32, p netip.Prefix) Message {
	a := p.Addr()
	body := []byte{family(a), byte(p.Bits()), 0, unix.RT_SCOPE_UNIVERSE}
	body = binary.NativeEndian.AppendUint32(body, index)
	flags := binary.NativeEndian.AppendUint32(nil, unix.IFA_F_PERMANENT|unix.IFA_F_NODAD)
	body = append(body, join([][]byte{attr(unix.IFA_LOCAL, a.AsSlice()), attr(unix.IFA_ADDRESS, a.AsSlice()), attr(unix.IFA_FLAGS, flags)})...)
	return Message{Name: "add the address " + a.String(), Type: unix.RTM_NEWADDR, Flags: unix.NLM_F_CREATE | unix.NLM_F_EXCL | unix.NLM_F_ACK, Body: body}
}

// AddLocalRoute makes every address of source's family local to an interface,
// with source as the address that sockets get when they connect
// (RTM_NEWROUTE, rtnetlink(7)).
func AddLocalRoute(index uint32, source netip.Addr) Message {
	scope := byte(unix.RT_SCOPE_HOST)
	if !source.Is4() {
		scope = unix.RT_SCOPE_UNIVERSE // IPv6 routes have no other
	}
	body := []byte{family(source), 0, 0, 0, unix.RT_TABLE_LOCAL, unix.RTPROT_STATIC, scope, unix.RTN_LOCAL, 0, 0, 0, 0}
	device := binary.NativeEndian.AppendUint32(nil, index)
	body = append(body, join([][]byte{attr(unix.RTA_OIF, device), attr(unix.RTA_PREFSRC, source.AsSlice())})...)
	name := "make all of IPv4 local"
	if !source.Is4() {
		name = "make all of IPv6 local"
	}
	return Message{Name: name, Type: unix.RTM_NEWROUTE, Flags: unix.NLM_F_CREATE | unix.NLM_F_EXCL | unix.NLM_F_ACK, Body: body}
}
