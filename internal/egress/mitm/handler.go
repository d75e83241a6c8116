package mitm

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/hostname"
)

const (
	maxHeader     = 1 << 20   // bytes, of responses
	maxRequest    = 64 << 10  // bytes, of the header of a request; four times what Node takes
	maxPath       = 4 << 10   // bytes, escaped, with the method: they stand in every record and question
	maxRequests   = 512       // of a session at a time
	maxStreams    = 100       // of an HTTP/2 connection of the guest's
	guestBuffer   = 256 << 10 // bytes of bodies that are held for an HTTP/2 connection of the guest's
	hostBuffer    = 2 << 20   // bytes that are held of an HTTP/2 response of which the guest doesn't read
	handshakeTime = 15 * time.Second
	continueTime  = time.Second // a host that ignores Expect gets the body after it
	idleUpstream  = 90 * time.Second
	idlePerHost   = 100
	restOfBody    = time.Second // for a body that is not needed any more
)

// prepare runs once, with the first connection.
func (s *Server) prepare() {
	s.requests = make(chan struct{}, cmp.Or(s.most, maxRequests))
	s.holding = make(chan struct{}, maxFiles)
	s.placeholders = &needles{}
	if s.unusable = s.Check(); s.unusable != nil {
		return
	}
	for i, b := range s.Bindings {
		s.lowered = append(s.lowered, nil)
		for _, stand := range stands(b) {
			s.lowered[i] = append(s.lowered[i], strings.ToLower(string(stand)))
			s.placeholders.add(i, stand)
			s.placeholders.add(i, base64Forms(stand)...)
		}
	}
	s.guestTLS = &tls.Config{
		MinVersion:         tls.VersionTLS12,
		NextProtos:         []string{"h2", "http/1.1"},
		GetConfigForClient: serverName,
		GetCertificate:     s.certificate,
	}
	s.upstreamTLS = &tls.Config{
		MinVersion:         tls.VersionTLS12,
		RootCAs:            s.Roots,
		ClientSessionCache: tls.NewLRUClientSessionCache(0),
	}
}

// A connection is one guest's to one host, with the upstream connections that
// are used for it.
type connection struct {
	*Server
	target    Target
	authority string // of the host, as it is sent
	bound     []bawn.Binding
	transport *http.Transport
	proxy     *httputil.ReverseProxy
	running   sync.WaitGroup
}

// multiplexed reports whether a guest speaks HTTP/2.
func multiplexed(guest net.Conn) bool {
	t, ok := guest.(*tls.Conn)
	return ok && t.ConnectionState().NegotiatedProtocol == "h2"
}

// newConnection speaks HTTP/2 with the host where the guest does so with us. A
// guest of HTTP/1.1 has one request at a time: in frames it takes more
// goroutines, and longer.
func (s *Server) newConnection(target Target, h2 bool) *connection {
	c := &connection{Server: s, target: target, authority: authority(target)}
	for _, b := range s.Bindings {
		if s.Matches != nil && s.Matches(b, target.Host, target.Port) {
			c.bound = append(c.bound, b)
		}
	}
	verified := s.upstreamTLS.Clone()
	verified.ServerName = target.Host
	c.transport = &http.Transport{
		DialContext:            c.dial,
		TLSClientConfig:        verified,
		TLSHandshakeTimeout:    handshakeTime,
		ExpectContinueTimeout:  continueTime,
		IdleConnTimeout:        idleUpstream,
		MaxIdleConnsPerHost:    idlePerHost,
		MaxResponseHeaderBytes: maxHeader,
		DisableCompression:     true, // bodies pass as they are
		ForceAttemptHTTP2:      h2,
		HTTP2:                  &http.HTTP2Config{MaxReceiveBufferPerStream: hostBuffer},
	}
	c.proxy = &httputil.ReverseProxy{
		Rewrite:        c.rewrite,
		Transport:      c,
		ModifyResponse: c.answered,
		ErrorHandler:   c.failed,
		FlushInterval:  -1, // at once
		BufferPool:     buffers,
		ErrorLog:       slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
	}
	return c
}

// authority returns the Host of requests: the port stands in it where it is
// not the scheme's own.
func authority(t Target) string {
	full := net.JoinHostPort(t.Host, strconv.Itoa(int(t.Port)))
	if t.Port == ownPort(t) {
		return full[:len(full)-len(":")-len(strconv.Itoa(int(t.Port)))]
	}
	return full
}

func ownPort(t Target) uint16 {
	if t.TLS {
		return 443
	}
	return 80
}

func scheme(t Target) string {
	if t.TLS {
		return "https"
	}
	return "http"
}

// server returns what speaks with the guest.
func (c *connection) server(ctx context.Context) *http.Server {
	return &http.Server{
		Handler: c,

		DisableGeneralOptionsHandler: true, // "OPTIONS *" is refused like every other
		ReadHeaderTimeout:            c.headerTimeout(),
		IdleTimeout:                  orElse(c.IdleTimeout, 2*time.Minute),
		MaxHeaderBytes:               maxRequest,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: maxStreams, MaxReceiveBufferPerConnection: guestBuffer, MaxReceiveBufferPerStream: guestBuffer,
		},
		ErrorLog:    slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
}

func (c *connection) close() { c.transport.CloseIdleConnections() }

// dial ignores the address it is given: there is one host to go to.
func (c *connection) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	if c.Dial == nil {
		return nil, errors.New("the session has no way out")
	}
	conn, addr, err := c.Dial(ctx, c.target.Host, c.target.Port)
	if err != nil {
		return nil, err
	}
	return &hostConn{Conn: conn, addr: addr}, nil
}

// agrees reports whether an authority names the target.
func (c *connection) agrees(given string) bool {
	host, port := given, ownPort(c.target)
	if h, p, err := net.SplitHostPort(given); err == nil {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil {
			return false
		}
		host, port = h, uint16(n)
		if net.ParseIP(h) != nil && given[0] == '[' {
			host = "[" + h + "]"
		}
	}
	normal, _, err := hostname.NormalASCII(host)
	return err == nil && normal == c.target.Host && port == c.target.Port
}

// wellFormed refuses requests that are not for this host, not for a path, or
// that would turn the connection into something else.
func (c *connection) wellFormed(r *http.Request) *Refusal {
	old := r.ProtoMajor == 1 && r.ProtoMinor == 0 && r.Host == ""
	if !old && !c.agrees(r.Host) || r.Header.Get("Host") != "" && !c.agrees(r.Header.Get("Host")) {
		return &Refusal{
			Status: http.StatusMisdirectedRequest, Rule: "host", close: true,
			Reason: fmt.Sprintf("the request names the host %q, the connection is to %q", r.Host, c.authority),
			Remedy: "open a connection of its own for each host",
		}
	}
	switch {
	case r.Method == http.MethodConnect || r.Method == http.MethodTrace || r.Method == "TRACK" || r.Method == "PRI":
		return &Refusal{Status: http.StatusMethodNotAllowed, Rule: "method", Reason: fmt.Sprintf("the method %q is not forwarded", r.Method), close: true}
	case len(r.RequestURI) == 0 || r.RequestURI[0] != '/':
		return &Refusal{Status: http.StatusBadRequest, Rule: "path", Reason: "want a request for a path; a whole URL or * is not forwarded", close: true}
	}
	if name := override(r); name != "" {
		return &Refusal{Status: http.StatusBadRequest, Rule: "override", Reason: fmt.Sprintf("%s would make it another request than the one that is decided", name), Remedy: "send it with its own method and path"}
	}
	return nil
}

// override names the header or parameter for which some servers take another
// method or path than the request's own, or "". Names are compared as CGI
// hands headers on: there X_Y and X-Y are the same (RFC 3875 section 4.1.18).
func override(r *http.Request) string {
	for _, header := range []http.Header{r.Header, r.Trailer} { // some servers add announced trailers to the header
		for name := range header {
			if isOverride(asCGI(name)) {
				return "the header " + name
			}
		}
	}
	for part := range strings.FieldsFuncSeq(r.URL.RawQuery, func(c rune) bool { return c == '&' || c == ';' }) {
		name, _, _ := strings.Cut(part, "=")
		if plain := unescaped(name); namesOverride(plain) {
			return fmt.Sprintf("the parameter %q", plain)
		}
	}
	return ""
}

// asCGI writes a name as all headers are compared.
func asCGI(name string) string {
	return strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			return c
		}
		return '-'
	}, strings.ToLower(name))
}

// isOverride reports whether a header, written asCGI, gives another method or path than
// the request's own. No list names all such headers, so words decide: those of
// overriding, or a method, path or URL that belongs to another request: the client's
// (X-Original-URL, X-Rewrite-URI, X-Forwarded-Prefix) or HTTP's (X-HTTP-Method).
func isOverride(name string) bool {
	var another, part bool
	for word := range strings.SplitSeq(name, "-") {
		switch word {
		case "override", "overrides", "overwrite":
			return true
		case "original", "rewrite", "rewritten", "forwarded", "http":
			another = true
		case "method", "verb", "path", "pathinfo", "prefix", "url", "uri":
			part = true
		}
	}
	return another && part
}

// buffers are for copying bodies.
var buffers httputil.BufferPool = &bufferPool{}

const bufferSize = 32 << 10 // bytes

type bufferPool struct{ sync.Pool }

func (p *bufferPool) Get() []byte {
	if b, ok := p.Pool.Get().(*[]byte); ok {
		return *b
	}
	return make([]byte, bufferSize)
}

func (p *bufferPool) Put(b []byte) { p.Pool.Put(&b) }
