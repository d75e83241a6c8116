package relay

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
)

// through asks the rig's proxy for a tunnel and returns its answer's code, the
// body of a refusal, and the connection.
func (r *rig) through(target string) (int, string, *net.TCPConn) {
	r.t.Helper()
	c := connect(r.t, r.proxy)
	fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", target, target)
	in := bufio.NewReaderSize(c, 16)
	res, err := http.ReadResponse(in, &http.Request{Method: http.MethodConnect})
	if err != nil {
		r.t.Fatal(err)
	}
	text := ""
	if res.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(io.LimitReader(in, 1<<10))
		text = string(b)
	}
	return res.StatusCode, text, c
}

// What a client of the proxy asks for is decided like what it dials, and an
// address that our resolver gave out stands for its name.
func TestProxied(t *testing.T) {
	r := newRig(t, echo, func(r *rig) {
		r.Guard.Decider = deciderFunc(func(a bawn.Action) bawn.Decision {
			if !strings.HasPrefix(a.Resource, site+":") {
				return bawn.Denied("not this one", "test:no")
			}
			return allow(a)
		})
	})
	ours, err := r.Names.Address(site, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{site, ours.String()} {
		code, _, c := r.through(host + ":9000")
		io.WriteString(c, "\x00hi")
		b := make([]byte, 3)
		if _, err := io.ReadFull(c, b); code != 200 || err != nil || string(b) != "\x00hi" {
			t.Errorf("%s: %d, %q, %v", host, code, b, err)
		}
		c.Close()
	}
	for target, rule := range map[string]string{"evil.example:443": "test:no", "192.0.2.1:443": "test:no", "127.0.0.1:22": "test:no", "198.18.250.250:443": RuleStale} {
		code, text, _ := r.through(target)
		if code != 403 || !strings.Contains(text, rule) || !slices.Contains(r.denied(), rule) {
			t.Errorf("%s: %d %q, told %v; want %s", target, code, text, r.denied(), rule)
		}
	}
	_, _, c := r.through(site + ":443")
	io.WriteString(c, helloFor("evil.example"))
	if answer, _ := io.ReadAll(c); !slices.Contains(r.denied(), RuleAgree) {
		t.Errorf("another name inside of the tunnel: %q", answer)
	}
}

// SOCKS with a name, and what is no proxy's protocol.
func TestProxiedSOCKS(t *testing.T) {
	r := newRig(t, echo, nil)
	c := connect(t, r.proxy)
	io.WriteString(c, "\x05\x01\x00")
	io.ReadFull(c, make([]byte, 2))
	io.WriteString(c, "\x05\x01\x00\x03"+string([]byte{byte(len(site))})+site+"\x23\x28")
	b := make([]byte, 10)
	if _, err := io.ReadFull(c, b); err != nil || b[1] != 0 {
		t.Fatalf("SOCKS: %x, %v", b, err)
	}
	io.WriteString(c, "\x00x")
	if _, err := io.ReadFull(c, b[:2]); err != nil {
		t.Error(err)
	}
	if e := r.recorded("connect", 1); e.Resource != site+":9000" {
		t.Errorf("decided on %q", e.Resource)
	}
	bad := connect(t, r.proxy)
	io.WriteString(bad, "\x00\x00\x00")
	if _, err := io.ReadAll(bad); !isReset(err) {
		t.Errorf("no proxy's protocol: %v; want a reset", err)
	}
	if r.dials.Load() != 1 {
		t.Errorf("dialled %d times", r.dials.Load())
	}
}
