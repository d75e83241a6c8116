package webui

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/bawn-dev/bawn/internal/egress/dial"
)

// resolvesTo has every name resolve to one address, for the time of a test.
func resolvesTo(t *testing.T, to [4]byte) {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for buf := make([]byte, 1500); ; {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			if answer := answered(buf[:n], to); answer != nil {
				_, _ = conn.WriteTo(answer, from)
			}
		}
	}()
	before := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
	t.Cleanup(func() {
		net.DefaultResolver = before
		conn.Close()
	})
}

// answered answers a question for an IPv4 address, and says that there is no other.
func answered(question []byte, to [4]byte) []byte {
	var m dnsmessage.Message
	if m.Unpack(question) != nil || len(m.Questions) != 1 {
		return nil
	}
	m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
	if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
		m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}, Body: &dnsmessage.AResource{A: to}}}
	}
	out, _ := m.Pack() // its parts were unpacked
	return out
}

// TestNamesThatResolvePrivately: the name of an endpoint that a browser has given is
// judged by what it resolves to when a notice is sent. TestPush is the control.
func TestNamesThatResolvePrivately(t *testing.T) {
	const endpoint = "https://push.example.com/x"
	for _, to := range [][4]byte{{127, 0, 0, 1}, {10, 1, 2, 3}, {192, 168, 0, 1}, {169, 254, 169, 254}, {100, 64, 0, 1}, {0, 0, 0, 0}} {
		resolvesTo(t, to)
		r := newRig(t)
		r.paired(t, false)
		device := r.devices.all()[0]
		if err := r.Subscribe(t.Context(), device.ID, newSubscriber(t).at(endpoint)); err != nil {
			t.Fatal(err)
		}
		var refused *dial.RefusedError
		if err := r.pusher.one(t.Context(), r.devices.all()[0], []byte("{}"), "tag"); !errors.As(err, &refused) || refused.Addr != netip.AddrFrom4(to) {
			t.Errorf("%v: %v; want a refusal of this address", to, err)
		}
	}
}
