package egress_test

import (
	"strings"
	"testing"
)

// TestInsisting serves clients that insist on a proxy, by the same rules: what
// they name is what is decided on, and odd names are refused.
func TestInsisting(t *testing.T) {
	d := newAccount(t, "python3")
	flags := append(allow("allowed.test", "allowed.test:7777", "private.test"), "--http", "api.test GET /open/**")
	const proxy = "127.0.0.1:61128"
	socks := func(host string, port int) string {
		return "python3 -c 'import socket,sys;h=b\"" + host + "\";s=socket.create_connection((\"127.0.0.1\",61128),5);s.settimeout(3);s.sendall(b\"\\5\\1\\0\");s.recv(2);" +
			"s.sendall(b\"\\5\\1\\0\\3\"+bytes([len(h)])+h+b\"\\0\\x50\");r=s.recv(10);print(\"reply\",r[1:2].hex());" +
			"s.sendall(b\"GET / HTTP/1.1\\r\\nHost: denied.test\\r\\n\\r\\n\");print(s.recv(999).decode())'"
	}
	lines := []struct{ line, want, never string }{
		{"curl -sS -m 30 -p -x http://" + proxy + " https://allowed.test/a", "this is allowed.test, GET /a", ""},
		{"curl -sS -m 30 -x http://" + proxy + " http://allowed.test/b", "this is allowed.test, GET /b", ""},
		{"curl -sS -m 30 -x socks5h://" + proxy + " https://allowed.test/c", "this is allowed.test, GET /c", ""},
		{"curl -sS -m 30 -x http://" + proxy + " https://api.test/open/d", "this is api.test, GET /open/d", ""},
		{"curl -sS -m 30 -x http://" + proxy + " https://api.test/closed/e", "refused", "this is"},
		{"curl -sS -m 30 -x http://" + proxy + " https://denied.test/", "403", "this is"},
		{"curl -sS -m 30 -x http://" + proxy + " http://denied.test/", "denied", "this is"},
		{"curl -sS -m 30 -x socks5h://" + proxy + " https://denied.test/", "", "this is"},
		{"curl -sS -m 30 -x socks5://" + proxy + " http://denied.test/", "", "this is"},
		{"curl -sS -m 30 -p -x http://" + proxy + " http://93.184.215.15/", "403", "this is"},
		{"curl -sS -m 30 -p -x http://" + proxy + " http://private.test/", "", "this is"},
		{"curl -sS -m 30 -x http://" + proxy + " http://allowed.test/ -H 'Host: denied.test'", "", "this is"},
		{`$PROBE tcp ` + proxy + ` 'CONNECT denied.test:443 HTTP/1.1\r\nHost: allowed.test:443\r\n\r\n'`, "", "200 "},
		{`$PROBE tcp ` + proxy + ` 'CONNECT allowed.test\x00.denied.test:443 HTTP/1.1\r\n\r\n'`, "", "200 "},
		{`$PROBE tcp ` + proxy + ` 'CONNECT allowed.test@denied.test:443 HTTP/1.1\r\n\r\n'`, "", "200 "},
		{`$PROBE tcp ` + proxy + ` 'CONNECT 127.0.0.1:22 HTTP/1.1\r\n\r\n'`, "", "200 "},
		{`$PROBE tcp ` + proxy + ` 'CONNECT 0x5db8d70f:80 HTTP/1.1\r\n\r\n'`, "", "200 "},
		{socks("denied.test\\0.allowed.test", 80), "reply", "reply 00"},
		{socks("denied.test\\r\\n.allowed.test", 80), "reply", "reply 00"},
		{socks("denied.test", 80), "reply", "reply 00"},
	}
	script := make([]string, len(lines))
	for i, l := range lines {
		script[i] = l.line
	}
	m := d.now(t)
	for i, r := range d.lines(t, func(s string) result { return d.inside(t, flags, s) }, script) {
		l := lines[i]
		if !strings.Contains(r.out, l.want) || l.never != "" && strings.Contains(r.out, l.never) {
			t.Errorf("%s says %q after %v, want %q and not %q", l.line, r.out, r.took, l.want, l.never)
		}
	}
	d.nothingElse(t, m, attack{flags: flags, may: []string{"api.test"}})
}
