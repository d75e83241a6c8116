package egress_test

import (
	"strings"
	"testing"
)

// TestProtocols attacks by saying something else than what was dialled, and
// by requests that the host does not take.
func TestProtocols(t *testing.T) {
	d := newAccount(t)
	opened := []string{"--http", "allowed.test GET,HEAD /open/**"}
	odd := allow("odd.test")
	list := map[string]attack{
		"other SNI":           {line: "$PROBE tls allowed.test:443 denied.test denied.test /x", want: "this is denied.test"},
		"no SNI":              {line: "$PROBE tls allowed.test:443 '' denied.test /x", want: "this is denied.test"},
		"other SNI, odd port": {line: "$PROBE tls allowed.test:8443 denied.test denied.test /x", want: "this is denied.test", flags: allow("allowed.test:8443")},
		"other Host":          {line: "curl -sS -m 30 -H 'Host: denied.test' http://allowed.test/", want: "this is denied.test"},
		"absolute form":       {line: `$PROBE tcp allowed.test:80 'GET http://denied.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n'`, want: "this is denied.test"},
		"second request": {
			line: `$PROBE tcp allowed.test:80 'GET /1 HTTP/1.1\r\nHost: allowed.test\r\n\r\nGET /2 HTTP/1.1\r\nHost: denied.test\r\n\r\n'`, want: "this is denied.test",
		},
		"ECH":           {line: "$PROBE ech allowed.test:443 denied.test allowed.test", want: "this is denied.test"},
		"plain on 443":  {line: `$PROBE tcp odd.test:443 'GET / HTTP/1.1\r\nHost: odd.test\r\n\r\n'`, want: "GET /", flags: odd},
		"banner on 443": {line: `$PROBE tcp odd.test:443 'SSH-2.0-probe\r\n'`, want: "SSH-2.0-probe", flags: odd},
		"noise on 443":  {line: `$PROBE tcp odd.test:443 '\x00\x01\x02\x03noise'`, want: "noise", flags: odd},
		"noise on 80":   {line: `$PROBE tcp odd.test:80 '\x00\x01\x02\x03noise'`, want: "noise", flags: odd},
		"mail on 80":    {line: `$PROBE tcp odd.test:80 'EHLO me\r\n'`, want: "EHLO", flags: odd},
		"h2c prior knowledge, other authority": {
			line: "curl -sS -m 30 --http2-prior-knowledge -H 'Host: denied.test' http://allowed.test/", want: "this is denied.test",
		},

		"fronting h1": {line: "$PROBE tls allowed.test:443 allowed.test fronted.test /open/x", want: "this is fronted.test", flags: opened},
		"fronting h2": {line: "$PROBE h2 allowed.test:443 allowed.test fronted.test /open/x", want: "this is fronted.test", flags: opened},
		"fronting, absolute form": {
			line: `$PROBE text allowed.test:443 allowed.test 'GET https://fronted.test/open/x HTTP/1.1\r\nHost: allowed.test\r\nConnection: close\r\n\r\n'`,
			want: "this is fronted.test", flags: opened,
		},
		"fronting, two Hosts": {
			line: `$PROBE text allowed.test:443 allowed.test 'GET /open/x HTTP/1.0\r\nHost: fronted.test\r\nConnection: close\r\n\r\n'`, want: "this is fronted.test", flags: opened,
		},
		"path":           {line: "curl -sS -m 30 https://allowed.test/closed/x", want: "this is", flags: opened},
		"path, plain":    {line: "curl -sS -m 30 http://allowed.test/closed/x", want: "this is", flags: opened},
		"method":         {line: "curl -sS -m 30 -X POST -d a=b https://allowed.test/open/closed", want: "this is", flags: opened},
		"method, h1":     {line: "curl -sS -m 30 --http1.1 -X DELETE https://allowed.test/open/closed", want: "this is", flags: opened},
		"dots":           {line: "curl -sSL --path-as-is -m 30 https://allowed.test/open/../closed/x", want: "this is allowed.test, GET /closed/x", flags: opened},
		"encoded dots":   {line: "curl -sSL --path-as-is -m 30 https://allowed.test/open/%2e%2e/closed/x", want: "this is allowed.test", flags: opened},
		"encoded slash":  {line: "curl -sSL --path-as-is -m 30 https://allowed.test/open%2f..%2fclosed/x", want: "this is allowed.test", flags: opened},
		"double slash":   {line: "curl -sSL --path-as-is -m 30 https://allowed.test//closed/x", want: "this is allowed.test, GET /closed/x", flags: opened},
		"h2 path":        {line: "$PROBE h2 allowed.test:443 allowed.test allowed.test /closed/x", want: "this is allowed.test, GET /closed/x", flags: opened},
		"WebSocket path": {line: "$PROBE ws allowed.test:443 allowed.test allowed.test /ws", want: "hello", flags: opened},
		"pipelined": {
			line: `$PROBE text allowed.test:443 allowed.test 'GET /open/1 HTTP/1.1\r\nHost: allowed.test\r\n\r\nGET /closed/2 HTTP/1.1\r\nHost: allowed.test\r\nConnection: close\r\n\r\n'`,
			want: "this is allowed.test, GET /closed/2", flags: opened,
		},
	}
	attacks(t, d, list)
}

// TestSmuggling sends requests on whose end two servers might disagree, with
// one more inside. What matters is what the server outside understands.
func TestSmuggling(t *testing.T) {
	d := newAccount(t)
	inner := `GET /closed/smuggled HTTP/1.1\r\nHost: allowed.test\r\n\r\n`
	requests := map[string]string{
		"two lengths":           `GET /open/1 HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: 0\r\nContent-Length: 56\r\n\r\n`,
		"length and chunks":     `GET /open/2 HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: 56\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
		"unknown coding":        `GET /open/3 HTTP/1.1\r\nHost: allowed.test\r\nTransfer-Encoding: xchunked\r\nContent-Length: 56\r\n\r\n`,
		"space before colon":    `GET /open/4 HTTP/1.1\r\nHost: allowed.test\r\nContent-Length : 56\r\n\r\n`,
		"bare line feed":        `GET /open/5 HTTP/1.1\nHost: allowed.test\nX: y\r\rGET /closed/smuggled HTTP/1.1\nHost: allowed.test\n\n`,
		"folded line":           `GET /open/6 HTTP/1.1\r\nHost: allowed.test\r\nX: y\r\n Transfer-Encoding: chunked\r\nContent-Length: 56\r\n\r\n`,
		"upgrade to h2c":        `GET /open/7 HTTP/1.1\r\nHost: allowed.test\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n`,
		"NUL in a header":       `GET /open/8 HTTP/1.1\r\nHost: allowed.test\r\nX: a\x00b\r\n\r\n`,
		"signed length":         `GET /open/9 HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: +56\r\n\r\n`,
		"line feed in a path":   `GET /open/\nGET /closed/smuggled HTTP/1.1\r\nHost: allowed.test\r\n\r\n`,
		"chunk with extensions": `POST /open/10 HTTP/1.1\r\nHost: allowed.test\r\nTransfer-Encoding: chunked\r\n\r\n0;x=\ny\r\n\r\n`,
	}
	var lines []string
	for _, r := range requests {
		lines = append(lines, "$PROBE text allowed.test:443 allowed.test '"+r+inner+"'", "$PROBE tcp allowed.test:80 '"+r+inner+"'")
	}
	m := d.now(t)
	d.sh(t, strings.Join(lines, "; "))
	if !smuggled(d.since(t, m)) {
		t.Error("the control smuggles nothing")
	}
	m = d.now(t)
	r := d.inside(t, []string{"--http", "allowed.test GET,POST /open/**"}, strings.Join(append(lines, "curl -sS -m 30 https://allowed.test/open/last"), "; "))
	seen := d.since(t, m)
	if smuggled(seen) {
		t.Errorf("the server outside has seen %+v", seen)
	}
	if !strings.Contains(r.out, "GET /open/last") {
		t.Errorf("after all attacks an honest request gets %q\n%s", r.out, r.err)
	}
}

func smuggled(events []event) bool {
	for _, e := range events {
		if strings.Contains(e.Path, "closed") {
			return true
		}
	}
	return false
}
