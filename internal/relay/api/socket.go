package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"connectrpc.com/connect"
)

// A Door is the unix socket for programs of the same user.
type Door struct {
	API http.Handler // an *API
	// Check refuses a peer that may not come in, and records that: another
	// user's, a session's descendant, one in a sandbox. Without it nobody comes
	// in.
	Check func(net.Conn) error
	// Caller is who comes in here.
	Caller Caller
	Log    *slog.Logger
}

// Limits of the door.
const (
	headerTime = 5 * time.Second
	idleTime   = 2 * time.Minute
	maxHeader  = 32 << 10
)

// checkKey is where a connection's context says whether its peer may come in.
type checkKey struct{}

// Serve serves HTTP/1.1 and unencrypted HTTP/2 on l until ctx ends or l breaks,
// and closes l.
func (d *Door) Serve(ctx context.Context, l net.Listener) error {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{
		Handler: d, Protocols: &protocols, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		ErrorLog:    slog.NewLogLogger(d.Log.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, checkKey{}, d.check(c))
		},
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // its error is that of closing sockets
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the API: %w", err)
	}
	return nil
}

// A checked says what became of a connection's check.
type checked struct{ err error }

// check looks at a peer, once for each connection.
func (d *Door) check(c net.Conn) checked {
	if d.Check == nil {
		return checked{errors.New("no check of peers is set")}
	}
	return checked{d.Check(c)}
}

// ServeHTTP answers a peer that may come in.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, ok := r.Context().Value(checkKey{}).(checked)
	if !ok || c.err != nil {
		refused := connect.NewError(connect.CodePermissionDenied, errors.New("this peer may not use the relay: its answers are for humans"))
		if out := connect.NewErrorWriter(); out.IsSupported(r) {
			_ = out.Write(w, r, refused) // the peer is gone
			return
		}
		http.Error(w, refused.Message(), http.StatusForbidden)
		return
	}
	d.API.ServeHTTP(w, r.WithContext(WithCaller(r.Context(), d.Caller)))
}
