package webui

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// TestOtherOrigins sends what another site could make a browser send, with the
// login's cookie. The control is the same request unchanged.
func TestOtherOrigins(t *testing.T) {
	for name, one := range map[string]struct {
		change func(*http.Request)
		want   int
	}{
		"another site's fetch": {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, http.StatusForbidden},
		"another port's fetch": {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") }, http.StatusForbidden},
		"another origin":       {func(r *http.Request) { r.Header.Set("Origin", "https://evil.example"); r.Header.Del("Sec-Fetch-Site") }, http.StatusForbidden},
		"plain HTTP's origin": {func(r *http.Request) {
			r.Header.Set("Origin", "http"+strings.TrimPrefix(r.Header.Get("Origin"), "https"))
		}, http.StatusForbidden},
		"the null origin":         {func(r *http.Request) { r.Header.Set("Origin", "null"); r.Header.Del("Sec-Fetch-Site") }, http.StatusForbidden},
		"no origin":               {func(r *http.Request) { r.Header.Del("Origin"); r.Header.Del("Sec-Fetch-Site") }, http.StatusForbidden},
		"two origins":             {func(r *http.Request) { r.Header.Add("Origin", "https://evil.example") }, http.StatusForbidden},
		"a form":                  {func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, http.StatusUnsupportedMediaType},
		"a form, encoded":         {func(r *http.Request) { r.Header.Set("Content-Type", "application/x-www-form-urlencoded") }, http.StatusUnsupportedMediaType},
		"no content type":         {func(r *http.Request) { r.Header.Del("Content-Type") }, http.StatusUnsupportedMediaType},
		"a name that leads here":  {func(r *http.Request) { r.Host = "rebound.example:" + r.URL.Port() }, http.StatusMisdirectedRequest},
		"the address":             {func(r *http.Request) { r.Host = "127.0.0.1:" + r.URL.Port() }, http.StatusMisdirectedRequest},
		"another port":            {func(r *http.Request) { r.Host = "localhost" }, http.StatusMisdirectedRequest},
		"a method without effect": {func(r *http.Request) { r.Method = http.MethodPut }, http.StatusMethodNotAllowed},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			b := r.paired(t, false)
			if status := b.looks(); status != http.StatusOK {
				t.Fatalf("control: %d", status)
			}
			for _, method := range []string{"ApprovalService/Answer", "CopyService/Apply", "CopyService/Discard"} {
				request := b.request(method, words{})
				one.change(request)
				if status, _ := b.do(request); status != one.want {
					t.Errorf("%s: status %d; want %d", method, status, one.want)
				}
			}
			if !r.records.has(opRefuse, "") {
				t.Error("the refusal is not recorded")
			}
		})
	}
}

// TestGetChangesNothing: the API has no GET, which other sites could make a
// browser send by a link.
func TestGetChangesNothing(t *testing.T) {
	called := false
	r := newRig(t, func(o *Options) {
		o.API = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { called = true; apiOfRig(w, r) })
	})
	b := r.paired(t, false)
	request := b.request("ApprovalService/Answer?connect=v1&encoding=json&message={}", words{})
	request.Method, request.Body = http.MethodGet, nil
	b.do(request)
	if called {
		t.Error("a GET reached the API")
	}
	if b.looks(); !called {
		t.Error("control: a POST did not")
	}
}

// TestOtherSitesLoadNothing: a link leads to the page; a script element of
// another site gets nothing.
func TestOtherSitesLoadNothing(t *testing.T) {
	r := newRig(t)
	b := r.browser(t)
	for _, one := range []struct {
		site, mode, dest string
		want             int
	}{
		{"none", "navigate", "document", http.StatusOK},
		{"same-origin", "no-cors", "script", http.StatusOK},
		{"cross-site", "navigate", "document", http.StatusOK},
		{"cross-site", "navigate", "iframe", http.StatusForbidden},
		{"cross-site", "no-cors", "script", http.StatusForbidden},
		{"same-site", "no-cors", "image", http.StatusForbidden},
	} {
		request := b.request("x", nil)
		request.Method, request.Body, request.URL.Path = http.MethodGet, nil, "/"
		request.Header.Set("Sec-Fetch-Site", one.site)
		request.Header.Set("Sec-Fetch-Mode", one.mode)
		request.Header.Set("Sec-Fetch-Dest", one.dest)
		if status, _ := b.do(request); status != one.want {
			t.Errorf("%+v: status %d", one, status)
		}
	}
}

// TestHeaders: every answer says what browsers may do with it, also refusals.
func TestHeaders(t *testing.T) {
	r := newRig(t)
	b := r.browser(t)
	for _, one := range []struct {
		path, host  string
		status      int
		kind, cache string
	}{
		{"/", "", http.StatusOK, "text/html; charset=utf-8", "no-cache"},
		{"/sessions/abc", "", http.StatusOK, "text/html; charset=utf-8", "no-cache"},
		{"/assets/main-abc1.js", "", http.StatusOK, "text/javascript; charset=utf-8", "public, max-age=31536000, immutable"},
		{"/bawn-ca.crt", "", http.StatusOK, "application/x-x509-ca-cert", "no-store"},
		{"/no.js", "", http.StatusNotFound, "", ""},
		{"/secret.pem", "", http.StatusNotFound, "", ""},
		{"/..%2f..%2fetc%2fpasswd.txt", "", http.StatusNotFound, "", ""},
		{"/", "other.example", http.StatusMisdirectedRequest, "", "no-store"},
	} {
		request, err := http.NewRequest(http.MethodGet, r.origin+one.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if one.host != "" {
			request.Host = one.host
		}
		answer, err := b.client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		h := answer.Header
		if answer.StatusCode != one.status || one.kind != "" && h.Get("Content-Type") != one.kind || one.cache != "" && h.Get("Cache-Control") != one.cache {
			t.Errorf("%s: %d %q %q; want %+v", one.path, answer.StatusCode, h.Get("Content-Type"), h.Get("Cache-Control"), one)
		}
		csp := h.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'", "script-src 'self';"} {
			if !strings.Contains(csp, want) {
				t.Errorf("%s: policy %q has no %q", one.path, csp, want)
			}
		}
		if strings.Contains(csp, "unsafe") || strings.Contains(csp, "*") || strings.Contains(csp, "http") {
			t.Errorf("%s: policy %q lets something else in", one.path, csp)
		}
		for name, value := range headers {
			if name != "Cache-Control" && h.Get(name) != value {
				t.Errorf("%s: %s is %q; want %q", one.path, name, h.Get(name), value)
			}
		}
		if h.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: another origin may read it", one.path)
		}
	}
}

// TestOnlyTLS: without TLS 1.3 nothing is served.
func TestOnlyTLS(t *testing.T) {
	r := newRig(t)
	address := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), r.port).String()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if text, _ := io.ReadAll(conn); bytes.Contains(text, []byte("<title>")) || !bytes.HasPrefix(text, []byte("HTTP/1.0 400")) {
		t.Errorf("over plain HTTP: %q; want 400", text)
	}
	for version, want := range map[uint16]bool{tls.VersionTLS12: false, tls.VersionTLS13: true} {
		conn, err := tls.Dial("tcp", address, &tls.Config{RootCAs: r.roots, ServerName: "localhost", MaxVersion: version})
		if err == nil {
			conn.Close()
		}
		if (err == nil) != want {
			t.Errorf("%s: %v", tls.VersionName(version), err)
		}
	}
}

// TestBodies: a large body and one that does not come are cut off; the control
// is a body just as large as is allowed.
func TestBodies(t *testing.T) {
	r := newRig(t)
	b := r.paired(t, false)
	for size, want := range map[int]int{maxBody: http.StatusOK, maxBody + 1: http.StatusTooManyRequests} { // resource_exhausted, as Connect says it
		request := b.request("ApprovalService/List", nil)
		request.Body, request.ContentLength = io.NopCloser(bytes.NewReader(bytes.Repeat([]byte(" "), size))), int64(size)
		if status, _ := b.do(request); status != want {
			t.Errorf("%d bytes: %d; want %d", size, status, want)
		}
	}
	r.bodyTime = 100 * time.Millisecond
	out, in := io.Pipe()
	defer in.Close()
	request := b.request("ApprovalService/List", nil)
	request.Body, request.ContentLength = out, 5
	began := time.Now()
	if answer, err := b.client.Do(request); err == nil {
		answer.Body.Close()
		if answer.StatusCode == http.StatusOK {
			t.Errorf("a body that does not come: %d", answer.StatusCode)
		}
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("a body that does not come is waited for %s", took)
	}
}

// TestSlowReader: who does not read is cut off.
func TestSlowReader(t *testing.T) {
	ended := make(chan error, 1)
	r := newRig(t, func(o *Options) {
		o.API = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			chunk := make([]byte, 1<<20)
			for range 1000 {
				if _, err := w.Write(chunk); err != nil {
					ended <- err
					return
				}
			}
			ended <- nil
		})
	})
	b := r.paired(t, false)
	r.writeTime = 200 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	answer, err := b.client.Do(b.request("ApprovalService/List", words{}).WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if err := testenv.Receive(t, "the end of what nobody reads", ended); err == nil {
		t.Error("a gigabyte went to somebody who reads nothing")
	}
}

// TestAttemptsAreCounted: guessing ends soon; the page itself goes on.
func TestAttemptsAreCounted(t *testing.T) {
	r := newRig(t)
	b := r.browser(t)
	limited := 0
	for range 30 {
		if status, _ := b.call("AuthService/BeginPair", words{"code": strings.Repeat("A", longSize)}); status == http.StatusTooManyRequests {
			limited++
		}
	}
	if limited < 15 {
		t.Errorf("%d of 30 attempts were refused; want most", limited)
	}
	if status, _ := b.call("AuthService/Me", words{}); status != http.StatusOK {
		t.Errorf("Me: %d; want 200", status)
	}
	if !r.records.has(opRefuse, "too many attempts") {
		t.Error("not recorded")
	}
}

// TestLimiter: addresses don't take from each other, IPv6 is counted by /64,
// and all together have a limit.
func TestLimiter(t *testing.T) {
	now := time.Unix(0, 0)
	l := newLimiter(1, 5, 10, 12, func() time.Time { return now })
	take := func(address string) (n int) {
		for range 20 {
			if l.allow(netip.MustParseAddr(address)) {
				n++
			}
		}
		return n
	}
	if n := take("192.0.2.1"); n != 5 {
		t.Errorf("one address: %d; want 5", n)
	}
	if n := take("2001:db8::1") + take("2001:db8::2"); n != 5 {
		t.Errorf("two of a /64: %d; want 5", n)
	}
	if n := take("192.0.2.3"); n != 2 {
		t.Errorf("the rest of all: %d; want 2", n)
	}
	now = now.Add(3 * time.Second)
	if n := take("::ffff:192.0.2.1"); n != 3 {
		t.Errorf("after 3 s: %d; want 3", n)
	}
	many := newLimiter(1, 5, 1e9, 1e9, func() time.Time { return now })
	for i := range maxPeers + 1000 {
		many.allow(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}))
	}
	if len(many.peers) > maxPeers {
		t.Errorf("%d addresses are kept; want at most %d", len(many.peers), maxPeers)
	}
}

// TestRefusalsDontFloodTheLog: of a thousand, some are recorded and the others
// counted.
func TestRefusalsDontFloodTheLog(t *testing.T) {
	r := newRig(t)
	request := &http.Request{RemoteAddr: "127.0.0.1:9", Header: http.Header{}}
	for range 1000 {
		r.refusals.add(request, "x", "no")
	}
	r.clock.forward(time.Minute)
	r.refusals.add(request, "x", "last")
	n := len(r.records.events)
	if last := r.records.events[n-1]; n > refusalBurst+2 || last.Details["refusals not recorded"] == "" {
		t.Errorf("%d events, the last %v; want about %d and a count", n, last, refusalBurst)
	}
}

// TestVisitsAreLimited: one device can't hold everything.
func TestVisitsAreLimited(t *testing.T) {
	var v visits
	for i := range maxVisits + 5 {
		_, _, ok := v.begin(t.Context(), visit{device: "a"})
		if ok != (i < maxVisits) {
			t.Fatalf("visit %d: %v", i, ok)
		}
	}
	if _, _, ok := v.begin(t.Context(), visit{device: "b"}); !ok {
		t.Error("another device's visit is refused")
	}
}
