package api

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"connectrpc.com/connect"

	"github.com/bawn-dev/bawn/internal/approval/link"
	"github.com/bawn-dev/bawn/internal/atomicfile"
	"github.com/bawn-dev/bawn/internal/peercred"
)

// A Socket is the unix socket for programs of the same user.
type Socket struct {
	API http.Handler // an *API
	// Check refuses a peer that may not call, and records that: another user's, a
	// session's descendant, one in a sandbox. A nil Check refuses every peer.
	Check func(net.Conn) error
	// Keyless records a peer that passed Check and has not the key. It may be nil.
	Keyless func(error)
	// Caller is the caller of every request on the socket.
	Caller Caller
	Log    *slog.Logger

	key string // see link.KeyOf
}

// Limits of the socket.
const (
	headerTime = 5 * time.Second
	idleTime   = 2 * time.Minute
	maxHeader  = 32 << 10
)

// peerKey is where a request's context has its *peer.
type peerKey struct{}

// A peer is one connection, and what came of its check.
type peer struct {
	conn    net.Conn
	refused error
}

// Serve serves HTTP/1.1 and unencrypted HTTP/2 on l until ctx ends or l breaks,
// and closes l. Its key is in a file beside the socket for as long as it serves.
func (s *Socket) Serve(ctx context.Context, l net.Listener) error {
	defer l.Close()
	s.key = rand.Text()
	path := link.KeyOf(l.Addr().String())
	if err := atomicfile.Write(path, []byte(s.key), 0o600); err != nil {
		return fmt.Errorf("write the key of the API's socket: %w", err)
	}
	defer os.Remove(path)
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{
		Handler: s, Protocols: &protocols, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		ErrorLog:    slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, peerKey{}, &peer{c, s.check(c)})
		},
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // its error is that of closing sockets
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the API: %w", err)
	}
	return nil
}

// check looks at a peer, once for each connection.
func (s *Socket) check(c net.Conn) error {
	if s.Check == nil {
		return errors.New("no check of peers is set")
	}
	return s.Check(c)
}

// ServeHTTP answers a request that a peer which may call sends with the key.
func (s *Socket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p, ok := r.Context().Value(peerKey{}).(*peer)
	if !ok || p.refused != nil || !s.unlocked(p, r) {
		refused := connect.NewError(connect.CodePermissionDenied, errors.New("this peer may not use the relay: its answers are for humans, and a request needs the key of the socket"))
		if out := connect.NewErrorWriter(); out.IsSupported(r) {
			_ = out.Write(w, r, refused) // the peer is gone
			return
		}
		http.Error(w, refused.Message(), http.StatusForbidden)
		return
	}
	s.API.ServeHTTP(w, r.WithContext(WithCaller(r.Context(), s.Caller)))
}

// unlocked reports whether a request has the key. A session's host connects to
// sockets in its guests' stead and then has its own credentials: the key shows
// that the peer itself wants to call.
func (s *Socket) unlocked(p *peer, r *http.Request) bool {
	want := "Bearer " + s.key
	if s.key != "" && subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte(want)) == 1 {
		return true
	}
	refused := peercred.Refuse(p.conn, "it has not the key of the socket, so it may be a host that connects for a guest")
	s.Log.Warn("refused a request", "error", refused)
	if s.Keyless != nil {
		s.Keyless(refused)
	}
	return false
}

// Client returns a client whose requests all go to the relay's socket at path,
// with the key beside it. It wants the relay to be this user's process.
func Client(path string) *http.Client {
	return &http.Client{Transport: keyed{path, &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
		if err != nil {
			return nil, err
		}
		if err := ownRelay(conn); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		return conn, nil
	}}}}
}

// ownRelay wants the relay at the other end to be this user's.
func ownRelay(conn net.Conn) error {
	relay, err := peercred.Of(conn)
	if err != nil {
		return err
	}
	if relay.UID != os.Geteuid() {
		err = fmt.Errorf("the relay is of user %d; want %d", relay.UID, os.Geteuid())
	}
	return errors.Join(err, relay.Close())
}

// keyed adds the key of the socket at path to every request. It is read each
// time: the next relay has another.
type keyed struct {
	path  string
	under http.RoundTripper
}

// RoundTrip is http.RoundTripper's.
func (k keyed) RoundTrip(r *http.Request) (*http.Response, error) {
	key, err := atomicfile.Read(link.KeyOf(k.path), 1024)
	if err != nil {
		if r.Body != nil {
			err = errors.Join(err, r.Body.Close())
		}
		return nil, fmt.Errorf("read the key of the relay's socket: %w", err)
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(key))
	return k.under.RoundTrip(r)
}
