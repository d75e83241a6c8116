package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// How long a server that has ended by itself is left alone: twice as long each
// time, from the first to the last. One that ran for calm is forgiven.
const (
	firstPause = time.Second
	lastPause  = 2 * time.Minute
	calm       = time.Minute
)

// A backend is one server with its tools and state.
type backend struct {
	Server
	g     *Gateway
	slots chan struct{} // for calls

	mu         sync.Mutex
	run        *running      // nil: it does not run
	starting   chan struct{} // closed when an attempt is over; nil: no attempt is being made
	fails      int           // in a row
	before     time.Time     // which it is not started again
	why        string        // it failed last
	stale      bool          // its lists have changed, and are about to be read
	waiting    int           // calls, for a slot
	calls      map[*call]struct{}
	reading    sync.Mutex // of lists
	presenting sync.Mutex // of shown
	shown      shown
}

// A running is one life of a server.
type running struct {
	session *mcp.ClientSession
	wire    *wire
	process Process
	begun   time.Time
	idle    *time.Timer
	used    time.Time // last
	stopped bool      // by us
	cause   string    // why we ended it, where it is to blame
	ended   chan struct{}
}

func newBackend(g *Gateway, s Server) *backend {
	s.Limits = s.Limits.filled()
	return &backend{Server: s, g: g, slots: make(chan struct{}, s.Limits.CallsAtOnce), calls: map[*call]struct{}{}, shown: shown{}}
}

// An awayError says that a server does not run, and when it may again.
type awayError struct {
	server, why string
	again       time.Duration
}

func (e *awayError) Error() string {
	return fmt.Sprintf("the server %q does not run: %s; it is started again, at a call, in %v", e.server, e.why, e.again.Round(time.Second))
}

// errGone says that the gateway is ending.
var errGone = errors.New("the gateway ends")

// get returns the running server, and starts it if needed. A new server is told the
// capabilities of front, the client it is started for.
func (b *backend) get(ctx context.Context, front *mcp.ServerSession) (*running, error) {
	for {
		r, wait, err := b.attempt(front)
		if r != nil || err != nil {
			return r, err
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// attempt returns the running server, or what to wait for until its state is
// known.
func (b *backend) attempt(front *mcp.ServerSession) (*running, chan struct{}, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	left := b.before.Sub(b.g.opts.Now())
	switch {
	case b.g.ctx.Err() != nil:
		return nil, nil, errGone
	case b.run != nil:
		return b.run, nil, nil
	case b.starting != nil:
	case left > 0:
		return nil, nil, &awayError{b.Name, b.why, left}
	default:
		b.starting = make(chan struct{})
		b.g.work.Go(func() { b.start(front, b.starting) })
	}
	return nil, b.starting, nil
}

// start makes one attempt.
func (b *backend) start(front *mcp.ServerSession, over chan struct{}) {
	r, err := b.connect(front)
	if err == nil {
		err = b.greet(r)
	}
	b.mu.Lock()
	b.starting = nil
	if err == nil {
		b.run = r
	} else {
		b.failed(err.Error())
	}
	b.mu.Unlock()
	close(over)
	if err != nil {
		b.g.report(b, "failed", err.Error())
		return
	}
	b.g.report(b, "started", "")
	b.touch(r)
	b.g.work.Go(func() { b.watch(r) })
	if b.g.ctx.Err() != nil {
		b.stop("the gateway ends")
	}
}

// failed lets a while go by. The backend is locked.
func (b *backend) failed(why string) {
	pause := min(lastPause, firstPause<<min(b.fails, 16))
	b.fails++
	b.why, b.before = line(why), b.g.opts.Now().Add(pause)
}

// connect starts the program and greets it.
func (b *backend) connect(front *mcp.ServerSession) (*running, error) {
	select {
	case b.g.starts <- struct{}{}:
		defer func() { <-b.g.starts }()
	case <-b.g.ctx.Done():
		return nil, errGone
	}
	ctx, cancel := context.WithTimeout(b.g.ctx, b.Limits.Start)
	defer cancel()
	p, err := b.Start(ctx)
	if err != nil {
		return nil, fmt.Errorf("it can't be started: %w", err)
	}
	l := newLines(&readHalf{newMeter(p, b.Limits, b.g.opts.Now), p}, writeHalf{p}, b.Limits.Message)
	l.bound, l.patience = p.SetWriteDeadline, b.Limits.Call
	t := &transport{Transport: l, b: b}
	session, err := b.client(front).Connect(ctx, t, nil)
	if err != nil {
		why := errors.Join(err, p.Close())
		if ctx.Err() != nil {
			why = fmt.Errorf("it has not answered within %v", b.Limits.Start)
		}
		return nil, fmt.Errorf("%w%s", why, lastWords(p))
	}
	return &running{session: session, wire: t.w, process: p, begun: b.g.opts.Now(), ended: make(chan struct{})}, nil
}

// greet reads what a server that has just been started offers.
func (b *backend) greet(r *running) error {
	ctx, cancel := context.WithTimeout(b.g.ctx, b.Limits.Start)
	defer cancel()
	if at := r.session.InitializeResult(); at != nil && at.Capabilities != nil && at.Capabilities.Logging != nil && at.ProtocolVersion < "2026-07-28" {
		_ = r.session.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: serverLevel}) // it may log without being told
	}
	o, err := b.read(ctx, r)
	if err != nil {
		_ = r.process.Close() // this error is the cause
		return fmt.Errorf("what it offers can't be read: %w%s", err, lastWords(r.process))
	}
	b.present(o)
	return nil
}

// A readHalf is read from a server; closing it ends the server.
type readHalf struct {
	*meter
	p Process
}

func (o *readHalf) Close() error { return o.p.Close() }

// A writeHalf is written to a server.
type writeHalf struct{ Process }

// Close leaves the end to the readHalf, which is closed at the same time.
func (writeHalf) Close() error { return nil }

// watch sees a server's life through to its end.
func (b *backend) watch(r *running) {
	spoke := r.session.Wait()
	ended := r.process.Close()
	b.mu.Lock()
	if b.run == r {
		b.run = nil
	}
	r.idle.Stop()
	why := cmp.Or(r.cause, "it ended by itself")
	for _, err := range []error{spoke, ended} {
		if err != nil && !strings.Contains(why, err.Error()) {
			why += ": " + err.Error()
		}
	}
	why += lastWords(r.process)
	stopped := r.stopped
	if !stopped {
		if b.g.opts.Now().Sub(r.begun) > calm {
			b.fails = 0
		}
		b.failed(why)
	}
	b.mu.Unlock()
	close(r.ended)
	if !stopped {
		b.g.report(b, "ended", why)
	}
}

// lastWords is what a program said before it ended.
func lastWords(p Process) string {
	if said := line(p.Said()); said != "" {
		return "; its last words: " + said
	}
	return ""
}

// touch puts off the server's rest.
func (b *backend) touch(r *running) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r.used = b.g.opts.Now()
	if r.idle == nil {
		r.idle = time.AfterFunc(b.Limits.Idle, func() { b.rest(r) })
	}
}

// rest stops a server that was not needed for a while.
func (b *backend) rest(r *running) {
	b.mu.Lock()
	left := b.Limits.Idle
	if len(b.calls) == 0 {
		left = r.used.Add(b.Limits.Idle).Sub(b.g.opts.Now())
	}
	if left > 0 {
		r.idle.Reset(left)
	}
	b.mu.Unlock()
	if left <= 0 {
		b.end(r, "nobody has called it for a while")
	}
}

// stop ends the server, if it runs, and waits for it.
func (b *backend) stop(why string) {
	b.mu.Lock()
	r := b.run
	b.mu.Unlock()
	if r != nil {
		b.end(r, why)
		<-r.ended
	}
}

func (b *backend) end(r *running, why string) {
	b.mu.Lock()
	again := r.stopped || b.run != r
	r.stopped = true
	if b.run == r {
		b.run = nil
	}
	b.mu.Unlock()
	if again {
		return
	}
	b.g.report(b, "stopped", why)
	_ = r.process.Close() // watch tells how it ended
}

// state is what a human and a model are told of the server.
func (b *backend) state() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch left := b.before.Sub(b.g.opts.Now()); {
	case b.run != nil:
		return "runs"
	case b.starting != nil:
		return "starts"
	case left > 0:
		return fmt.Sprintf("failed (%s); is started again in %v at the earliest", b.why, left.Round(time.Second))
	case b.fails > 0:
		return fmt.Sprintf("failed (%s); is started again at the next call", b.why)
	}
	return "is started at the first call"
}
