package netlink

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

// vethInfoPeer is VETH_INFO_PEER of linux/veth.h.
const vethInfoPeer = 1

// ifinfo is an ifinfomsg (rtnetlink(7)).
func ifinfo(index, flags, change uint32) []byte {
	body := []byte{unix.AF_UNSPEC, 0, 0, 0}
	body = binary.NativeEndian.AppendUint32(body, index)
	body = binary.NativeEndian.AppendUint32(body, flags)
	return binary.NativeEndian.AppendUint32(body, change)
}

// native32 is an attribute with a number as rtnetlink wants it.
func native32(kind uint16, n uint32) []byte {
	return attr(kind, binary.NativeEndian.AppendUint32(nil, n))
}

// AddVeth makes a pair of connected interfaces, both down: one here, and its
// peer in the network namespace of the process pid (veth(4)).
func AddVeth(name, peer string, pid int) Message {
	other := append(ifinfo(0, 0, 0), join([][]byte{text(unix.IFLA_IFNAME, peer), native32(unix.IFLA_NET_NS_PID, uint32(pid))})...)
	body := append(ifinfo(0, 0, 0), join([][]byte{
		text(unix.IFLA_IFNAME, name),
		nest(unix.IFLA_LINKINFO, text(unix.IFLA_INFO_KIND, "veth"), nest(unix.IFLA_INFO_DATA, attr(vethInfoPeer, other))),
	})...)
	return Message{Name: "add a pair of interfaces", Type: unix.RTM_NEWLINK, Flags: unix.NLM_F_CREATE | unix.NLM_F_EXCL | unix.NLM_F_ACK, Body: body}
}

// SetUp brings an interface up.
func SetUp(index uint32) Message {
	return Message{Name: "bring an interface up", Type: unix.RTM_NEWLINK, Flags: unix.NLM_F_ACK, Body: ifinfo(index, unix.IFF_UP, unix.IFF_UP)}
}

// AddRoute makes the gateway via, behind an interface, the way to all
// destinations of its family that no other route knows.
func AddRoute(index uint32, via netip.Addr) Message {
	body := []byte{family(via), 0, 0, 0, unix.RT_TABLE_MAIN, unix.RTPROT_STATIC, unix.RT_SCOPE_UNIVERSE, unix.RTN_UNICAST, 0, 0, 0, 0}
	body = append(body, join([][]byte{attr(unix.RTA_GATEWAY, via.AsSlice()), native32(unix.RTA_OIF, index)})...)
	return Message{Name: "add a route by " + via.String(), Type: unix.RTM_NEWROUTE, Flags: unix.NLM_F_CREATE | unix.NLM_F_EXCL | unix.NLM_F_ACK, Body: body}
}

// AddRest makes every address of a's family local to an interface that no other
// route knows, so that what arrives for it is delivered here.
func AddRest(index uint32, a netip.Addr) Message {
	scope := byte(unix.RT_SCOPE_HOST)
	if !a.Is4() {
		scope = unix.RT_SCOPE_UNIVERSE // IPv6 routes have no other
	}
	body := []byte{family(a), 0, 0, 0, unix.RT_TABLE_MAIN, unix.RTPROT_STATIC, scope, unix.RTN_LOCAL, 0, 0, 0, 0}
	body = append(body, native32(unix.RTA_OIF, index)...)
	return Message{Name: "make all other addresses local", Type: unix.RTM_NEWROUTE, Flags: unix.NLM_F_CREATE | unix.NLM_F_EXCL | unix.NLM_F_ACK, Body: body}
}
