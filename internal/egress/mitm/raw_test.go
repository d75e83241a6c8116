package mitm

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
)

// recorder is a real server that keeps the very bytes it was sent, and answers
// each request.
func (s *saw) recorder(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(io.TeeReader(conn, s))
	for {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		io.Copy(io.Discard, r.Body)
		io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine")
	}
}

// TestSmuggling sends bytes that two parsers may read in two ways, and looks
// at the bytes that the real server got. "secret" must never be a request of
// its own there unless it was decided as one.
func TestSmuggling(t *testing.T) {
	const head = "Host: " + host + "\r\n"
	for _, tt := range []struct {
		name, send string
		decided    string // methods and paths, in order
		answers    string // status codes
		never      []string
	}{
		{"control", "GET /a HTTP/1.1\r\n" + head + "\r\n", "GET /a", "200", nil},
		{"control: a body", "POST /a HTTP/1.1\r\n" + head + "Content-Length: 4\r\n\r\nbody", "POST /a", "200", nil},
		{"pipelining", "GET /a HTTP/1.1\r\n" + head + "\r\nGET /secret HTTP/1.1\r\n" + head + "\r\n", "GET /a,GET /secret", "200,403", []string{"secret"}},
		{"length and chunked", "POST /a HTTP/1.1\r\n" + head + "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /secret HTTP/1.1\r\n" + head + "\r\n", "POST /a,GET /secret", "200,403", []string{"secret", "Content-Length: 6"}},
		{"chunked and length", "POST /a HTTP/1.1\r\n" + head + "Transfer-Encoding: chunked\r\nContent-Length: 60\r\n\r\n4\r\nbody\r\n0\r\n\r\n", "POST /a", "200", []string{"Content-Length"}},
		{"two lengths", "POST /a HTTP/1.1\r\n" + head + "Content-Length: 4\r\nContent-Length: 5\r\n\r\nbody!", "", "400", []string{"/a"}},
		{"two equal lengths", "POST /a HTTP/1.1\r\n" + head + "Content-Length: 4\r\nContent-Length: 4\r\n\r\nbody", "POST /a", "200", []string{"Content-Length: 4\r\nContent-Length"}},
		{"a list of lengths", "POST /a HTTP/1.1\r\n" + head + "Content-Length: 4, 4\r\n\r\nbody", "", "400", []string{"/a"}},
		{"a signed length", "POST /a HTTP/1.1\r\n" + head + "Content-Length: +4\r\n\r\nbody", "", "400", []string{"/a"}},
		{"an unknown coding", "POST /a HTTP/1.1\r\n" + head + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", "", "501", []string{"/a"}},
		{"two codings", "POST /a HTTP/1.1\r\n" + head + "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", "", "501", []string{"/a"}},
		{"two coding lines", "POST /a HTTP/1.1\r\n" + head + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n", "", "501", []string{"/a"}},
		{"a blank before the colon", "POST /a HTTP/1.1\r\n" + head + "Transfer-Encoding : chunked\r\nContent-Length: 4\r\n\r\nbody", "", "400", []string{"/a"}},
		{"a vertical tab in the coding", "POST /a HTTP/1.1\r\n" + head + "Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n", "", "400,501", []string{"/a"}},
		{"a folded header", "GET /a HTTP/1.1\r\n" + head + "X-Fold: a\r\n GET /secret HTTP/1.1\r\n\r\n", "GET /a", "200", []string{"\n GET", "\r\nGET /secret"}},
		{"a bare line feed", "GET /a HTTP/1.1\nHost: " + host + "\nX: y\n\n", "GET /a", "200", []string{"y\n"}},
		{"a bare carriage return", "GET /a HTTP/1.1\r\n" + head + "X: a\rGET /secret HTTP/1.1\r\n\r\n", "", "400", []string{"/a"}},
		{"a NUL", "GET /a HTTP/1.1\r\n" + head + "X: a\x00b\r\n\r\n", "", "400", []string{"/a"}},
		{"chunk extensions", "POST /a HTTP/1.1\r\n" + head + "Transfer-Encoding: chunked\r\n\r\n4;x=\"\r\n\r\nGET /secret\"\r\nbody\r\n0\r\n\r\n", "POST /a", "*", []string{"\nGET /secret"}},
		{"a huge chunk", "POST /a HTTP/1.1\r\n" + head + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff1\r\nx\r\n0\r\n\r\n", "POST /a", "*", []string{"ffffffff"}},
		{"chunked in HTTP/1.0", "POST /a HTTP/1.0\r\n" + head + "Connection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /secret HTTP/1.1\r\n" + head + "\r\n", "*", "*", []string{"secret"}},
		{"the trailer names a header", "POST /a HTTP/1.1\r\n" + head + "Transfer-Encoding: chunked\r\nTrailer: Content-Length\r\n\r\n0\r\nContent-Length: 9\r\n\r\n", "*", "*", []string{"Content-Length: 9"}},
		{"two hosts", "GET /a HTTP/1.1\r\n" + head + "Host: other.example.com\r\n\r\n", "", "400", []string{"/a"}},
		{"a blank in the path", "GET /a HTTP/1.1\r\nX: y /b HTTP/1.1\r\n" + head + "\r\n", "GET /a", "200", []string{"/b HTTP/1.1\r\nHost"}},
		{"a method with a blank", "GET /secret HTTP/1.1 /a HTTP/1.1\r\n" + head + "\r\n", "", "400", []string{"secret"}},
		{"HTTP/2 by its preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "", "*", []string{"PRI"}},
		{"an unknown version", "GET /a HTTP/3.0\r\n" + head + "\r\n", "", "505", []string{"/a"}},
		{"HTTP/0.9", "GET /a\r\n\r\n", "", "400", []string{"/a"}},
		{"hop by hop", "GET /a HTTP/1.1\r\n" + head + "Connection: keep-alive, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 9\r\nProxy-Authorization: Basic eA==\r\nTE: gzip\r\nX-Stays: 1\r\n\r\n", "GET /a", "200", []string{"X-Hop", "Keep-Alive", "Proxy-Auth", "gzip"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var seen saw
			r := newRawRig(t, seen.recorder, func(r *rig) {
				r.Decide = func(_ context.Context, q Request) bawn.Decision {
					if strings.Contains(q.Path, "secret") {
						return bawn.Denied("no", "")
					}
					return bawn.Decision{Verdict: bawn.Allow}
				}
			})
			got := r.raw(tt.send)
			if codes := statusCodes(got); tt.answers != "*" && !strings.Contains(","+tt.answers+",", ","+codes+",") && codes != tt.answers {
				t.Errorf("got the answers %q, want %q:\n%s", codes, tt.answers, got)
			}
			if asked := r.decided(); tt.decided != "*" && asked != tt.decided {
				t.Errorf("decided %q, want %q", asked, tt.decided)
			}
			for _, n := range tt.never {
				if strings.Contains(seen.String(), n) {
					t.Errorf("the server got %q:\n%q", n, &seen)
				}
			}
			wellFormedBytes(t, seen.String())
		})
	}
}

func (r *rig) decided() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, q := range r.asked {
		out = append(out, q.Method+" "+q.Path)
	}
	return strings.Join(out, ",")
}

func statusCodes(text string) string {
	var out []string
	for _, part := range strings.Split(text, "HTTP/1.")[1:] {
		if len(part) > 5 && part[1] == ' ' {
			out = append(out, part[2:5])
		}
	}
	return strings.Join(out, ",")
}

// wellFormedBytes wants each request that a server got to say its length once
// and to end its lines as RFC 9112 does.
func wellFormedBytes(t *testing.T, text string) {
	t.Helper()
	in := bufio.NewReader(strings.NewReader(text))
	for {
		r, err := http.ReadRequest(in)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			t.Errorf("the server got what is no request: %v\n%q", err, text)
			return
		}
		io.Copy(io.Discard, r.Body)
	}
	for head := range strings.SplitSeq(text, "\r\n\r\n") {
		lower := strings.ToLower(head)
		if n := strings.Count(lower, "\ncontent-length:") + strings.Count(lower, "\ntransfer-encoding:"); n > 1 {
			t.Errorf("the server got %d lengths: %q", n, head)
		}
		if strings.Count(lower, "\nhost:") > 1 {
			t.Errorf("the server got two hosts: %q", head)
		}
	}
}

func TestHostMustAgree(t *testing.T) {
	for _, tt := range []struct {
		port uint16
		host string
		want string
	}{
		{443, host, "200"},
		{443, host + ":443", "200"},
		{443, strings.ToUpper(host) + ".", "200"},
		{443, "other.example.com", "421"},
		{443, host + ":444", "421"},
		{443, host + ":0443", "200"},
		{443, host + "@other.example.com", "400,421"},
		{443, "other.example.com@" + host, "400,421"},
		{443, "127.0.0.1", "421"},
		{443, "", "421"},
		{443, host + "/../x", "400"},
		{443, host + ", other.example.com", "400,421"},
		{8443, host, "421"},
		{8443, host + ":8443", "200"},
	} {
		t.Run(tt.host, func(t *testing.T) {
			t.Parallel()
			var seen saw
			r := newRawRig(t, seen.recorder, func(r *rig) { r.target.Port = tt.port })
			answers := 1
			if tt.want == "200" {
				answers = 2
			}
			got := r.rawFor("GET /a HTTP/1.1\r\nHost: "+tt.host+"\r\n\r\nGET /b HTTP/1.1\r\nHost: "+tt.host+"\r\n\r\n", answers)
			codes := statusCodes(got)
			if tt.want == "200" {
				if codes != "200,200" || strings.Count(seen.String(), "Host: "+authority(r.target)+"\r\n") != 2 {
					t.Errorf("got %q, the server %q", codes, &seen)
				}
				return
			}
			// One answer: the connection ends with the first.
			if !strings.Contains(tt.want, codes) || codes == "" || seen.String() != "" {
				t.Errorf("got %q, want %q; the server got %q", codes, tt.want, &seen)
			}
		})
	}
}

func TestRefusedForms(t *testing.T) {
	for _, tt := range []struct{ line, header, want string }{
		{"GET / HTTP/1.1", "", "200"},
		{"GET https://" + host + "/ HTTP/1.1", "", "400"},
		{"GET https://other.example.com/ HTTP/1.1", "", "400"},
		{"OPTIONS * HTTP/1.1", "", "400"},
		{"CONNECT " + host + ":443 HTTP/1.1", "", "405"},
		{"CONNECT /x HTTP/1.1", "", "405"},
		{"TRACE / HTTP/1.1", "", "405"},
		{"POST / HTTP/1.1", "X-HTTP-Method-Override: DELETE\r\nContent-Length: 0\r\n", "400"},
		{"POST / HTTP/1.1", "x_http_method_override: DELETE\r\nContent-Length: 0\r\n", "400"},
		{"POST / HTTP/1.1", "Trailer: X-HTTP-Method-Override\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", "400"},
		{"POST / HTTP/1.1", "X.Original_URL: /secret\r\nContent-Length: 0\r\n", "400"},
		{"POST / HTTP/1.1", "X-HTTP-Method-Override: \r\nX-HTTP-Method-Override: DELETE\r\nContent-Length: 0\r\n", "400"},
		{"POST / HTTP/1.1", "X-HTTP-Verb-Override: DELETE\r\nContent-Length: 0\r\n", "400"},
		{"GET / HTTP/1.1", "X-HTTP-Path-Override: /admin\r\n", "400"},
		{"GET / HTTP/1.1", "X-Override-URL: /admin\r\n", "400"},
		{"GET / HTTP/1.1", "X-Forwarded-Method: DELETE\r\n", "400"},
		{"GET / HTTP/1.1", "x_forwarded_prefix: /admin\r\n", "400"},
		{"GET / HTTP/1.1", "X-Forwarded-Uri: /admin\r\n", "400"},
		{"GET / HTTP/1.1", "X-Forwarded-Path: /admin\r\n", "400"},
		{"GET / HTTP/1.1", "X-Original-Method: DELETE\r\n", "400"},
		{"GET / HTTP/1.1", "X-Rewritten-URL: /admin\r\n", "400"},
		{"GET / HTTP/1.1", "X-HTTP-Method: DELETE\r\n", "400"},
		{"GET / HTTP/1.1", "X-Forwarded-For: 10.0.0.1\r\nX-Forwarded-Proto: https\r\nX-Original-Host: a\r\nForwarded: for=a\r\n", "200"},
		{"GET / HTTP/1.1", "Content-Method: a\r\nX-Path: /a\r\nAccess-Control-Request-Method: PUT\r\n", "200"},
		{"GET /?override=1&path=/a&url=x HTTP/1.1", "", "200"},
		{"GET /?x_http_verb_override=DELETE HTTP/1.1", "", "400"},
		{"GET /?a=b&_method=DELETE HTTP/1.1", "", "400"},
		{"GET /?a=b;_Meth%6fd=DELETE HTTP/1.1", "", "400"},
		{"GET /?x-http-method-override=DELETE HTTP/1.1", "", "400"},
		{"GET / HTTP/1.1", "X-Original-URL: /admin\r\n", "400"},
	} {
		t.Run(tt.line+tt.header, func(t *testing.T) {
			t.Parallel()
			var seen saw
			r := newRawRig(t, seen.recorder, nil)
			name := host
			if strings.HasPrefix(tt.line, "CONNECT "+host) {
				name += ":443"
			}
			got := statusCodes(r.raw(tt.line + "\r\nHost: " + name + "\r\n" + tt.header + "\r\n"))
			if tt.line == "GET https://other.example.com/ HTTP/1.1" {
				tt.want = "421" // the URL's host comes before Host
			}
			if got != tt.want || (seen.String() == "") != (tt.want != "200") {
				t.Errorf("got %q, want %q; the server got %q", got, tt.want, &seen)
			}
		})
	}
}

func TestUpgradesAreDropped(t *testing.T) {
	for _, upgrade := range []string{"h2c", "websocket, h2c", "TLS/1.0", "Websocket"} {
		var seen saw
		r := newRawRig(t, seen.recorder, nil)
		got := statusCodes(r.raw("GET / HTTP/1.1\r\nHost: " + host + "\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: " + upgrade + "\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n"))
		passes := upgrade == "Websocket" // the control
		if got != "200" || strings.Contains(seen.String(), "Upgrade:") != passes || strings.Contains(seen.String(), "Http2") {
			t.Errorf("upgrade to %q: %q; the server got %q", upgrade, got, &seen)
		}
	}
}

func TestOldClients(t *testing.T) {
	r := newRig(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.(http.Flusher).Flush() // no length: chunked for those who know it
		io.WriteString(w, "fine")
	}), nil)
	for _, head := range []string{"GET / HTTP/1.0\r\n\r\n", "GET / HTTP/1.0\r\nHost: " + host + "\r\n\r\n"} {
		got := r.raw(head)
		if !strings.HasPrefix(got, "HTTP/1.0 200") || !strings.HasSuffix(got, "\r\n\r\nfine") || strings.Contains(got, "chunked") {
			t.Errorf("%q got %q", head, got)
		}
	}
}

func TestHeaderLimits(t *testing.T) {
	big := strings.Repeat("x", maxHeader+8<<10)
	r := newRig(t, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path == "/big" {
			w.Header().Set("X-Big", big)
		}
	}), nil)
	for _, h2 := range []bool{false, true} {
		c := r.client(h2)
		if res, _ := r.do(c, request(t, "GET", r.url("/"), nil, "X-Big", big[:maxRequest/2])); res.StatusCode != 200 {
			t.Errorf("control: %d", res.StatusCode)
		}
		if res, body := r.do(c, request(t, "GET", r.url("/big"), nil)); res.StatusCode != 502 {
			t.Errorf("a huge header from the host: %d %.80q", res.StatusCode, body)
		}
	}
	if got := statusCodes(r.raw("GET / HTTP/1.1\r\nHost: " + host + "\r\nX-Big: " + big[:2*maxRequest] + "\r\n\r\n")); got != "431" {
		t.Errorf("a huge header from the guest: %q", got)
	}
	q := request(t, "GET", r.url("/"), nil, "X-Big", big[:2*maxRequest])
	if res, err := r.client(true).Do(q); err == nil && res.StatusCode != 431 {
		t.Errorf("a huge header from the guest over HTTP/2: %d", res.StatusCode)
	}
}

func TestLongPath(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		r := newRig(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), nil)
		if res, _ := r.do(r.client(h2), request(t, "GET", r.url("/"+strings.Repeat("x", maxPath-9)+"?"+strings.Repeat("y", maxPath)), nil)); res.StatusCode != 200 {
			t.Errorf("control: %d", res.StatusCode)
		}
		if res, _ := r.do(r.client(h2), request(t, "GET", r.url("/"+strings.Repeat("\"", maxPath/2)), nil)); res.StatusCode != 414 || len(r.asked) != 1 {
			t.Errorf("a path that is long as it is recorded: %d, %d were decided on", res.StatusCode, len(r.asked))
		}
		if res, _ := r.do(r.client(h2), request(t, strings.Repeat("X", maxPath), r.url("/"), nil)); res.StatusCode != 414 || len(r.asked) != 1 {
			t.Errorf("a long method: %d, %d were decided on", res.StatusCode, len(r.asked))
		}
	}
}

func TestSlowHeader(t *testing.T) {
	r := newRig(t, http.NotFoundHandler(), func(r *rig) { r.HeaderTimeout = 2 * time.Second })
	slow := r.conn()
	io.WriteString(slow, "GET / HTTP/1.1\r\nHost: "+host+"\r\nX: ")
	silent, err := net.Dial("tcp", "127.0.0.1:"+r.port) // never begins its handshake
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	if res, _ := r.do(r.client(false), request(t, "GET", r.url("/"), nil)); res.StatusCode != 404 {
		t.Errorf("another guest beside the slow one: %d", res.StatusCode)
	}
	for name, conn := range map[string]net.Conn{"slow": slow, "silent": silent} {
		conn.SetReadDeadline(time.Now().Add(20 * time.Second))
		if _, err := io.ReadAll(conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the %s guest's connection is still open", name)
		}
	}
}
