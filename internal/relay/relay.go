// Package relay is the life of `bawnd serve`: the one process of a user that
// carries questions from the hosts of sessions to humans, and answers back. It
// decides nothing and runs no code of a guest.
package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/bawn-dev/bawn/internal/approval"
	"github.com/bawn-dev/bawn/internal/approval/link"
	"github.com/bawn-dev/bawn/internal/attach"
	"github.com/bawn-dev/bawn/internal/audit"
	"github.com/bawn-dev/bawn/internal/peercred"
	"github.com/bawn-dev/bawn/internal/places"
	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/relay/store"
)

// Names of what the relay makes in Options.State. Package places has the names
// of its sockets.
const (
	databaseName = "relay.db"
	lockName     = "relay.lock"
	LogName      = "relay.log" // of a relay that was started on demand
)

// IdleTime is how long a relay that was started on demand stays without
// anything to do.
const IdleTime = 10 * time.Minute

// A Frontend is a further way in. It serves until ctx ends; its error ends the
// relay.
type Frontend func(ctx context.Context, r *Relay) error

// Options say what a relay serves.
type Options struct {
	Runtime   string        // directory of the sockets and of the sessions' registry, absolute
	State     string        // directory of the database, absolute
	AuditDir  string        // directory of the audit log, absolute
	OnDemand  bool          // end after Idle without anything to do
	Idle      time.Duration // 0 is IdleTime
	Environ   []string      // of the process: what systemd says is in it
	Stderr    io.Writer     // for the log
	Frontends []Frontend
}

// A Relay is what frontends lead to.
type Relay struct {
	Options
	Queue *approval.Queue
	Store *store.DB
	Audit *audit.Log
	Log   *slog.Logger

	hosts  link.Server
	socks  map[string]net.Listener // that systemd has made, by name
	mu     sync.Mutex
	end    context.CancelFunc // ends serve
	busy   int
	seen   time.Time // when there was something to do
	closed []func() error
}

// Serve is a relay, until ctx ends, a SIGTERM or SIGINT comes, or it has been
// idle long enough. A relay that runs already is a *RunningError.
func Serve(ctx context.Context, o Options) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	r := &Relay{Options: o, Log: slog.New(slog.NewTextHandler(o.Stderr, nil)), seen: time.Now()}
	if r.Idle == 0 {
		r.Idle = IdleTime
	}
	err := r.open(ctx)
	switch {
	case err == nil:
		err = r.serve(ctx)
	case ctx.Err() != nil:
		err = nil // it was told to end, which damages nothing
	}
	err = errors.Join(err, r.close())
	if err != nil {
		r.Log.Error("the relay ends", "error", err)
	}
	return err
}

// open takes the lock and then opens what only one relay may have.
func (r *Relay) open(ctx context.Context) error {
	unlock, err := r.lock()
	if err != nil {
		return err
	}
	r.later(unlock)
	if err := r.wanted(); err != nil {
		return err
	}
	if r.Store, err = store.Open(ctx, filepath.Join(r.State, databaseName), time.Now()); err != nil {
		return err
	}
	r.later(r.Store.Close)
	if r.Audit, err = audit.Open(r.AuditDir, audit.Options{}); err != nil {
		return err
	}
	r.later(r.Audit.Close)
	r.Queue, err = approval.NewQueue(ctx, approval.Options{Store: r.Store, Recorder: r.Audit, Dead: r.dead, Log: r.Log})
	if err != nil {
		return err
	}
	r.later(r.Queue.Close)
	r.socks, err = activated(r.Environ)
	return err
}

// later calls f at the end, before what was given earlier.
func (r *Relay) later(f func() error) { r.closed = append(r.closed, f) }

func (r *Relay) close() error {
	var errs []error
	for _, f := range slices.Backward(r.closed) {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}

// serve opens all frontends, and closes them all when one fails or ctx ends.
func (r *Relay) serve(ctx context.Context) error {
	l, err := r.Listen(places.HostsSocket)
	if err != nil {
		return err
	}
	r.hosts = link.Server{Prompter: r.Queue, Admit: r.AdmitHost, Keyless: r.Keyless(places.HostsSocket), Log: r.Log}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	r.end = stop
	var frontends sync.WaitGroup
	failed := make(chan error, 2+len(r.Frontends))
	open := func(frontend func() error) {
		frontends.Go(func() {
			if err := frontend(); err != nil {
				failed <- err
				stop()
			}
		})
	}
	open(func() error { return r.hosts.Serve(l) })
	for _, frontend := range r.Frontends {
		open(func() error { return frontend(ctx, r) })
	}
	if r.OnDemand {
		open(func() error { return r.idle(ctx) })
	}
	notify(r.Environ, "READY=1")
	r.Log.Info("the relay serves", "sockets", r.Runtime)
	<-ctx.Done()
	notify(r.Environ, "STOPPING=1")
	err = l.Close()
	frontends.Wait()
	close(failed)
	for why := range failed {
		if !errors.Is(why, errIdle) {
			err = errors.Join(err, why)
		}
	}
	return err
}

// Stop ends the relay. Frontends may call it.
func (r *Relay) Stop() { r.end() }

// Unit reports whether the system has made our sockets.
func (r *Relay) Unit() bool { return len(r.socks) > 0 }

var errIdle = errors.New("nothing to do")

// idle returns errIdle when there has been nothing to do for long enough.
func (r *Relay) idle(ctx context.Context) error {
	every := time.NewTicker(max(r.Idle/20, time.Millisecond))
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-every.C:
			if r.idleSince(ctx, now) >= r.Idle {
				r.Log.Info("nothing to do", "for", r.Idle)
				return errIdle
			}
		}
	}
}

func (r *Relay) idleSince(ctx context.Context, now time.Time) time.Duration {
	pending, err := r.Queue.List(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil || len(pending) > 0 || r.busy > 0 || r.hosts.Connections() > 0 {
		r.seen = now
	}
	return now.Sub(r.seen)
}

// Busy keeps a relay that was started on demand from ending until release is
// called: somebody is connected.
func (r *Relay) Busy() (release func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busy++
	return sync.OnceFunc(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.busy--
		r.seen = time.Now()
	})
}

// dead reports whether a session's host has ended. One that the registry does
// not know is: hosts enter their sessions before they ask.
func (r *Relay) dead(session string) bool {
	lives, err := attach.Lives(r.Runtime, session)
	if err != nil {
		r.Log.Warn("look whether a session lives", "session", redact.Visible(session), "error", err)
	}
	return err == nil && !lives
}

// AdmitHost returns nil for a peer of hosts.sock that is of our user and no
// guest. Hosts may start hosts. Who is refused is recorded.
func (r *Relay) AdmitHost(conn net.Conn) error {
	return r.admitted(places.HostsSocket, peercred.Admit(conn, nil))
}

// AdmitHuman returns nil for a peer of the API's socket that may act for the
// human: a process of our user that is neither a guest nor a host of sessions,
// and was not started by one. It records whom it refuses.
func (r *Relay) AdmitHuman(conn net.Conn) error {
	entries, err := attach.List(r.Runtime)
	if err != nil {
		return r.admitted(places.APISocket, fmt.Errorf("read the registry of sessions: %w", err))
	}
	hosts := map[int]bool{}
	for _, e := range entries {
		if e.State == attach.Running {
			hosts[e.PID] = true
		}
	}
	return r.admitted(places.APISocket, peercred.Admit(conn, func(pid int) bool { return hosts[pid] }))
}

// admitted records a refusal, and passes it on.
func (r *Relay) admitted(socket string, refused error) error {
	if refused == nil {
		return nil
	}
	r.Log.Warn("refused a connection", "socket", socket, "error", redact.Visible(refused.Error()))
	return errors.Join(refused, r.Audit.Record(context.Background(), peercred.Event(socket, refused, time.Now())))
}

// Keyless returns a function that records a peer without the key of a socket.
func (r *Relay) Keyless(socket string) func(error) {
	return func(refused error) { _ = r.admitted(socket, refused) } // they are refused either way
}
