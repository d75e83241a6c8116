package dial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
)

// TestTold keeps from a guest where this machine is, whom it asks for names,
// which proxy it uses, and where in the private network a name leads.
func TestTold(t *testing.T) {
	const own, server, inner = "45.83.220.7", "10.1.2.3", "10.77.0.2"
	reset := &net.OpError{Op: "read", Net: "tcp", Source: &net.TCPAddr{IP: net.ParseIP(own), Port: 4321}, Addr: &net.TCPAddr{IP: net.ParseIP("93.184.215.14"), Port: 80}, Err: syscall.ECONNRESET}
	lookup := &net.DNSError{Err: "read udp " + own + ":99->" + server + ":53: i/o timeout", Name: "a.example.", Server: server + ":53", IsTimeout: true}
	closed := &RefusedError{Host: "a.example", Addr: netip.MustParseAddr(inner), Class: "private"}
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"reset":             {fmt.Errorf("no answer: %w (and 2 other addresses fail)", reset), "no answer: read: connection reset by peer (and 2 other addresses fail)"},
		"lookup":            {fmt.Errorf("%q can't be resolved: %w", "a.example", lookup), `"a.example" can't be resolved: no name server answers in time`},
		"no name":           {&net.DNSError{Err: "no such host", Name: "a.example.", Server: server + ":53", IsNotFound: true}, "no such host"},
		"servfail":          {&net.DNSError{Err: "server misbehaving", Name: "a.example.", Server: server + ":53"}, "no name server answers"},
		"private":           {fmt.Errorf("dial: %w", closed), `dial: "a.example" is not at a public address (private); want a host that is, or a rule that names its address`},
		"an address":        {&RefusedError{Host: inner, Addr: netip.MustParseAddr(inner), Class: "private"}, inner + ", which is not"},
		"proxy":             {&ProxyError{Host: "proxy.corp", Err: fmt.Errorf("it answered %q: %w", "407 who are you", reset)}, `the network's proxy: it answered "407 who are you": read: connection reset`},
		"lookup of a proxy": {&ProxyError{Host: "proxy.corp", Err: lookup}, "the network's proxy: no name server answers in time"},
		"joined":            {errors.Join(io.EOF, reset), "EOF\nread: connection reset by peer"},
		"other":             {io.ErrUnexpectedEOF, "unexpected EOF"},
		"none":              {nil, ""},
	} {
		got := Told(c.err)
		if !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		for _, secret := range []string{own, server, inner, "proxy.corp"} {
			if strings.Contains(got, secret) && name != "an address" {
				t.Errorf("%s: %q tells %s", name, got, secret)
			}
		}
	}
}

// TestToldOfDial: what Dial itself returns.
func TestToldOfDial(t *testing.T) {
	d := &Dialer{Lookup: func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("10.77.0.2")}, nil
	}}
	_, _, err := d.Dial(t.Context(), "db.example", 5432)
	if !strings.Contains(fmt.Sprint(err), "10.77.0.2") || strings.Contains(Told(err), "10.77.0.2") {
		t.Errorf("the human hears %q, the guest %q", err, Told(err))
	}
	d = &Dialer{Proxy: &Proxy{host: "127.0.0.1", port: 1}}
	_, _, err = d.Dial(t.Context(), "db.example", 5432)
	if !strings.Contains(fmt.Sprint(err), "127.0.0.1") || strings.Contains(Told(err), "127.0.0.1") {
		t.Errorf("the human hears %q, the guest %q", err, Told(err))
	}
}
