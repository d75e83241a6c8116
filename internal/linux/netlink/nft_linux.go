package netlink

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Constants of linux/netfilter.h and linux/netfilter/nf_tables.h that
// x/sys/unix does not have.
const (
	hookPrerouting = 0 // NF_INET_PRE_ROUTING
	hookLocalIn    = 1 // NF_INET_LOCAL_IN
	hookLocalOut   = 3 // NF_INET_LOCAL_OUT

	// PriorityNAT is where destinations are rewritten (NF_IP_PRI_NAT_DST).
	PriorityNAT = -100
	// PriorityFilter is where packets are filtered (NF_IP_PRI_FILTER).
	PriorityFilter = 0

	verdictDrop   = 0 // NF_DROP
	verdictAccept = 1 // NF_ACCEPT

	ctEstablished = 1 << 1 // NF_CT_STATE_BIT(IP_CT_ESTABLISHED)
	ctRelated     = 1 << 2 // NF_CT_STATE_BIT(IP_CT_RELATED)

	register = unix.NFT_REG_1 // the one that expressions here use
)

// A Table is a packet filter for IPv4 and IPv6 alike (family inet).
type Table struct {
	name string
	list []Message
}

// NewTable begins a filter that one batch will create as a whole.
func NewTable(name string) *Table {
	t := &Table{name: name}
	t.list = []Message{edge(unix.NFNL_MSG_BATCH_BEGIN)}
	t.add("create the packet filter", unix.NFT_MSG_NEWTABLE, 0, text(unix.NFTA_TABLE_NAME, name), number(unix.NFTA_TABLE_FLAGS, 0))
	return t
}

// Messages returns the batch.
func (t *Table) Messages() []Message {
	return append(t.list[:len(t.list):len(t.list)], edge(unix.NFNL_MSG_BATCH_END))
}

func edge(kind uint16) Message {
	return Message{Name: "batch", Type: kind, Body: header(unix.AF_UNSPEC, unix.NFNL_SUBSYS_NFTABLES)}
}

// header is nfgenmsg.
func header(family byte, resource uint16) []byte {
	return binary.BigEndian.AppendUint16([]byte{family, unix.NFNETLINK_V0}, resource)
}

func (t *Table) add(name string, kind, flags uint16, attrs ...[]byte) {
	t.list = append(t.list, Message{
		Name: name, Type: unix.NFNL_SUBSYS_NFTABLES<<8 | kind, Flags: flags | unix.NLM_F_CREATE | unix.NLM_F_ACK,
		Body: append(header(unix.NFPROTO_INET, 0), join(attrs)...),
	})
}

// A Chain is a list of rules that the kernel asks about each packet at one point
// of its way.
type Chain struct {
	table *Table
	name  string
}

// Output adds a chain of a kind, "nat" or "filter", at a priority, for what local
// programs send. Packets that no rule decides are dropped if drop, else accepted.
func (t *Table) Output(name, kind string, priority int32, drop bool) Chain {
	return t.chain(name, kind, hookLocalOut, priority, drop)
}

// Prerouting is Output for what arrives, before it is known where it goes.
func (t *Table) Prerouting(name, kind string, priority int32, drop bool) Chain {
	return t.chain(name, kind, hookPrerouting, priority, drop)
}

// Input is Output for what local programs are to get.
func (t *Table) Input(name, kind string, priority int32, drop bool) Chain {
	return t.chain(name, kind, hookLocalIn, priority, drop)
}

func (t *Table) chain(name, kind string, hook uint32, priority int32, drop bool) Chain {
	policy := uint32(verdictAccept)
	if drop {
		policy = verdictDrop
	}
	t.add("create the chain "+name, unix.NFT_MSG_NEWCHAIN, 0,
		text(unix.NFTA_CHAIN_TABLE, t.name), text(unix.NFTA_CHAIN_NAME, name),
		nest(unix.NFTA_CHAIN_HOOK, number(unix.NFTA_HOOK_HOOKNUM, hook), number(unix.NFTA_HOOK_PRIORITY, uint32(priority))),
		number(unix.NFTA_CHAIN_POLICY, policy), text(unix.NFTA_CHAIN_TYPE, kind))
	return Chain{t, name}
}

// An Expr is a part of a rule: a condition, or at last the action.
type Expr []byte

// Rule appends a rule. Its name is shown in an error.
func (c Chain) Rule(name string, parts ...[]Expr) {
	var elems [][]byte
	for _, p := range parts {
		for _, e := range p {
			elems = append(elems, nest(unix.NFTA_LIST_ELEM, e))
		}
	}
	c.table.add(name, unix.NFT_MSG_NEWRULE, unix.NLM_F_APPEND,
		text(unix.NFTA_RULE_TABLE, c.table.name), text(unix.NFTA_RULE_CHAIN, c.name), nest(unix.NFTA_RULE_EXPRESSIONS, elems...))
}

func expression(name string, data ...[]byte) Expr {
	return join([][]byte{text(unix.NFTA_EXPR_NAME, name), nest(unix.NFTA_EXPR_DATA, data...)})
}

func value(kind uint16, data []byte) []byte { return nest(kind, attr(unix.NFTA_DATA_VALUE, data)) }

func meta(key uint32) Expr {
	return expression("meta", number(unix.NFTA_META_KEY, key), number(unix.NFTA_META_DREG, register))
}

func compare(op uint32, with []byte) Expr {
	return expression("cmp", number(unix.NFTA_CMP_SREG, register), number(unix.NFTA_CMP_OP, op), value(unix.NFTA_CMP_DATA, with))
}

func payload(base, offset, size uint32) Expr {
	return expression("payload", number(unix.NFTA_PAYLOAD_DREG, register), number(unix.NFTA_PAYLOAD_BASE, base),
		number(unix.NFTA_PAYLOAD_OFFSET, offset), number(unix.NFTA_PAYLOAD_LEN, size))
}

func masked(mask []byte) Expr {
	return expression("bitwise", number(unix.NFTA_BITWISE_SREG, register), number(unix.NFTA_BITWISE_DREG, register),
		number(unix.NFTA_BITWISE_LEN, uint32(len(mask))), value(unix.NFTA_BITWISE_MASK, mask), value(unix.NFTA_BITWISE_XOR, make([]byte, len(mask))))
}

// Protocol matches a transport protocol (IPPROTO_TCP …).
func Protocol(p byte) []Expr {
	return []Expr{meta(unix.NFT_META_L4PROTO), compare(unix.NFT_CMP_EQ, []byte{p})}
}

// Port matches the destination port. Protocol stands before it.
func Port(p uint16) []Expr {
	return []Expr{payload(unix.NFT_PAYLOAD_TRANSPORT_HEADER, 2, 2), compare(unix.NFT_CMP_EQ, binary.BigEndian.AppendUint16(nil, p))}
}

// ICMPv6 matches a type of message (RFC 4443).
func ICMPv6(kind byte) []Expr {
	return append(Protocol(unix.IPPROTO_ICMPV6), payload(unix.NFT_PAYLOAD_TRANSPORT_HEADER, 0, 1), compare(unix.NFT_CMP_EQ, []byte{kind}))
}

// To matches destinations in a prefix, which fixes the version of IP.
func To(p netip.Prefix) []Expr {
	a := p.Masked().Addr()
	version, offset := byte(unix.NFPROTO_IPV4), uint32(16)
	if !a.Is4() {
		version, offset = unix.NFPROTO_IPV6, 24
	}
	size := len(a.AsSlice())
	list := []Expr{meta(unix.NFT_META_NFPROTO), compare(unix.NFT_CMP_EQ, []byte{version}), payload(unix.NFT_PAYLOAD_NETWORK_HEADER, offset, uint32(size))}
	if p.Bits() < a.BitLen() {
		list = append(list, masked(mask(size, p.Bits())))
	}
	return append(list, compare(unix.NFT_CMP_EQ, a.AsSlice()))
}

// mask is size bytes with the first bits of them set.
func mask(size, bits int) []byte {
	m := make([]byte, size)
	for i := range bits {
		m[i/8] |= 0x80 >> (i % 8)
	}
	return m
}

// Established matches packets of connections that both sides know, and errors
// about them.
func Established() []Expr {
	return []Expr{
		expression("ct", number(unix.NFTA_CT_KEY, unix.NFT_CT_STATE), number(unix.NFTA_CT_DREG, register)),
		masked(binary.NativeEndian.AppendUint32(nil, ctEstablished|ctRelated)), compare(unix.NFT_CMP_NEQ, make([]byte, 4)),
	}
}

// Accept ends the chain for the packet.
func Accept() []Expr {
	code := nest(unix.NFTA_DATA_VERDICT, number(unix.NFTA_VERDICT_CODE, verdictAccept))
	return []Expr{expression("immediate", number(unix.NFTA_IMMEDIATE_DREG, unix.NFT_REG_VERDICT), nest(unix.NFTA_IMMEDIATE_DATA, code))}
}

// Redirect sends the connection to a port of 127.0.0.1 or ::1.
func Redirect(port uint16) []Expr {
	return []Expr{
		expression("immediate", number(unix.NFTA_IMMEDIATE_DREG, register), value(unix.NFTA_IMMEDIATE_DATA, binary.BigEndian.AppendUint16(nil, port))),
		expression("redir", number(unix.NFTA_REDIR_REG_PROTO_MIN, register)),
	}
}

// Reject answers "administratively prohibited" in the words of either version
// of IP.
func Reject() []Expr { return reject(unix.NFT_REJECT_ICMPX_ADMIN_PROHIBITED) }

// RejectPort answers that no socket has the port, which programs see as
// ECONNREFUSED.
func RejectPort() []Expr { return reject(unix.NFT_REJECT_ICMPX_PORT_UNREACH) }

func reject(code byte) []Expr {
	return []Expr{expression("reject", number(unix.NFTA_REJECT_TYPE, unix.NFT_REJECT_ICMPX_UNREACH), attr(unix.NFTA_REJECT_ICMP_CODE, []byte{code}))}
}
