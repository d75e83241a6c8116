package netlink

import (
	"bytes"
	"encoding/hex"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	mdlayher "github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// ours is a table with one rule of each kind.
func ours() []Message {
	t := NewTable("t")
	nat := t.Output("n", "nat", PriorityNAT, false)
	nat.Rule("dns", Protocol(unix.IPPROTO_UDP), Port(53), Redirect(61053))
	nat.Rule("host", To(netip.MustParsePrefix("::1/128")), Protocol(unix.IPPROTO_TCP), Port(5432), Redirect(61001))
	filter := t.Output("f", "filter", PriorityFilter, true)
	filter.Rule("loopback", To(netip.MustParsePrefix("127.0.0.1/8")), Accept())
	filter.Rule("odd", To(netip.MustParsePrefix("198.18.0.0/15")), Accept())
	filter.Rule("known", Established(), Accept())
	filter.Rule("rest", Reject())
	return t.Messages()
}

// theirs is the same table in the words of google/nftables.
func theirs(c *nftables.Conn) {
	t := c.AddTable(&nftables.Table{Family: nftables.TableFamilyINet, Name: "t"})
	accept, drop := nftables.ChainPolicyAccept, nftables.ChainPolicyDrop
	nat := c.AddChain(&nftables.Chain{Name: "n", Table: t, Type: nftables.ChainTypeNAT, Hooknum: nftables.ChainHookOutput, Priority: nftables.ChainPriorityNATDest, Policy: &accept})
	rule := func(ch *nftables.Chain, exprs ...expr.Any) {
		c.AddRule(&nftables.Rule{Table: t, Chain: ch, Exprs: exprs})
	}
	eq := func(b ...byte) expr.Any { return &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: b} }
	meta := func(k expr.MetaKey) expr.Any { return &expr.Meta{Key: k, Register: 1} }
	port := &expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2}
	to := func(n uint16) expr.Any { return &expr.Immediate{Register: 1, Data: binaryutil.BigEndian.PutUint16(n)} }
	redir, yes := &expr.Redir{RegisterProtoMin: 1}, &expr.Verdict{Kind: expr.VerdictAccept}
	v4, v6 := eq(unix.NFPROTO_IPV4), eq(unix.NFPROTO_IPV6)
	dst4 := &expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: 16, Len: 4}
	dst6 := &expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: 24, Len: 16}
	and := func(mask ...byte) expr.Any {
		return &expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: uint32(len(mask)), Mask: mask, Xor: make([]byte, len(mask))}
	}
	rule(nat, meta(expr.MetaKeyL4PROTO), eq(unix.IPPROTO_UDP), port, eq(0, 53), to(61053), redir)
	rule(nat, meta(expr.MetaKeyNFPROTO), v6, dst6, eq(netip.IPv6Loopback().AsSlice()...), meta(expr.MetaKeyL4PROTO), eq(unix.IPPROTO_TCP), port, eq(0x15, 0x38), to(61001), redir)
	f := c.AddChain(&nftables.Chain{Name: "f", Table: t, Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookOutput, Priority: nftables.ChainPriorityFilter, Policy: &drop})
	rule(f, meta(expr.MetaKeyNFPROTO), v4, dst4, and(255, 0, 0, 0), eq(127, 0, 0, 0), yes)
	rule(f, meta(expr.MetaKeyNFPROTO), v4, dst4, and(255, 254, 0, 0), eq(198, 18, 0, 0), yes)
	state := binaryutil.NativeEndian.PutUint32(expr.CtStateBitESTABLISHED | expr.CtStateBitRELATED)
	rule(f, &expr.Ct{Key: expr.CtKeySTATE, Register: 1}, and(state...), &expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: make([]byte, 4)}, yes)
	rule(f, &expr.Reject{Type: unix.NFT_REJECT_ICMPX_UNREACH, Code: unix.NFT_REJECT_ICMPX_ADMIN_PROHIBITED})
}

// TestTableIsWhatNftablesSends compares every message with the one that
// google/nftables sends for the same rule.
func TestTableIsWhatNftablesSends(t *testing.T) {
	var sent []mdlayher.Message
	c, err := nftables.New(nftables.WithTestDial(func(req []mdlayher.Message) ([]mdlayher.Message, error) {
		if len(req) > 0 {
			sent = req
		}
		return []mdlayher.Message{{Header: mdlayher.Header{Type: mdlayher.Error}, Data: make([]byte, 20)}}, nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	theirs(c)
	_ = c.Flush() // made-up answers
	list := ours()
	if len(sent) != len(list) {
		t.Fatalf("%d messages, want %d", len(list), len(sent))
	}
	for i, m := range list {
		want := sent[i]
		flags := uint16(want.Header.Flags) &^ (unix.NLM_F_ECHO | unix.NLM_F_REQUEST)
		if m.Type != uint16(want.Header.Type) || m.Flags != flags {
			t.Errorf("%s: type %#x, flags %#x; want %#x, %#x", m.Name, m.Type, m.Flags, want.Header.Type, flags)
		}
		if !bytes.Equal(m.Body, want.Data) {
			t.Errorf("%s (-want +got):\n%s", m.Name, cmp.Diff(hex.Dump(want.Data), hex.Dump(m.Body)))
		}
	}
}

// TestEncode reads the datagram with another parser.
func TestEncode(t *testing.T) {
	list := ours()
	rest := Encode(list)
	for i, m := range list {
		size := (unix.SizeofNlMsghdr + len(m.Body) + 3) &^ 3
		var got mdlayher.Message
		if err := got.UnmarshalBinary(rest[:size]); err != nil {
			t.Fatal(err)
		}
		if uint16(got.Header.Type) != m.Type || uint16(got.Header.Flags) != m.Flags|unix.NLM_F_REQUEST || got.Header.Sequence != uint32(i+1) || !bytes.Equal(got.Data[:len(m.Body)], m.Body) {
			t.Errorf("%s: got %+v", m.Name, got)
		}
		rest = rest[size:]
	}
	if len(rest) != 0 {
		t.Errorf("%d bytes are left", len(rest))
	}
}
