package mitm

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/testenv"
)

const (
	host        = "api.example.com"
	placeholder = "bawn_ph_7Qm2xV9kLr4TzB1c"
	value       = "sk-live/+Zr8\"Kq3<wY6pN0a"
	other       = "bawn_ph_other0J5dGf8sWe2"
)

// A rig is a guest's client, a Server, and a real server behind it.
type rig struct {
	*Server
	t      testing.TB
	target Target
	port   string      // where the guest connects to
	up     *tls.Config // of the real server; nil for plain HTTP

	mu      sync.Mutex
	results []Result
	asked   []Request
	dials   int
}

// vault lends one value, or fails.
type vault struct {
	err   error
	value string // "" is value
}

func (v vault) Lend(context.Context, string, bawn.Binding) (bawn.Secret, error) {
	return bawn.NewSecret([]byte(cmp.Or(v.value, value))), v.err
}

func allow(context.Context, Request) bawn.Decision { return bawn.Decision{Verdict: bawn.Allow} }

// newRig starts everything around an upstream handler. Change may alter the
// rig before anything runs.
func newRig(t testing.TB, upstream http.Handler, change func(*rig)) *rig {
	t.Helper()
	r := prepareRig(t, change)
	l := r.listen(nil)
	server := &http.Server{Handler: upstream, ErrorLog: quiet}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	r.start(l.Addr())
	return r
}

// newRawRig has a real server that is handed each connection.
func newRawRig(t testing.TB, serve func(net.Conn), change func(*rig)) *rig {
	t.Helper()
	r := prepareRig(t, change)
	l := r.listen([]string{"http/1.1"})
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	r.start(l.Addr())
	return r
}

func prepareRig(t testing.TB, change func(*rig)) *rig {
	t.Helper()
	session, upstream := newCA(t), newCA(t)
	leaf, err := upstream.Leaf(host)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, target: Target{Host: host, Port: 443, TLS: true}, up: &tls.Config{Certificates: []tls.Certificate{*leaf}}}
	r.Server = &Server{
		CA: session, Roots: pool(upstream), Decide: allow, Session: "s1", Secrets: vault{},
		Matches: func(b bawn.Binding, h string, _ uint16) bool { return b.Host == h }, Limited: func(Request) bool { return false },
	}
	if change != nil {
		change(r)
	}
	decide := r.Decide
	if decide != nil {
		r.Decide = func(ctx context.Context, q Request) bawn.Decision {
			r.mu.Lock()
			r.asked = append(r.asked, q)
			r.mu.Unlock()
			return decide(ctx, q)
		}
	}
	r.Done = func(_ Request, res Result) {
		r.mu.Lock()
		r.results = append(r.results, res)
		r.mu.Unlock()
	}
	return r
}

// listen opens the real server's socket, with TLS where the target has it.
func (r *rig) listen(protocols []string) net.Listener {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	if !r.target.TLS {
		return l
	}
	r.up.NextProtos = append(r.up.NextProtos, protocols...)
	if len(r.up.NextProtos) == 0 {
		r.up.NextProtos = []string{"h2", "http/1.1"}
	}
	return tls.NewListener(l, r.up)
}

// start accepts guests.
func (r *rig) start(upstream net.Addr) {
	r.Dial = func(ctx context.Context, _ string, _ uint16) (net.Conn, netip.AddrPort, error) {
		r.mu.Lock()
		r.dials++
		r.mu.Unlock()
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", upstream.String())
		return conn, netip.MustParseAddrPort(upstream.String()), err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { r.Serve(ctx, conn, r.target) })
		}
	}()
	r.t.Cleanup(func() { l.Close(); cancel(); running.Wait() })
	_, r.port, _ = net.SplitHostPort(l.Addr().String())
}

func newCA(t testing.TB) *CA {
	t.Helper()
	ca, err := NewCA("test", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

func pool(ca *CA) *x509.CertPool {
	p := x509.NewCertPool()
	p.AppendCertsFromPEM(ca.PEM())
	return p
}

// client is an unmodified guest that trusts the session's CA.
func (r *rig) client(h2 bool) *http.Client {
	tr := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", "127.0.0.1:"+r.port)
		},
		TLSClientConfig:    &tls.Config{RootCAs: pool(r.CA)},
		ForceAttemptHTTP2:  h2,
		DisableCompression: true,
	}
	r.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: 2 * time.Minute, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// conn is a guest's connection, after its handshake.
func (r *rig) conn() net.Conn {
	conn, err := net.Dial("tcp", "127.0.0.1:"+r.port)
	if err != nil {
		r.t.Fatal(err)
	}
	conn.SetDeadline(time.Now().Add(30 * time.Second))
	r.t.Cleanup(func() { conn.Close() })
	if r.target.TLS {
		return tls.Client(conn, &tls.Config{RootCAs: pool(r.CA), ServerName: host, NextProtos: []string{"http/1.1"}})
	}
	return conn
}

// raw sends bytes and returns what comes back until it has been quiet for a
// while: an end of what the guest sends would end its requests.
func (r *rig) raw(text string) string { return r.rawFor(text, 1) }

// rawFor is raw that waits for so many answers.
func (r *rig) rawFor(text string, answers int) string {
	conn := r.conn()
	if _, err := io.WriteString(conn, text); err != nil && r.target.TLS {
		r.t.Log(err)
	}
	var out []byte
	for part := make([]byte, 64<<10); ; {
		quiet := 20 * time.Second
		if whole(out) >= answers {
			quiet = 100 * time.Millisecond
		}
		conn.SetReadDeadline(time.Now().Add(quiet))
		n, err := conn.Read(part)
		out = append(out, part[:n]...)
		if err != nil {
			return string(out)
		}
	}
}

// whole counts answers. It is 0 while one has only begun.
func whole(out []byte) (n int) {
	for in := bufio.NewReader(bytes.NewReader(out)); ; {
		answer, err := http.ReadResponse(in, nil)
		if err == nil {
			_, err = io.Copy(io.Discard, answer.Body)
		}
		if errors.Is(err, io.ErrUnexpectedEOF) || len(out) == 0 {
			return 0
		}
		n++ // or what is no answer
		if _, more := in.Peek(1); err != nil || more != nil {
			return n
		}
	}
}

// result returns the last result, waiting for it.
func (r *rig) result() Result {
	r.t.Helper()
	var last Result
	testenv.Until(r.t, "a result", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		n := len(r.results)
		if n > 0 {
			last = r.results[n-1]
		}
		return n > 0
	})
	return last
}

// url is the target's.
func (r *rig) url(path string) string { return scheme(r.target) + "://" + r.authority() + path }

func (r *rig) authority() string { return authority(r.target) }

// do sends a request and returns status and body.
func (r *rig) do(c *http.Client, q *http.Request) (*http.Response, string) {
	r.t.Helper()
	res, err := c.Do(q)
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return res, string(body)
}

func request(t testing.TB, method, url string, body io.Reader, header ...string) *http.Request {
	t.Helper()
	q, err := http.NewRequest(method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		q.Header.Add(header[i], header[i+1])
	}
	return q
}

// bind gives a rig's session one binding to the target's host and one to
// another.
func bind(place bawn.Place, name string) func(*rig) {
	return func(r *rig) {
		r.Bindings = []bawn.Binding{
			{Secret: "token", Host: host, Place: place, Name: name, Placeholder: placeholder},
			{Secret: "elsewhere", Host: "other.example.com", Place: bawn.Bearer, Placeholder: other},
		}
	}
}

// pieces is a reader that gives a few bytes at a time.
type pieces struct {
	r    io.Reader
	size int
}

func (p pieces) Read(b []byte) (int, error) { return p.r.Read(b[:min(p.size, len(b))]) }

// ends is a reader that gives a few bytes at a time where a text begins and ends, and
// much at a time between.
type ends struct {
	r    *strings.Reader
	size int
}

func (e ends) Read(b []byte) (int, error) {
	const end, much = 1 << 10, 4093 // no buffer is full with it
	n := e.size
	if begun := e.r.Size() - int64(e.r.Len()); begun >= end && e.r.Len() > end {
		n = max(n, min(much, e.r.Len()-end))
	}
	return e.r.Read(b[:min(n, len(b))])
}

// A saw keeps what a real server saw.
type saw struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *saw) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *saw) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// describe notes a whole request and answers it.
func (s *saw) describe(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil && !errors.Is(err, io.EOF) {
		fmt.Fprintf(s, "BROKEN %v\n", err)
		return
	}
	fmt.Fprintf(s, "%s %s host=%s", r.Method, r.RequestURI, r.Host)
	for k, v := range r.Header {
		fmt.Fprintf(s, " %s=%q", k, v)
	}
	fmt.Fprintf(s, " body=%q trailer=%v\n", body, r.Trailer)
	io.WriteString(w, "fine")
}
