package gateway

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Path is where clients find the gateway over HTTP.
const Path = "/mcp"

// MinToken is the fewest bytes that a token may have.
const MinToken = 26

// Bounds of what is served over HTTP.
const (
	maxHeader   = 16 << 10
	headerTime  = 10 * time.Second
	sessionTime = time.Hour // of a client that says nothing
)

// Listen makes a socket on this machine's loopback, which is all that the
// gateway is served at.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !at.Addr().IsLoopback() {
		return nil, fmt.Errorf("the address %q: want one of this machine's loopback and a port, such as 127.0.0.1:8765", address)
	}
	return new(net.ListenConfig).Listen(ctx, "tcp", address)
}

// ServeHTTP serves clients that show the token, at Path, until ctx ends. It
// closes l.
func (g *Gateway) ServeHTTP(ctx context.Context, l net.Listener, token string) error {
	handler, err := g.handler(l.Addr(), token)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	s := &http.Server{Handler: handler, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(g.ctx, cancel)()
	defer context.AfterFunc(ctx, func() { _ = s.Close() })()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// handler serves clients that show the token and use the loopback's own names. It
// refuses every request of a page in a browser: the gateway has no pages.
func (g *Gateway) handler(at net.Addr, token string) (http.Handler, error) {
	if len(token) < MinToken {
		return nil, fmt.Errorf("the token has %d characters; want at least %d", len(token), MinToken)
	}
	tcp, ok := at.(*net.TCPAddr)
	if !ok || !tcp.IP.IsLoopback() {
		return nil, fmt.Errorf("served at %v; want a port of the loopback", at)
	}
	port := fmt.Sprint(tcp.Port)
	hosts := []string{net.JoinHostPort("127.0.0.1", port), net.JoinHostPort("localhost", port), net.JoinHostPort("::1", port), net.JoinHostPort(tcp.IP.String(), port)}
	mux := http.NewServeMux()
	mux.Handle(Path, g.protocols())
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !shows(r, token) {
			w.Header().Set("Connection", "close") // a stranger holds no connection
		}
		switch origin := r.Header.Get("Origin"); {
		case !slices.Contains(hosts, r.Host):
			http.Error(w, "bawn: this name is not the gateway's; use 127.0.0.1 with its port", http.StatusForbidden)
		case origin != "" || r.Header.Get("Sec-Fetch-Site") != "":
			http.Error(w, "bawn: pages in browsers are not served", http.StatusForbidden)
		case !shows(r, token):
			w.Header().Set("WWW-Authenticate", `Bearer realm="bawn"`)
			http.Error(w, "bawn: the token is missing or wrong; \"bawn mcp --help\" says where it is", http.StatusUnauthorized)
		default:
			mux.ServeHTTP(w, r)
		}
	}), nil
}

// shows reports whether a request has the token, in time that does not tell
// how much of it.
func shows(r *http.Request, token string) bool {
	got, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return ok && len(r.Header.Values("Authorization")) == 1 && subtle.ConstantTimeCompare([]byte(got), []byte(token)) == 1
}

// protocols serves clients with a session, and those of 2026-07-28, which have
// none.
func (g *Gateway) protocols() http.Handler {
	server := func(*http.Request) *mcp.Server { return g.front }
	stateful := mcp.NewStreamableHTTPHandler(server, &mcp.StreamableHTTPOptions{SessionTimeout: sessionTime, MaxRequestBodyBytes: maxClientMessage})
	stateless := mcp.NewStreamableHTTPHandler(server, &mcp.StreamableHTTPOptions{Stateless: true, MaxRequestBodyBytes: maxClientMessage})
	c := newClients(g.front, stateful)
	return c.bounded(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(sessionHeader) == "" && r.Header.Get("Mcp-Protocol-Version") >= "2026-07-28" {
			stateless.ServeHTTP(w, r)
			return
		}
		c.ServeHTTP(w, r)
	}))
}
