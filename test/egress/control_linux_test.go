package egress_test

import (
	"slices"
	"strings"
	"testing"
)

// TestControl shows that on the machine, without bawn, everything works that the
// other tests want refused.
func TestControl(t *testing.T) {
	d := newAccount(t)
	for name, a := range reachable() {
		t.Run(name, func(t *testing.T) {
			m := d.now(t)
			r := d.sh(t, a.line)
			if r.code != 0 || !strings.Contains(r.out, a.want) {
				t.Errorf("%s ended with %d after %v and said\n%s%s", a.line, r.code, r.took, r.out, r.err)
			}
			if a.server != "" && !slices.ContainsFunc(d.since(t, m), func(e event) bool { return e.Server == a.server }) {
				t.Errorf("no %s outside has seen it, but %v", a.server, d.since(t, m))
			}
		})
	}
}

type control struct{ line, want, server string }

// reachable are one client for each kind of server.
func reachable() map[string]control {
	c := map[string]control{
		"http":     {"curl -sS -m 30 http://denied.test/x", "this is denied.test, GET /x", "http"},
		"https":    {"curl -sS -m 30 https://denied.test/x", "this is denied.test, GET /x", "https"},
		"http2":    {"curl -sS -m 30 -o /dev/null -w 'version %{http_version}' --http2 https://denied.test/", "version 2", "https"},
		"sni":      {"$PROBE tls 93.184.215.15:443 allowed.test denied.test", "this is denied.test", "https"},
		"h2":       {"$PROBE h2 93.184.215.15:443 allowed.test denied.test /y", "this is denied.test, GET /y", "https"},
		"ws":       {"$PROBE ws denied.test:443 denied.test denied.test /ws", "hello", "https"},
		"raw":      {"$PROBE tcp denied.test:7777 abc", "abc", "raw"},
		"first":    {"$PROBE tcp denied.test:2525 abc", "220 hello\r\nabc", "first"},
		"udp":      {"$PROBE udp denied.test:7 abc", "abc", "udp"},
		"quic":     {"$PROBE udp denied.test:443 abc", "abc", "udp"},
		"ping":     {"$PROBE ping 93.184.215.15", "pong", ""},
		"open dns": {"$PROBE dns udp " + openDNS + ":53 TXT x.tunnel.test.", "RCodeSuccess 1", "dns"},
		"dns tcp":  {"$PROBE dns tcp " + openDNS + ":53 A x.tunnel.test.", "RCodeSuccess 1", "dns"},
		"tunnel":   {"$PROBE dns udp " + resolverV4 + ":53 TXT secret.tunnel.test.", "RCodeSuccess 1", "dns"},
		"proxy":    {"curl -sS -m 30 -x http://proxy.test:3128 https://denied.test/", "this is denied.test", "proxy"},
		"alias":    {"curl -sS -m 30 http://alias.test/", "this is alias.test", "http"},
		"idn":      {"curl -sS -m 30 http://bücher.test/", "this is xn--bcher-kva.test", "http"},
		"redirect": {"curl -sSL -m 30 'http://allowed.test/redirect?to=http://private.test/'", "this is private.test", "http"},
		"rebind":   {"curl -sS -m 30 http://rebind.test/; curl -sS -m 30 http://rebind.test/", "this is rebind.test", "http"},
		"many":     {"$PROBE many 50 10 denied.test:7777", "50 of 50", "raw"},
	}
	for _, name := range []string{
		"private.test", "private172.test", "private192.test", "metadata.test", "cgnat.test", "docs.test", "bench.test", "metadata6.test",
		"ula.test", "mapped.test", "nat64.test", "sixtofour.test", "teredo.test",
	} {
		c["http to "+name] = control{"curl -sS -m 30 http://" + name + "/", "this is " + name, "http"}
	}
	return c
}
