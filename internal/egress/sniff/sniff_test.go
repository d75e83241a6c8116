package sniff

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// stream is a connection whose client sends what r returns.
type stream struct {
	net.Conn
	r io.Reader
}

func (s stream) Read(b []byte) (int, error) { return s.r.Read(b) }

// sniffed gives raw to Read whole and byte by byte and wants one answer.
func sniffed(t *testing.T, raw string) Hello {
	t.Helper()
	whole, got, err := Read(stream{r: strings.NewReader(raw)}, Limits{})
	if err != nil || !strings.HasPrefix(raw, string(got)) {
		t.Fatalf("Read(%.200q): %d bytes of %d, %v", raw, len(got), len(raw), err)
	}
	single, got, err := Read(stream{r: iotest.OneByteReader(strings.NewReader(raw))}, Limits{})
	if err != nil || !strings.HasPrefix(raw, string(got)) {
		t.Fatalf("Read(%.200q), byte by byte: %d bytes of %d, %v", raw, len(got), len(raw), err)
	}
	if diff := cmp.Diff(whole, single); diff != "" {
		t.Errorf("Read(%.200q) depends on how the bytes come:\n%s", raw, diff)
	}
	return whole
}

func TestHTTP(t *testing.T) {
	const end = "\r\n\r\n"
	for _, tt := range []struct {
		raw  string
		want Hello
	}{
		{"GET / HTTP/1.1\r\nHost: example.com" + end, Hello{Host: "example.com", Method: "GET"}},
		{"GET / HTTP/1.1\r\nhOST:\t Example.COM.:8080 " + end, Hello{Host: "example.com", Port: 8080, Method: "GET"}},
		{"GET / HTTP/1.0\r\nHost: 192.0.2.1" + end, Hello{Host: "192.0.2.1", Method: "GET"}},
		{"GET / HTTP/1.1\r\nHost: [2001:DB8::1]:81" + end, Hello{Host: "2001:db8::1", Port: 81, Method: "GET"}},
		{"OPTIONS * HTTP/1.1\r\nHost: a.example" + end, Hello{Host: "a.example", Method: "OPTIONS"}},
		{"PROPFIND /x HTTP/1.1\r\nHost: a.example" + end, Hello{Host: "a.example", Method: "PROPFIND"}},
		{"GET http://A.example/x HTTP/1.1\r\nHost: a.example:80" + end, Hello{Host: "a.example", Method: "GET"}},
		{"GET HTTP://a.example:81?x HTTP/1.1\r\nHost: a.example:81" + end, Hello{Host: "a.example", Port: 81, Method: "GET"}},
		{"GET //b.example/x@c.example HTTP/1.1\r\nHost: a.example" + end, Hello{Host: "a.example", Method: "GET"}},
		{"GET / HTTP/1.1\r\nHost: a.example\r\nAccept: application/json\r\nUpgrade: h2c" + end,
			Hello{Host: "a.example", Method: "GET", Accept: "application/json", Upgrade: "h2c"}},
		{"POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 5" + end + "hello", Hello{Host: "a.example", Method: "POST"}},
		{"POST / HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked" + end + "0\r\n\r\n", Hello{Host: "a.example", Method: "POST"}},
	} {
		tt.want.Kind = HTTP1
		if diff := cmp.Diff(tt.want, sniffed(t, tt.raw)); diff != "" {
			t.Errorf("Read(%q):\n%s", tt.raw, diff)
		}
	}
}

// TestHTTPProblems: heads that two servers could read differently, each with
// a part of the reason that is to be given.
func TestHTTPProblems(t *testing.T) {
	const host = "\r\nHost: a.example"
	for _, tt := range []struct{ raw, want string }{
		{"GET / HTTP/1.1\r\nAccept: */*", "no Host field"},
		{"GET / HTTP/1.0", "no Host field"},
		{"GET http://a.example/ HTTP/1.1", "no Host field"},
		{"GET / HTTP/1.1" + host + "\r\nhost: b.example", "2 Host fields"},
		{"GET / HTTP/1.1" + host + "\r\nHost: a.example", "2 Host fields"},
		{"GET / HTTP/1.1\r\nHost: ", "want a name"},
		{"GET / HTTP/1.1\r\nHost: a.example, b.example", "unusual characters"},
		{"GET / HTTP/1.1\r\nHost: a.example@b.example", "user's name"},
		{"GET / HTTP/1.1\r\nHost: http://b.example", "no host"},
		{"GET / HTTP/1.1\r\nHost: a.example/b", "no host"},
		{"GET / HTTP/1.1\r\nHost: a.example?b", "no host"},
		{"GET / HTTP/1.1\r\nHost: ::1", "no host"},
		{"GET / HTTP/1.1\r\nHost: a.example:0", "port"},
		{"GET / HTTP/1.1\r\nHost: a.example:99999", "port"},
		{"GET / HTTP/1.1\r\nHost: 2130706433", "unusual form"},
		{"GET / HTTP/1.1\r\nHost: \xc3\xa4.example", "ASCII"},
		{"GET http://b.example/ HTTP/1.1" + host, "the target names"},
		{"GET http://a.example:81/ HTTP/1.1" + host, "the target names"},
		{"GET http://a.example@b.example/ HTTP/1.1" + host, "user's name"},
		{"GET http://b.example\\@a.example/ HTTP/1.1" + host, "user's name"},
		{"GET http://b.example#@a.example/ HTTP/1.1" + host, "no host"},
		{"GET http:///x HTTP/1.1" + host, "want a name"},
		{"GET https://a.example/ HTTP/1.1" + host, "neither a path"},
		{"GET ftp://a.example/ HTTP/1.1" + host, "neither a path"},
		{"GET a.example/ HTTP/1.1" + host, "neither a path"},
		{"GET * HTTP/1.1" + host, "neither a path"},
		{"CONNECT a.example:443 HTTP/1.1" + host, "CONNECT"},
		{"CONNECT /rpc HTTP/1.1" + host, "CONNECT"},
		{"GET / HTTP/1.1\r\nX: 1\r\n Host: b.example" + host, "obs-fold"},
		{"GET / HTTP/1.1" + host + "\r\n\tb.example", "obs-fold"},
		{"GET / HTTP/1.1\r\n Host: b.example", "obs-fold"},
		{"GET / HTTP/1.1\r\nHost : b.example" + host, "header name"},
		{"GET / HTTP/1.1\r\nHost\t: b.example", "header name"},
		{"GET / HTTP/1.1\r\n: b.example" + host, "header name"},
		{"GET / HTTP/1.1\r\nHost\x00: b.example" + host, "character"},
		{"GET / HTTP/1.1\r\nHost: a.example\x00.b.example", "character"},
		{"GET / HTTP/1.1\r\nHost: a.example\rHost: b.example", "character"},
		{"GET / HTTP/1.1\r\nX: 1\nHost: b.example" + host, "character"},
		{"GET / HTTP/1.1\nHost: a.example", "character"},
		{"GET /\x00 HTTP/1.1" + host, "character"},
		{"GET /\x7f HTTP/1.1" + host, "character"},
		{"GET / HTTP/1.1\r\nHost" + host, "no colon"},
		{"GET /a b HTTP/1.1" + host, "one space"},
		{"GET  / HTTP/1.1" + host, "one space"},
		{"GET\t/ HTTP/1.1" + host, "one space"},
		{"GET /\tHTTP/1.1" + host, "one space"},
		{"GET / HTTP/1.1 " + host, "one space"},
		{"GET / HTTP/1.2" + host, "version"},
		{"GET / HTTP/2.0" + host, "version"},
		{"GET / http/1.1" + host, "version"},
		{"GET / HTTP/1.10" + host, "version"},
		{"\r\nGET / HTTP/1.1" + host, "before the request line"},
		{" GET / HTTP/1.1" + host, "before the request line"},
		{"PRI * HTTP/2.0" + host, "version"},
		{"POST / HTTP/1.1" + host + "\r\nContent-Length: 1\r\nContent-Length: 2", "how long"},
		{"POST / HTTP/1.1" + host + "\r\nContent-Length: 1\r\nTransfer-Encoding: chunked", "how long"},
		{"POST / HTTP/1.1" + host + "\r\nContent-Length: 1, 1", "length of the body"},
		{"POST / HTTP/1.1" + host + "\r\nContent-Length: ", "length of the body"},
		{"POST / HTTP/1.1" + host + "\r\nContent-Length: +1", "length of the body"},
		{"POST / HTTP/1.1" + host + "\r\nTransfer-Encoding: xchunked", "transfer coding"},
		{"POST / HTTP/1.0" + host + "\r\nTransfer-Encoding: chunked", "transfer coding"},
		{"GET / HTTP/1.1" + host + "\r\nX: " + strings.Repeat("x", defaultHead), "too long"},
	} {
		raw := tt.raw + "\r\n\r\n"
		got, ok := Parse([]byte(raw), Limits{})
		if !ok || got.Kind != HTTP1 || got.Host != "" || !strings.Contains(got.Problem, tt.want) {
			t.Errorf("Parse(%.200q) = %+v, %t; want a problem with %q", raw, got, ok, tt.want)
		}
	}
}

// TestLineIsEnough: what has no version in its first line is HTTP/0.9, where
// its method is HTTP's alone.
func TestLineIsEnough(t *testing.T) {
	if got := sniffed(t, "GET /\r\n"); got.Kind != HTTP1 || got.Problem == "" {
		t.Errorf("HTTP/0.9 is %+v", got)
	}
	got, ok := Parse([]byte("GET /"+strings.Repeat("x", defaultHead)), Limits{})
	if !ok || got.Kind != HTTP1 || got.Problem == "" {
		t.Errorf("an endless line is %+v", got)
	}
}

func TestOtherKinds(t *testing.T) {
	for raw, want := range map[string]Kind{
		"SSH-":                             SSH,
		"SSH-2.0-OpenSSH_9.2\r\n":          SSH,
		preface:                            HTTP2,
		preface + "\x00\x00\x00\x04":       HTTP2,
		"\x00\x00\x00\x08\x04\xd2\x16\x2f": Unknown, // PostgreSQL asks for TLS
		"*1\r\n$4\r\nPING\r\n":             Unknown, // Redis
		"get key\r\n":                      Unknown, // memcached
		"\x80\x01\x00\x00":                 Unknown, // memcached, binary
		"CONNECT {\"verbose\":false}\r\n":  Unknown, // NATS
		"EHLO a.example\r\n":               Unknown, // SMTP
		"AMQP\x00\x00\x09\x01":             Unknown,
		"003agit-upload-pack /a.git\x00host=a.example\x00": Unknown,
		"\x04\x01\x00\x50\x00\x00\x00\x01x\x00":            Unknown, // SOCKS 4
		"\x05\x01\x00":                                     Unknown, // SOCKS 5
		"\x17\x03\x03":                                     Unknown, // TLS, but not its beginning
		"SSH: hello":                                       Unknown,
		"\x16\x00\x00\x00\x02\x00":                         Unknown, // a length of 22
		"{}":                                               Unknown,
	} {
		if got := sniffed(t, raw); got.Kind != want || got.Problem != "" || got.Host != "" {
			t.Errorf("Read(%q) = %+v; want %s", raw, got, want)
		}
	}
}

func TestReadEnds(t *testing.T) {
	for _, tt := range []struct {
		raw  string
		kind Kind
		err  error
	}{
		{"", Unknown, io.EOF},
		{"G", Unknown, io.ErrUnexpectedEOF},
		{"GET / HTTP/1.1\r\nHost: a.example\r\n", HTTP1, io.ErrUnexpectedEOF},
		{"\x16", TLS, io.ErrUnexpectedEOF},
		{"SSH", Unknown, io.ErrUnexpectedEOF},
	} {
		got, raw, err := Read(stream{r: strings.NewReader(tt.raw)}, Limits{})
		if got.Kind != tt.kind || got.Host != "" || string(raw) != tt.raw || !errors.Is(err, tt.err) {
			t.Errorf("Read(%q) = %+v, %q, %v; want %s and %v", tt.raw, got, raw, err, tt.kind, tt.err)
		}
	}
}

// TestDeadline: a client that says nothing, or never the rest, costs no more
// than the caller's deadline.
func TestDeadline(t *testing.T) {
	for _, said := range []string{"", "GET / HTTP/1.1\r\nHost: a.exa", "\x16\x03\x01\x02"} {
		client, server := net.Pipe()
		defer client.Close()
		defer server.Close()
		server.SetDeadline(time.Now().Add(50 * time.Millisecond))
		go io.WriteString(client, said)
		hello, raw, err := Read(server, Limits{})
		if !errors.Is(err, os.ErrDeadlineExceeded) || hello.Host != "" || string(raw) != said {
			t.Errorf("Read after %q = %+v, %q, %v", said, hello, raw, err)
		}
	}
}

// TestBounded: a client that sends without end is cut off at the limit.
func TestBounded(t *testing.T) {
	for _, piece := range []string{"A", " ", "GET / HTTP/1.1\r\nX: ", "A ", "\x16\x03\x01\x40\x00\x01"} {
		endless := io.MultiReader(strings.NewReader(piece), repeat('x'))
		_, raw, err := Read(stream{r: endless}, Limits{})
		if err != nil || len(raw) > defaultHello {
			t.Errorf("after %q and an endless rest Read read %d bytes, %v", piece, len(raw), err)
		}
	}
	if _, _, err := Read(stream{r: stalled{}}, Limits{}); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("reads that return nothing: %v", err)
	}
}

// repeat is an endless row of one byte.
type repeat byte

func (r repeat) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(r)
	}
	return len(b), nil
}

type stalled struct{}

func (stalled) Read([]byte) (int, error) { return 0, nil }

// TestByteByByte: a client that sends every byte by itself costs no more than
// one that sends them at once, but for the reads: with work that grows by the
// square this would take minutes.
func TestByteByByte(t *testing.T) {
	const size = 1 << 19
	limit := Limits{Hello: 2 * size, Head: 2 * size}
	for _, raw := range []string{
		"GET / HTTP/1.1\r\nHost: a.example\r\nX: " + strings.Repeat("\rx", size/2) + "\r\n\r\n",
		"GET /" + strings.Repeat("\rx", size/2),
		strings.Repeat("\r\n", size/2) + "x",
		strings.Repeat("x", size),
		"\x16\x03\x01\x00\x04\x01\x0f\x00\x00" + strings.Repeat("\x16\x03\x01\x00\x01x", size/6),
	} {
		start := time.Now()
		Read(stream{r: iotest.OneByteReader(strings.NewReader(raw))}, limit)
		if took := time.Since(start); took > 30*time.Second {
			t.Errorf("%.40q: took %v", raw, took)
		}
	}
}
