package dial

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/bawn-dev/bawn/internal/testenv/listening"
)

// A corporate proxy: it knows the names of the outside, wants a password and
// notes what it was asked.
type corporate struct {
	*httptest.Server
	to   string // where every tunnel ends
	mu   sync.Mutex
	told []string
}

const user, password = "jane", "p%ss:w@rd"

func (p *corporate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.Header.Set("Authorization", r.Header.Get("Proxy-Authorization"))
	if u, pw, ok := r.BasicAuth(); r.Method != http.MethodConnect || !ok || u != user || pw != password {
		w.WriteHeader(http.StatusProxyAuthRequired)
		return
	}
	p.mu.Lock()
	p.told = append(p.told, r.RequestURI+" "+r.Host)
	p.mu.Unlock()
	out, err := net.Dial("tcp", p.to)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer out.Close()
	in, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer in.Close()
	// The greeting of the far server comes in one piece with the answer.
	text, _ := io.ReadAll(out)
	_, _ = in.Write(append([]byte("HTTP/1.1 200 Connection established\r\nVia: test\r\n\r\n"), text...))
}

func newCorporate(t *testing.T, secure bool) *corporate {
	p := &corporate{to: listen(t, "127.0.0.1:0").at.String()}
	p.Server = httptest.NewUnstartedServer(p)
	p.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	if secure {
		p.StartTLS()
	} else {
		p.Start()
	}
	t.Cleanup(p.Server.Close)
	return p
}

func (p *corporate) url(credentials string) string {
	return strings.Replace(p.URL, "://", "://"+credentials, 1)
}

func parse(t *testing.T, address, direct string) *Proxy {
	t.Helper()
	p, err := ParseProxy(address, direct)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// never is a resolver for names that nobody may ask about.
func never(t *testing.T) func(context.Context, string) ([]netip.Addr, error) {
	return func(_ context.Context, host string) ([]netip.Addr, error) {
		t.Errorf("%q was resolved", host)
		return nil, errEmpty
	}
}

func TestThroughProxy(t *testing.T) {
	for _, secure := range []bool{false, true} {
		p := newCorporate(t, secure)
		d := &Dialer{Lookup: never(t), Proxy: parse(t, p.url("jane:p%25ss%3Aw%40rd@"), "")}
		if secure {
			d.Proxy.Roots = x509.NewCertPool()
			d.Proxy.Roots.AddCert(p.Certificate())
		}
		c, at, err := d.Dial(t.Context(), "Registry.example", 443)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(c)
		c.Close()
		if string(text) != greeting || err != nil || at.IsValid() {
			t.Errorf("got %q, %v, %s", text, err, at)
		}
		if want := []string{"registry.example:443 registry.example:443"}; !slices.Equal(p.told, want) {
			t.Errorf("the proxy was told %q, want %q", p.told, want)
		}
	}
}

func TestProxyIsNotTrusted(t *testing.T) {
	p := newCorporate(t, true)
	d := &Dialer{Proxy: parse(t, p.url("jane:p%25ss%3Aw%40rd@"), "")}
	if c, _, err := d.Dial(t.Context(), "registry.example", 443); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("got %v, %v", c, err)
	}
}

func TestProxyWantsPassword(t *testing.T) {
	p := newCorporate(t, false)
	for _, credentials := range []string{"", "jane@", "jane:hunter2@"} {
		d := &Dialer{Proxy: parse(t, p.url(credentials), "")}
		c, _, err := d.Dial(t.Context(), "registry.example", 443)
		if err == nil || !strings.Contains(err.Error(), "407") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: got %v, %v", credentials, c, err)
		}
	}
}

// TestWhatNeverGoesThroughProxy: for these the address is judged here.
func TestWhatNeverGoesThroughProxy(t *testing.T) {
	p := newCorporate(t, false)
	local := listen(t, "127.0.0.1:0")
	d := &Dialer{Proxy: parse(t, p.url("jane:p%25ss%3Aw%40rd@"), "direct.example")}
	d.Lookup = func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{local.at.Addr()}, nil
	}
	hosts := []string{"127.0.0.1", "localhost", "db", "printer.local", "metadata.google.internal", "direct.example", "x.direct.example"}
	for _, host := range hosts {
		refused(t, d, host, local.at.Port(), "loopback")
	}
	d.Allow = only("127.0.0.1")
	for _, host := range hosts {
		greeted(t, d, host, local.at.Port(), "127.0.0.1")
	}
	if len(p.told) > 0 {
		t.Errorf("the proxy was told %q", p.told)
	}
}

func TestNoProxy(t *testing.T) {
	for _, tt := range []struct {
		list, name string
		port       uint16
		want       bool
	}{
		{"", "a.example", 443, true},
		{"*", "a.example", 443, false},
		{"a.example", "a.example", 443, false},
		{"A.Example.", "a.example", 443, false},
		{"b.example, a.example", "a.example", 443, false},
		{"example", "a.example", 443, false},
		{".example", "a.example", 443, false},
		{"*.example", "a.example", 443, false},
		{".a.example", "a.example", 443, true},
		{"xa.example", "a.example", 443, true},
		{"a.example", "xa.example", 443, true},
		{"a.example:443", "a.example", 443, false},
		{"a.example:443", "a.example", 80, true},
		{"10.0.0.0/8,::1,[::1]:80,,-", "a.example", 443, true},
	} {
		if got := parse(t, "http://proxy.example", tt.list).serves(tt.name, tt.port); got != tt.want {
			t.Errorf("NO_PROXY=%q: %s:%d through the proxy is %v", tt.list, tt.name, tt.port, got)
		}
	}
}

func TestParseProxy(t *testing.T) {
	for address, want := range map[string]Proxy{
		"http://proxy.example":           {host: "proxy.example", port: 80},
		"http://Proxy.example.:3128/":    {host: "proxy.example", port: 3128},
		"https://proxy.example":          {host: "proxy.example", port: 443, secure: true},
		"http://[2001:db8::1]:8080":      {host: "2001:db8::1", port: 8080},
		"http://u:p@10.0.0.1:3128":       {host: "10.0.0.1", port: 3128, user: url.UserPassword("u", "p")},
		"http://u:a%0d%0ab@10.0.0.1:312": {host: "10.0.0.1", port: 312, user: url.UserPassword("u", "a\r\nb")},
		"socks5://proxy.example":         {host: "proxy.example", port: 1080, socks: true},
		"socks5h://u:p@proxy.example:99": {host: "proxy.example", port: 99, socks: true, user: url.UserPassword("u", "p")},
	} {
		got := parse(t, address, "")
		if got.host != want.host || got.port != want.port || got.secure != want.secure || got.user.String() != want.user.String() || got.socks != want.socks {
			t.Errorf("%s: got %+v", address, got)
		}
	}
	for _, address := range []string{
		"", "proxy.example:3128", "socks4://u:hunter2@proxy.example", "ftp://u:hunter2@proxy.example", "http://", "http://u:hunter2@a b", "http://u:hunter2@proxy.example:0", "http://u:hunter2@proxy.example:66000",
		"http://u:hunter2@proxy.example/path", "http://u:hunter2@proxy.example?q", "http://u:hunter2@proxy.example#f", "http://u:hunter2@0x7f.1", "http:u:hunter2@proxy.example",
		"http://u:hunter2@proxy.example:x", "http://u:hunter2@%zz",
	} {
		p, err := ParseProxy(address, "")
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: got %+v, %v", address, p, err)
		}
	}
}

// scripted is a proxy that says the same to everybody and keeps the
// connection open.
func scripted(t *testing.T, answer string) *Proxy {
	t.Helper()
	at := listening.Serve(t, func(c net.Conn) {
		_, _ = io.WriteString(c, answer)
		_, _ = io.Copy(io.Discard, c)
	})
	return parse(t, "http://"+at.String(), "")
}

func TestProxyAnswersAreReadStrictly(t *testing.T) {
	for answer, want := range map[string]string{
		"HTTP/1.1 200 OK\r\n\r\n":                                                   "",
		"HTTP/1.0 200 Connection established\r\nA: b\r\n\r\n":                       "",
		"HTTP/1.1 200\r\n\r\n":                                                      "",
		"HTTP/1.1 204 No Content\r\n\r\n":                                           `"204 No Content"`,
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n":                      `"100 Continue"`,
		"HTTP/1.1 302 Found\r\nLocation: http://x\r\n\r\n":                          `"302 Found"`,
		"HTTP/1.1 403 \x1b[31mno\r\n\r\n":                                           `"403 \x1b[31mno"`,
		"HTTP/1.1 2000 OK\r\n\r\n":                                                  `"2000 OK"`,
		"HTTP/2.0 200 OK\r\n\r\n":                                                   "malformed",
		"SSH-2.0-OpenSSH\r\n\r\n":                                                   "malformed",
		"HTTP/1.1 200 OK\r\nno colon\r\n\r\n":                                       "malformed",
		"HTTP/1.1 200 OK\r\nA: b\nC: d\r\n\r\n":                                     "malformed",
		"\r\n\r\n":                                                                  "malformed",
		"HTTP/1.1 200 OK\r\nA: " + strings.Repeat("a", maxHead):                     "longer than 8192",
		"HTTP/1.1 200 OK\r\n" + strings.Repeat("A: b\r\n", maxHead/6) + "\r\n\r\n":  "longer than 8192",
		"HTTP/1.1 200 OK\r\nA: " + strings.Repeat("a", maxHead-40) + "\r\n\r\nHELO": "",
	} {
		d := &Dialer{Proxy: scripted(t, answer), Timeout: 20 * time.Second}
		c, _, err := d.Dial(t.Context(), "x.example", 443)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %q", answer, err, want)
		}
		if c != nil {
			c.Close()
		}
	}
}

// TestProxyIsSilent: a proxy that never finishes its answer costs the timeout
// and no more.
func TestProxyIsSilent(t *testing.T) {
	for _, answer := range []string{"", "HTTP/1.1 200 OK\r\n"} {
		d := &Dialer{Proxy: scripted(t, answer), Timeout: 100 * time.Millisecond}
		begin := time.Now()
		if c, _, err := d.Dial(t.Context(), "x.example", 443); !timedOut(err) || time.Since(begin) > 20*time.Second {
			t.Errorf("%q: %v, %v after %v", answer, c, err, time.Since(begin))
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(20*time.Millisecond, cancel)
		d.Timeout = 0
		if c, _, err := d.Dial(ctx, "x.example", 443); !errors.Is(err, context.Canceled) {
			t.Errorf("%q cancelled: %v, %v", answer, c, err)
		}
	}
}

func TestProxyIsGone(t *testing.T) {
	l := listen(t, "127.0.0.1:0")
	l.Close()
	d := &Dialer{Proxy: parse(t, "http://127.0.0.1:"+strconv.Itoa(int(l.at.Port())), "")}
	if c, _, err := d.Dial(t.Context(), "x.example", 443); err == nil || !strings.HasPrefix(err.Error(), `proxy "127.0.0.1"`) {
		t.Errorf("got %v, %v", c, err)
	}
}

// TestTunnelHasNoDeadline: what limited the dial does not limit the tunnel.
func TestTunnelHasNoDeadline(t *testing.T) {
	d := &Dialer{Proxy: scripted(t, "HTTP/1.1 200 OK\r\n\r\n"), Timeout: time.Second}
	var c net.Conn
	testenv.Until(t, "a tunnel within its time", func() bool {
		var err error
		c, _, err = d.Dial(t.Context(), "x.example", 443)
		return err == nil
	})
	defer c.Close()
	time.Sleep(d.Timeout + 100*time.Millisecond)
	if _, err := c.Write([]byte("x")); err != nil {
		t.Error(err)
	}
}

// FuzzHead: however the bytes of an answer arrive, what is read ends at the
// first empty line, and a tunnel opens only for 200.
func FuzzHead(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\n\r\nSSH-2.0-x"))
	f.Add([]byte("HTTP/1.1 407 no\r\nA: b\r\n\r\n"))
	f.Add([]byte("HTTP/1.1 200 OK\r\r\n\r\r\n\r\n"))
	f.Add([]byte("\r\n\r\n\r\n\r\n"))
	f.Fuzz(func(t *testing.T, answer []byte) {
		for _, r := range []io.Reader{bytes.NewReader(answer), iotest.OneByteReader(bytes.NewReader(answer))} {
			head, err := readHead(r)
			if err != nil {
				continue
			}
			before, after, _ := bytes.Cut(answer, []byte("\r\n\r\n"))
			if rest, _ := io.ReadAll(r); !bytes.Equal(rest, after) || len(head) != len(before)+4 {
				t.Fatalf("%q: head %q, rest %q", answer, head, rest)
			}
			if verdict(head) == nil && !bytes.HasPrefix(head, []byte("HTTP/1.1 200")) && !bytes.HasPrefix(head, []byte("HTTP/1.0 200")) {
				t.Fatalf("%q opens a tunnel", head)
			}
		}
	})
}
