package proxy

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/bawn-dev/bawn/internal/egress/refuse"
	"github.com/bawn-dev/bawn/internal/hostname"
)

// fake is a connection whose client says what r returns and ends.
type fake struct {
	net.Conn
	r      io.Reader
	wrote  bytes.Buffer
	closed bool
}

func (f *fake) Read(b []byte) (int, error)       { return f.r.Read(b) }
func (f *fake) Write(b []byte) (int, error)      { return f.wrote.Write(b) }
func (f *fake) Close() error                     { f.closed = true; return nil }
func (f *fake) SetDeadline(time.Time) error      { return nil }
func (f *fake) SetReadDeadline(time.Time) error  { return nil }
func (f *fake) SetWriteDeadline(time.Time) error { return nil }

// accepted is what becomes of a client: where it wants to go, what it was
// answered and what is passed on.
type accepted struct {
	Request
	answer, passed string
}

// accept lets a client in that says raw, whole and byte by byte.
func accept(t *testing.T, raw string) accepted {
	t.Helper()
	var out [2]accepted
	for i, r := range []io.Reader{strings.NewReader(raw), iotest.OneByteReader(strings.NewReader(raw))} {
		conn := &fake{r: r}
		c, err := Handshake(conn)
		if err != nil {
			t.Fatalf("Handshake(%q): %v", raw, err)
		}
		through, err := c.Accept()
		if err != nil || conn.closed {
			t.Fatalf("Accept after %q: %v, closed %t", raw, err, conn.closed)
		}
		passed, err := io.ReadAll(through)
		if err != nil {
			t.Fatalf("reading after %q: %v", raw, err)
		}
		out[i] = accepted{c.Request, conn.wrote.String(), string(passed)}
	}
	if out[0] != out[1] {
		t.Errorf("%q depends on how the bytes come:\n%+v\n%+v", raw, out[0], out[1])
	}
	return out[0]
}

// refused wants a refusal of raw, and returns the answer.
func refused(t *testing.T, raw string) string {
	t.Helper()
	conn := &fake{r: strings.NewReader(raw)}
	c, err := Handshake(conn)
	if err == nil || c != nil || !conn.closed {
		t.Errorf("Handshake(%.200q) = %+v, %v, closed %t; want a refusal", raw, c, err, conn.closed)
	}
	return conn.wrote.String()
}

func TestConnect(t *testing.T) {
	for raw, want := range map[string]Request{
		"CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n":                       {Connect, "a.example", 443},
		"CONNECT A.Example.:22 HTTP/1.1\r\nHost: a.example\r\nProxy-Authorization: x\r\n\r\n": {Connect, "a.example", 22},
		"CONNECT a.example:443 HTTP/1.0\r\n\r\n":                                              {Connect, "a.example", 443}, // Python before 3.12
		"CONNECT 192.0.2.1:5432 HTTP/1.1\r\nContent-Length: 0\r\n\r\n":                        {Connect, "192.0.2.1", 5432},
		"CONNECT [2001:db8::1]:443 HTTP/1.1\r\nHost: [2001:DB8::1]:443\r\n\r\n":               {Connect, "2001:db8::1", 443},
		"CONNECT [::ffff:192.0.2.1]:443 HTTP/1.1\r\n\r\n":                                     {Connect, "192.0.2.1", 443},
	} {
		for _, early := range []string{"", "\x16\x03\x01 early"} {
			if got := accept(t, raw+early); got != (accepted{want, established, early}) {
				t.Errorf("%q: got %+v; want %+v", raw+early, got, want)
			}
		}
	}
}

func TestHTTPRefusals(t *testing.T) {
	const to = "CONNECT a.example:443 HTTP/1.1\r\n"
	for _, raw := range []string{
		"CONNECT a.example HTTP/1.1\r\n\r\n",
		"CONNECT a.example:0 HTTP/1.1\r\n\r\n",
		"CONNECT a.example:65536 HTTP/1.1\r\n\r\n",
		"CONNECT a.example:0443 HTTP/1.1\r\n\r\n",
		"CONNECT :443 HTTP/1.1\r\n\r\n",
		"CONNECT /rpc HTTP/1.1\r\nHost: a.example\r\n\r\n",
		"CONNECT http://a.example:443 HTTP/1.1\r\n\r\n",
		"CONNECT u@a.example:443 HTTP/1.1\r\n\r\n",
		"CONNECT evil.example\x00.a.example:443 HTTP/1.1\r\n\r\n",
		"CONNECT evil.example%00.a.example:443 HTTP/1.1\r\n\r\n",
		"CONNECT a.example:443\r\n\r\n",
		"CONNECT a.example:443 b HTTP/1.1\r\n\r\n",
		"CONNECT \xc3\xa4.example:443 HTTP/1.1\r\n\r\n",
		"CONNECT 2130706433:443 HTTP/1.1\r\n\r\n",
		"CONNECT 0x7f000001:443 HTTP/1.1\r\n\r\n",
		"CONNECT 0177.0.0.1:443 HTTP/1.1\r\n\r\n",
		"CONNECT 127.1:443 HTTP/1.1\r\n\r\n",
		"CONNECT ::1:443 HTTP/1.1\r\n\r\n",
		"\r\nCONNECT a.example:443 HTTP/1.1\r\n\r\n",
		to + "Host: b.example:443\r\n\r\n",
		to + "Host: a.example:22\r\n\r\n",
		to + "Host: a.example:443\r\nHost: a.example:443\r\n\r\n",
		to + "Host: a.example:443\r\nContent-Length: 5\r\n\r\nhello",
		to + "Host: a.example:443\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		to + "Host: a.example:443\n\n",
		to + "X: " + strings.Repeat("x", maxHead) + "\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n",
		"OPTIONS * HTTP/1.1\r\nHost: a.example\r\n\r\n",
		"GET https://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n",
		"GET http://a.example/ HTTP/1.1\r\n\r\n",
		"GET http://a.example/ HTTP/1.1\r\nHost: b.example\r\n\r\n",
		"GET http://u:p@a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n",
		"GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nConnection: close, Host\r\n\r\n",
		"POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nConnection: Content-Length\r\nContent-Length: 3\r\n\r\nabc",
		"POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc",
	} {
		if got := refused(t, raw); !strings.HasPrefix(got, "HTTP/1.1 403 ") || !strings.Contains(got, "bawn: denied: ") {
			t.Errorf("%.200q is answered %q", raw, got)
		}
	}
	for raw, want := range map[string]string{
		"":                                     "",
		"CONNECT a.exa":                        "",
		"\x04\x01\x00\x50\x00\x00\x00\x01\x00": "",
		"\x16\x03\x01\x00\x05":                 "\x15\x03\x03\x00\x02\x02\x31",
	} {
		if got := refused(t, raw); got != want {
			t.Errorf("%q is answered %q; want %q", raw, got, want)
		}
	}
}

func TestForward(t *testing.T) {
	for _, tt := range []struct {
		raw  string
		want Request
		pass string
	}{
		{"GET http://a.example/x?y HTTP/1.1\r\nHost: a.example\r\nAccept: */*\r\nProxy-Connection: Keep-Alive\r\n\r\n", Request{Forward, "a.example", 80},
			"GET /x?y HTTP/1.1\r\nHost: a.example\r\nAccept: */*\r\nConnection: close\r\n\r\n"},
		{"GET HTTP://A.example:8080?y HTTP/1.0\r\nHost: a.example:8080\r\n\r\n", Request{Forward, "a.example", 8080},
			"GET /?y HTTP/1.0\r\nHost: a.example:8080\r\nConnection: close\r\n\r\n"},
		{"GET http://[2001:db8::1]/ HTTP/1.1\r\nHost: [2001:db8::1]\r\nConnection: x-one, keep-alive\r\nX-One: 1\r\nX-Two: 2\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\nProxy-Authorization: secret\r\n\r\n",
			Request{Forward, "2001:db8::1", 80}, "GET / HTTP/1.1\r\nHost: [2001:db8::1]\r\nX-Two: 2\r\nConnection: close\r\n\r\n"},
		{"POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: 5\r\n\r\nhello", Request{Forward, "a.example", 80},
			"POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"},
		{"POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n00a\r\n0123456789\r\n0\r\n\r\n", Request{Forward, "a.example", 80},
			"POST / HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n5\r\nhello\r\n00a\r\n0123456789\r\n0\r\n\r\n"},
	} {
		if got := accept(t, tt.raw); got != (accepted{tt.want, "", tt.pass}) {
			t.Errorf("%q: got %+v; want %+v", tt.raw, got, tt)
		}
	}
}

// TestNoSmuggling: a second request behind the first is never passed on to the
// first one's host.
func TestNoSmuggling(t *testing.T) {
	const second = "GET http://b.example/secret HTTP/1.1\r\nHost: b.example\r\n\r\n"
	for _, first := range []string{
		"GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n",
		"POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: 5\r\n\r\nhello",
		"POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
	} {
		got := accept(t, first+second)
		if strings.Contains(got.passed, "b.example") || strings.Contains(got.passed, "secret") {
			t.Errorf("%q passes on %q", first, got.passed)
		}
		if alone := accept(t, first); got != alone {
			t.Errorf("%q is passed on as %q alone and as %q before another", first, alone.passed, got.passed)
		}
	}
}

func TestBadChunks(t *testing.T) {
	for _, chunks := range []string{
		"\r\n", "g\r\n", "5;x=y\r\nhello\r\n0\r\n\r\n", "5\nhello\r\n", "5\r\nhelloX", "5\r\nhello\n0\r\n\r\n", "0\r\nX: y\r\n\r\n", "0x5\r\nhello", "-1\r\n", " 5\r\n",
		"5 \r\nhello", "1000000000000005\r\nhello", "\n5\r\n",
	} {
		conn := &fake{r: strings.NewReader("POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks)}
		c, err := Handshake(conn)
		if err != nil {
			t.Fatal(err)
		}
		through, err := c.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if passed, err := io.ReadAll(through); !errors.Is(err, errChunk) {
			t.Errorf("%q: passed on %q, %v; want %v", chunks, passed, err, errChunk)
		}
	}
}

func domain(s string) string { return "\x03" + string([]byte{byte(len(s))}) + s }

const hello5 = "\x05\x01\x00"

func TestSOCKS(t *testing.T) {
	connect := hello5 + "\x05\x01\x00"
	for _, tt := range []struct {
		raw, host string
		port      uint16
		answer    string
	}{
		{connect + domain("A.Example") + "\x01\xbb", "a.example", 443, "\x05\x00"},
		{connect + domain("a.example.") + "\x00\x50", "a.example", 80, "\x05\x00"},
		{connect + domain("192.0.2.1") + "\x00\x50", "192.0.2.1", 80, "\x05\x00"},
		{connect + "\x01\xc0\x00\x02\x01\x00\x50", "192.0.2.1", 80, "\x05\x00"},
		{connect + "\x04\x20\x01\x0d\xb8" + strings.Repeat("\x00", 11) + "\x01\x00\x50", "2001:db8::1", 80, "\x05\x00"},
		{connect + "\x04" + strings.Repeat("\x00", 10) + "\xff\xff\x7f\x00\x00\x01\x00\x50", "127.0.0.1", 80, "\x05\x00"},
		{"\x05\x02\x02\x00" + "\x05\x01\x00" + domain("a.example") + "\x00\x50", "a.example", 80, "\x05\x00"},
		{"\x05\x02\x01\x02" + "\x01\x04user\x04pass" + "\x05\x01\x00" + domain("a.example") + "\x00\x50", "a.example", 80, "\x05\x02\x01\x00"},
		{"\x05\x01\x02" + "\x01\x00\x00" + "\x05\x01\x00" + domain("a.example") + "\x00\x50", "a.example", 80, "\x05\x02\x01\x00"},
	} {
		for _, early := range []string{"", "GET / HTTP/1.1\r\n"} {
			want := accepted{Request{SOCKS5, tt.host, tt.port}, tt.answer + succeeded, early}
			if got := accept(t, tt.raw+early); got != want {
				t.Errorf("%q: got %+v; want %+v", tt.raw, got, want)
			}
		}
	}
}

// TestSOCKSNUL: a NUL in the domain, where one reader's name ends, names no
// host; the control is the name without it.
func TestSOCKSNUL(t *testing.T) {
	for _, name := range []string{"evil.example\x00.a.example", "a.example\x00", "\x00a.example"} {
		if got := refused(t, hello5+"\x05\x01\x00"+domain(name)+"\x01\xbb"); got != "\x05\x00"+notAllowed {
			t.Errorf("%q is answered %q", name, got)
		}
	}
	if got := accept(t, hello5+"\x05\x01\x00"+domain("evil.example.a.example")+"\x01\xbb"); got.Host != "evil.example.a.example" {
		t.Errorf("control: %+v", got)
	}
}

func TestSOCKSRefusals(t *testing.T) {
	const ok = "\x05\x00"
	for _, tt := range []struct{ raw, answer string }{
		{"\x05\x01\x01", noMethod},
		{"\x05\x00", noMethod},
		{"\x05\x01\x02\x05\x00\x00", "\x05\x02\x01\x01"},
		{hello5 + "\x05\x02\x00" + domain("a.example") + "\x00\x50", ok + badCommand},
		{hello5 + "\x05\x03\x00" + "\x01\x00\x00\x00\x00\x00\x00", ok + badCommand},
		{hello5 + "\x05\xf0\x00" + domain("a.example") + "\x00\x50", ok + badCommand},
		{hello5 + "\x05\x01\x00\x02a.example\x00\x50", ok + badType},
		{hello5 + "\x05\x01\x00" + domain("a.example") + "\x00\x00", ok + failed},
		{hello5 + "\x04\x01\x00" + domain("a.example") + "\x00\x50", ok + failed},
		{hello5 + "\x05\x01\x01" + domain("a.example") + "\x00\x50", ok + failed},
		{hello5 + "\x05\x01\x00" + domain("") + "\x00\x50", ok + notAllowed},
		{hello5 + "\x05\x01\x00" + domain("a.example\r\nX: y") + "\x00\x50", ok + notAllowed},
		{hello5 + "\x05\x01\x00" + domain("a example") + "\x00\x50", ok + notAllowed},
		{hello5 + "\x05\x01\x00" + domain("u@a.example") + "\x00\x50", ok + notAllowed},
		{hello5 + "\x05\x01\x00" + domain("a.example:80") + "\x00\x50", ok + notAllowed},
		{hello5 + "\x05\x01\x00" + domain("\xc3\xa4.example") + "\x00\x50", ok + notAllowed},
		{hello5 + "\x05\x01\x00" + domain("2130706433") + "\x00\x50", ok + notAllowed},
		{hello5 + "\x05\x01\x00" + domain("0x7f.1") + "\x00\x50", ok + notAllowed},
		{hello5 + "\x05\x01\x00" + domain("0177.0.0.1") + "\x00\x50", ok + notAllowed},
		{hello5 + "\x05\x01\x00" + domain("fe80::1%eth0") + "\x00\x50", ok + notAllowed},
		{hello5 + "\x05\x01\x00" + "\x03\x09a.exa", ok},
		{hello5, ok},
	} {
		if got := refused(t, tt.raw); got != tt.answer {
			t.Errorf("%q is answered %q; want %q", tt.raw, got, tt.answer)
		}
	}
}

func TestReject(t *testing.T) {
	for raw, want := range map[string]string{
		hello5 + "\x05\x01\x00" + domain("a.example") + "\x00\x50":  "\x05\x00" + notAllowed,
		"CONNECT a.example:443 HTTP/1.1\r\n\r\n":                    "HTTP/1.1 403 Forbidden\r\n",
		"GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n": "HTTP/1.1 403 Forbidden\r\n",
	} {
		conn := &fake{r: strings.NewReader(raw)}
		c, err := Handshake(conn)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Reject(refuse.Denial{Reason: "no"}); err != nil || !strings.HasPrefix(conn.wrote.String(), want) || !conn.closed {
			t.Errorf("%q is answered %q, %v, closed %t; want %q", raw, &conn.wrote, err, conn.closed, want)
		}
	}
}

// FuzzHTTP: no input of a client makes a request for another host than
// net/http reads in what is passed on, or than the target names.
func FuzzHTTP(f *testing.F) {
	for _, s := range []string{
		"CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n\x16\x03",
		"GET http://a.example/x HTTP/1.1\r\nHost: a.example\r\nConnection: x\r\nX: y\r\n\r\nGET http://b.example/ HTTP/1.1\r\n\r\n",
		"POST http://a.example:81 HTTP/1.1\r\nHost: a.example:81\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\nx",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		c, err := Handshake(&fake{r: strings.NewReader(raw)})
		if err != nil || c.Kind == SOCKS5 {
			return
		}
		if h, _, err := hostname.Normal(c.Host); h != c.Host || err != nil || c.Port == 0 {
			t.Fatalf("%q: %+v", raw, c.Request)
		}
		seen, err := http.ReadRequest(bufio.NewReader(strings.NewReader(raw)))
		if err == nil {
			h, _, _, err := hostname.Split(seen.Host)
			if err != nil || h != c.Host {
				t.Fatalf("%q is for %q, net/http says %q", raw, c.Host, seen.Host)
			}
		}
		if c.Kind == Forward {
			oneRequest(t, c)
		}
	})
}

// oneRequest wants net/http to see one request for the client's host in what
// is passed on, and nothing behind it.
func oneRequest(t *testing.T, c *Client) {
	t.Helper()
	through, err := c.Accept()
	if err != nil {
		t.Fatal(err)
	}
	passed, bad := io.ReadAll(through)
	r := bufio.NewReader(bytes.NewReader(passed))
	req, err := http.ReadRequest(r)
	if err != nil {
		return // the server will say so: a bad escape in the path, for example
	}
	if h, _, _, err := hostname.Split(req.Host); err != nil || h != c.Host || strings.Contains(req.RequestURI, "://") && !strings.HasPrefix(req.RequestURI, "/") {
		t.Fatalf("%q is passed on for %q", passed, c.Host)
	}
	if _, err := io.Copy(io.Discard, req.Body); err != nil || bad != nil {
		return // cut off, by the client or for bad chunks
	}
	if rest, _ := io.ReadAll(r); len(rest) > 0 {
		t.Fatalf("%q hides %q", passed, rest)
	}
}

func FuzzSOCKS(f *testing.F) {
	f.Add([]byte(hello5 + "\x05\x01\x00" + domain("a.example") + "\x00\x50x"))
	f.Add([]byte("\x05\x01\x02\x01\x01u\x01p\x05\x01\x00\x01\xc0\x00\x02\x01\x00\x50"))
	f.Add([]byte(hello5 + "\x05\x03\x00\x04" + strings.Repeat("\x00", 18)))
	f.Fuzz(func(t *testing.T, raw []byte) {
		conn := &fake{r: bytes.NewReader(raw)}
		c, err := Handshake(conn)
		if err != nil {
			if c != nil || !conn.closed {
				t.Fatalf("%q: %v, closed %t", raw, c, conn.closed)
			}
			return
		}
		if h, _, err := hostname.Normal(c.Host); h != c.Host || err != nil || c.Port == 0 || conn.closed {
			t.Fatalf("%q: %+v, closed %t", raw, c.Request, conn.closed)
		}
	})
}

// TestStreamEnds: an accepted connection that begins with early bytes can be
// half-closed and reset like the one under it.
func TestStreamEnds(t *testing.T) {
	for name, end := range map[string]func(net.Conn) error{
		"half-closed": func(c net.Conn) error { return c.(interface{ CloseWrite() error }).CloseWrite() },
		"reset":       refuse.Reset,
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		client, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		client.SetDeadline(time.Now().Add(20 * time.Second))
		io.WriteString(client, "CONNECT a.example:443 HTTP/1.1\r\n\r\nearly")
		through := letIn(t, l)
		defer through.Close()
		if _, plain := through.(*net.TCPConn); plain {
			t.Errorf("%s: the early bytes are lost", name)
		}
		if err := end(through); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		_, err = io.ReadAll(client)
		if reset := errors.Is(err, syscall.ECONNRESET); reset != (name == "reset") {
			t.Errorf("%s: the client reads %v", name, err)
		}
	}
}

// letIn accepts the next client of l, and what it asks for.
func letIn(t *testing.T, l net.Listener) net.Conn {
	t.Helper()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	c, err := Handshake(conn)
	if err != nil {
		t.Fatal(err)
	}
	through, err := c.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return through
}
