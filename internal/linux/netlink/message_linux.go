// Package netlink writes the messages that give a network namespace its addresses,
// routes and packet filter (netlink(7), rtnetlink(7), nfnetlink of the kernel's
// net/netfilter). Only Do sends messages. All else computes bytes, which a process
// in the namespace sends.
package netlink

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// A Message is one request, to be acknowledged unless it is a batch's edge.
type Message struct {
	Name  string // what an error will show
	Type  uint16
	Flags uint16 // besides NLM_F_REQUEST
	Body  []byte
}

// Acknowledged reports whether the kernel answers the message.
func (m Message) Acknowledged() bool { return m.Flags&unix.NLM_F_ACK != 0 }

// Encode writes messages as one datagram, numbered from 1.
func Encode(list []Message) []byte {
	var out []byte
	for i, m := range list {
		out = binary.NativeEndian.AppendUint32(out, uint32(unix.SizeofNlMsghdr+len(m.Body)))
		out = binary.NativeEndian.AppendUint16(out, m.Type)
		out = binary.NativeEndian.AppendUint16(out, m.Flags|unix.NLM_F_REQUEST)
		out = binary.NativeEndian.AppendUint32(out, uint32(i+1))
		out = binary.NativeEndian.AppendUint32(out, 0) // the sender's port: the kernel knows it
		out = pad(append(out, m.Body...))
	}
	return out
}

// pad fills up to the alignment of messages and of attributes, which is 4.
func pad(b []byte) []byte {
	for len(b)%unix.NLMSG_ALIGNTO != 0 {
		b = append(b, 0)
	}
	return b
}

// attr is one attribute.
func attr(kind uint16, value []byte) []byte {
	out := binary.NativeEndian.AppendUint16(nil, uint16(unix.SizeofNlAttr+len(value)))
	out = binary.NativeEndian.AppendUint16(out, kind)
	return pad(append(out, value...))
}

// nest is an attribute that holds others.
func nest(kind uint16, inner ...[]byte) []byte {
	return attr(kind|unix.NLA_F_NESTED, join(inner))
}

func join(parts [][]byte) (out []byte) {
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

// number is an attribute with a 32-bit number as nfnetlink wants it.
func number(kind uint16, n uint32) []byte {
	return attr(kind, binary.BigEndian.AppendUint32(nil, n))
}

// text is an attribute with a C string.
func text(kind uint16, s string) []byte { return attr(kind, append([]byte(s), 0)) }
