// Package mitm opens a guest's TLS connection, or plain HTTP, to one host. It
// has every request decided on its own, replaces the guest's placeholders by
// secrets, and forwards only what was decided.
//
// Parsing is left to net/http on both sides: a request that its server accepts
// leaves its client well-formed, so nothing that two parsers could read in two
// ways passes.
package mitm

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/bawn-dev/bawn"
)

// A Server forwards requests of one session. Its fields are set before the
// first call of Serve and not changed after it. The zero Server refuses every
// request.
type Server struct {
	CA *CA

	// Dial connects to a host by name and says which address it took. It is
	// what classifies addresses.
	Dial func(ctx context.Context, host string, port uint16) (net.Conn, netip.AddrPort, error)

	// Roots verify upstream certificates; nil are the system's.
	Roots *x509.CertPool

	// Decide is called once for each request, before anything of it is sent. Nil
	// denies. It may read the beginning of the body with Request.Peek.
	Decide func(context.Context, Request) bawn.Decision

	// Limited reports whether Decide might not allow the request with some other
	// method. Then a body that names one, in a form or in JSON, is refused as soon
	// as that is seen. Nil says so of all. It is asked before Decide.
	Limited func(Request) bool

	// Done is called once for each request, also for one that was refused, after
	// the last byte. It may be nil.
	Done func(Request, Result)

	// Remedy says in one sentence how to change a denial; the refusal contains
	// it. Nil names the session's human.
	Remedy func(Request, bawn.Decision) string

	// Bindings are all of the session's, so that a placeholder on its way to the
	// wrong host is known; Matches says which of them belong to a host. Nil
	// matches nothing.
	Bindings []bawn.Binding
	Matches  func(b bawn.Binding, host string, port uint16) bool
	Secrets  bawn.SecretSource
	Session  string

	// Offer returns a binding for a request without any credential whose secret is put in
	// if Decide allows the request with it (Request.Offered). Nil offers nothing.
	Offer func(context.Context, Request) (bawn.Binding, bool)

	// Watched returns values that the guest has and that leave only where they were
	// decided on; nil, or a nil WatchSet, watches nothing. Those before the body are
	// in the Request of Decide; Leak decides on others while the body is on its way.
	// A nil Leak denies.
	Watched func() *WatchSet
	Leak    func(context.Context, Request) bawn.Decision

	// Sent is called with bytes of a request with secrets, before they go to the host. It
	// may be nil, and must not wait.
	Sent func(secrets []string, bytes int64)

	// Now is the clock to which signatures of requests have to be near; nil is
	// the machine's.
	Now func() time.Time

	// HeaderTimeout is how long a guest may take for a TLS handshake or the
	// header of a request; 0 is 15 seconds.
	HeaderTimeout time.Duration
	// IdleTimeout is how long a connection may wait for the next request; 0 is 2
	// minutes.
	IdleTimeout time.Duration

	once         sync.Once
	holding      chan struct{} // one for each body that is held in a file
	most         int           // requests at a time; 0 is maxRequests
	requests     chan struct{} // one for each running request, which bounds the memory that a guest can use
	placeholders *needles      // of all bindings, in the forms in which they are sought
	lowered      [][]string    // of each binding, as the names of headers are compared
	unusable     error         // why the bindings can't be served
	cookies      cookieJar
	told         memory
	guestTLS     *tls.Config
	upstreamTLS  *tls.Config
}

// A Target is the guest's destination: a host in normal form, the port, and
// whether it begins with TLS.
type Target struct {
	Host string
	Port uint16
	TLS  bool
}

// A Request describes a request before it is sent. Placeholders stand in it,
// never values.
type Request struct {
	Method string
	Scheme string // http or https
	Host   string // in normal form
	Port   uint16

	// Path is the escaped path, exactly as it will be sent.
	Path string
	// Readings are the unescaped paths that servers may take Path for, the
	// plainest first. There are several where it holds an escaped slash, a
	// parameter (;x=y) or an escaped question mark. A request may be allowed only
	// if it would be with each of them.
	Readings []string
	Query    string       // raw, without the question mark
	Header   http.Header  // the guest's; it must not be changed
	Upgrade  string       // "websocket" or ""
	Secrets  []string     // names of the secrets that would be put in
	Offered  string       // name of a secret that the guest has no placeholder of, and that would be put in
	Foreign  []Credential // of the guest's own
	Found    []string     // names of watched values

	body    *body
	inspect func(func(*http.Request) error) error
}

// Lent returns the names of all secrets that would be put in.
func (r Request) Lent() []string {
	if r.Offered == "" {
		return r.Secrets
	}
	return append(slices.Clone(r.Secrets), r.Offered)
}

// MaxPeek is how many bytes at the beginning of a body can be looked at.
const MaxPeek = 1 << 20

// ErrPeek says that more than MaxPeek bytes were asked for.
var ErrPeek = errors.New("only the first MiB of a body can be looked at")

// Peek returns the first n bytes of the body, unpacked where Content-Encoding
// says gzip, and waits until they are there. It returns fewer with io.EOF
// where the body ends before, ErrPeek where n is above MaxPeek, and an error
// for another encoding. The bytes must not be changed. It may be called in
// Decide only.
func (r Request) Peek(n int) ([]byte, error) {
	if r.body == nil {
		return nil, io.EOF
	}
	return r.body.peek(n)
}

// Inspect hands the request itself to f, which may read the body and put
// another in its place, with headers that fit: that is what will be sent. It
// returns what f does; after an error the request must not be allowed. It may
// be called in Decide only, and once.
func (r Request) Inspect(f func(*http.Request) error) error {
	if r.inspect == nil {
		return errors.New("BUG(bawn): there is no request to inspect")
	}
	return r.inspect(f)
}

// Prefix returns a reader of what Peek returns, from the first byte, that
// waits for no more than it is asked for. It fails with ErrPeek at MaxPeek.
func (r Request) Prefix() io.Reader { return &prefix{request: r} }

type prefix struct {
	request Request
	at      int
}

func (p *prefix) Read(b []byte) (int, error) {
	seen, err := p.request.Peek(min(p.at+1, MaxPeek))
	if p.request.body != nil {
		seen = p.request.body.seen
	}
	if p.at < len(seen) {
		n := copy(b, seen[p.at:])
		p.at += n
		return n, nil
	}
	if err == nil {
		err = ErrPeek
	}
	return 0, err
}

// A Result is what became of a request.
type Result struct {
	Status   int            // the guest's response; 0 if the connection broke before
	Out, In  int64          // bytes of bodies to and from the host, of a WebSocket all after its start
	Secrets  []string       // names of those that were put in
	Addr     netip.AddrPort // the address connected to; the zero AddrPort if none
	Decision bawn.Decision  // what Decide said; its zero value where it was not asked
	Err      error          // why it was refused or has failed, or nil
}

// Serve speaks with the guest on conn, which it closes, until either side
// ends. The connection is one guest's to one host: upstream connections are
// used for it alone. An error says why it could not begin; what happens to
// requests is for Done.
func (s *Server) Serve(ctx context.Context, conn net.Conn, target Target) error {
	defer conn.Close()
	s.once.Do(s.prepare)
	if s.unusable != nil {
		return s.unusable
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	guest := newGuestConn(conn, target)
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	opened, err := s.open(ctx, guest)
	if err != nil {
		return err
	}
	c := s.newConnection(target, multiplexed(opened))
	defer c.close()
	server := c.server(ctx)
	if err := server.Serve(&oneConn{conn: opened, guest: guest}); !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("serving %q: %w", target.Host, err)
	}
	cancel() // requests that still run have no client left
	c.running.Wait()
	return nil
}

// Check says which binding can't be served: without a secret, a place, the name
// that its place needs, or a placeholder that is told from other text. Serve
// serves nothing where there is one.
func (s *Server) Check() error {
	for _, b := range s.Bindings {
		if err := usable(b); err != nil {
			return err
		}
	}
	return nil
}

// open shakes hands with a guest that speaks TLS.
func (s *Server) open(ctx context.Context, guest *guestConn) (net.Conn, error) {
	if !guest.target.TLS {
		return guest, nil
	}
	if s.CA == nil {
		return nil, fmt.Errorf("the guest's TLS to %q: the session has no CA", guest.target.Host)
	}
	ctx, cancel := context.WithTimeout(ctx, s.headerTimeout())
	defer cancel()
	opened := tls.Server(guest, s.guestTLS)
	if err := opened.HandshakeContext(ctx); err != nil {
		return nil, fmt.Errorf("the guest's TLS to %q: %w", guest.target.Host, err)
	}
	return opened, nil
}

func (s *Server) headerTimeout() time.Duration { return orElse(s.HeaderTimeout, 15*time.Second) }

func orElse(d, otherwise time.Duration) time.Duration {
	if d == 0 {
		return otherwise
	}
	return d
}
