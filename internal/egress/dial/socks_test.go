package dial

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/egress/proxy"
	"github.com/bawn-dev/bawn/internal/testenv/listening"
)

// TestThroughSOCKS: the session's own front for proxies is a real server of it.
func TestThroughSOCKS(t *testing.T) {
	for _, credentials := range []string{"", "jane:hunter2@"} {
		told := make(chan string, 1)
		l := listening.Serve(t, func(c net.Conn) {
			req, err := proxy.Handshake(c)
			if err != nil {
				return
			}
			told <- req.Host
			conn, err := req.Accept()
			if err == nil {
				_, _ = io.WriteString(conn, greeting)
			}
		})
		d := &Dialer{Lookup: never(t), Proxy: parse(t, "socks5://"+credentials+l.String(), "")}
		c, at, err := d.Dial(t.Context(), "Registry.example", 443)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(c)
		c.Close()
		if string(text) != greeting || err != nil || at.IsValid() || <-told != "registry.example" {
			t.Errorf("got %q, %v, %s", text, err, at)
		}
	}
}

// TestSOCKSAnswers: what a proxy may say to a client with and without a
// password, and what comes of it.
func TestSOCKSAnswers(t *testing.T) {
	const ok, bound = "\x05\x00", "\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x50"
	for _, tt := range []struct{ credentials, answers, want string }{
		{"", ok + bound, ""},
		{"", ok + "\x05\x00\x00\x03\x01a\x00\x50", ""},
		{"", ok + "\x05\x00\x00\x04" + strings.Repeat("x", 18), ""},
		{"u:hunter2@", "\x05\x02\x01\x00" + bound, ""},
		{"u:hunter2@", "\x05\x02\x01\x01", "wants a user and a password"},
		{"u:hunter2@", "\x05\x02\x05\x00" + bound, "invalid username/password version"},
		{"u:hunter2@", "\x05\xff", "wants a user and a password"},
		{":hunter2@", "\x05\x02", "invalid username/password"},
		{"u:" + strings.Repeat("hunter2", 40) + "@", "\x05\x02", "invalid username/password"},
		{"u:hunter2@", "\x05\x01", "unsupported authentication method"},
		{"", "\x05\x02", "i/o timeout"}, // nobody said that we have a password
		{"", "HTTP/1.1 400 Bad Request\r\n\r\n", "unexpected protocol version"},
		{"", ok + "\x05\x02\x00\x01", "not allowed by ruleset"},
		{"", ok + "\x05\x77\x00\x01", "unknown code: 119"},
		{"", ok + "\x04\x00\x00\x01", "unexpected protocol version"},
		{"", ok + "\x05\x00\x00\x07", "unknown address type"},
		{"", ok + "\x05\x00", "i/o timeout"},
	} {
		l := listening.Serve(t, func(c net.Conn) { _, _ = io.WriteString(c, tt.answers); _, _ = io.Copy(io.Discard, c) })
		d := &Dialer{Proxy: parse(t, "socks5h://"+tt.credentials+l.String(), ""), Timeout: 200 * time.Millisecond}
		if tt.want != "i/o timeout" {
			d.Timeout = 20 * time.Second
		}
		c, _, err := d.Dial(t.Context(), "x.example", 443)
		if c != nil {
			c.Close()
		}
		var pe *ProxyError
		switch {
		case (err == nil) != (tt.want == ""):
			t.Errorf("%q: %v, want %q", tt.answers, err, tt.want)
		case err != nil && (!errors.As(err, &pe) || pe.Auth != strings.Contains(tt.want, "wants a user") || strings.Contains(err.Error(), "hunter2")),
			err != nil && !strings.Contains(err.Error(), tt.want) && !timedOut(err):
			t.Errorf("%q: %v, want %q", tt.answers, err, tt.want)
		}
	}
}

// FuzzSOCKS: whatever a proxy answers, the client ends, and a tunnel begins
// only behind a whole answer that says so.
func FuzzSOCKS(f *testing.F) {
	f.Add([]byte("\x05\x00\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x50tunnel"))
	f.Add([]byte("\x05\x02\x01\x00\x05\x00\x00\x03\x01a\x00\x50"))
	f.Add([]byte("\x05\xff"))
	p, err := ParseProxy("socks5://u:p@proxy.example", "")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, answers []byte) {
		c := &script{r: bytes.NewReader(answers)}
		if err := p.socksConnect(c, "x.example", 443); err != nil {
			return
		}
		read := answers[:len(answers)-c.r.Len()]
		if len(read) < 2+4+2+1 || read[0] != 5 || read[1] != 0 && (read[1] != 2 || read[3] != 0) {
			t.Errorf("%q opens a tunnel", read)
		}
	})
}

// script is a connection on which the other side has said everything.
type script struct {
	net.Conn
	r *bytes.Reader
}

func (s *script) Read(b []byte) (int, error)  { return s.r.Read(b) }
func (s *script) Write(b []byte) (int, error) { return len(b), nil }
func (s *script) Close() error                { return nil }
