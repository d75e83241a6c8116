// Package relay carries a guest's connections to where its rules let them go.
// It accepts, outside of the sandbox, from sockets that were made inside: each
// connection is one that the guest made to anywhere. The name it meant follows
// from the address it dialled, which our resolver gave out for that name alone.
// The guard decides on the name, the relay resolves and dials it, and the
// guest's first bytes must then agree with it.
package relay

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/egress"
	"github.com/bawn-dev/bawn/internal/egress/dns"
	"github.com/bawn-dev/bawn/internal/egress/names"
	"github.com/bawn-dev/bawn/internal/guard"
	"github.com/bawn-dev/bawn/internal/stack"
)

// Options configure a relay. Guard, Names, DNS, Dial and HTTP are needed; a nil
// one makes every connection end.
type Options struct {
	Guard   guard.Guard
	Event   bawn.Event // what every event says besides
	Names   *names.Table
	DNS     *dns.Server
	Dial    Dial
	Classes Classes
	HTTP    Handler // speaks HTTP with the guest, request by request
	SSH     Handler // speaks SSH with the guest; nil where no rule needs it
	// HostPorts leads from ports of the guest's loopback to ports of the host's.
	HostPorts map[uint16]uint16
	MaxConns  int64 // to one host at a time; 0: as many as there is room for
	MaxOut    int64 // bytes sent to one host; 0: no limit
	Denied    func(egress.Denial)
	// Ended records what became of a connection, soon; nil has the Guard's
	// recorder write it at once.
	Ended func(bawn.Event)
	// Crowd is called when more connections live than a single processor serves
	// best, and when there have been none for a while; may be nil.
	Crowd func(bool)
	Now   func() time.Time
}

// Dial connects to host, a name in normal form or an address, and returns the
// address that was dialled.
type Dial func(ctx context.Context, host string, port uint16) (net.Conn, netip.AddrPort, error)

// A Target is where the guest wanted to connect: a name, or an address that it
// dialled without asking for a name.
type Target struct {
	Host string
	Port uint16
	Addr bool // Host is an address
	TLS  bool // the guest begins with TLS
}

// A Handler speaks with the guest itself. It closes conn.
type Handler interface {
	Serve(ctx context.Context, conn net.Conn, t Target) error
}

// Classes say which hosts must be inspected.
type Classes struct {
	HTTP func(host string, port uint16) bool // requests are decided one by one: TLS is opened
	SSH  func(host string, port uint16) bool // SSH is opened
}

// A Relay serves one session.
type Relay struct {
	Options
	original func(*net.TCPConn) (netip.AddrPort, error) // where the guest wanted to connect
	pause    time.Duration                              // before half a word of a guest is passed on
	slots    chan struct{}                              // one for each connection

	mu    sync.Mutex
	hosts map[string]*host
	live  map[net.Conn]context.CancelFunc
	ended bool
	done  int  // connections carried since their memory was last released
	crowd bool // Crowd was told so
	all   sync.WaitGroup
}

// A host counts the bytes sent to it.
type host struct {
	conns int64
	quota *quota
}

// maxHosts bounds the table of hosts. The resolver gives out no more names.
const maxHosts = 1 << 17

// errBusy says that a host has as many connections as it may.
var errBusy = errors.New("the limit of connections to this host is reached")

// New returns a relay that carries up to room connections at a time.
func New(o Options, room int) *Relay {
	return &Relay{Options: o, original: original, pause: firstHello, slots: make(chan struct{}, max(1, room)), hosts: map[string]*host{}, live: map[net.Conn]context.CancelFunc{}}
}

// Accept serves the guest's redirected connections until l is closed.
func (r *Relay) Accept(ctx context.Context, l net.Listener) error {
	return r.accept(ctx, l, r.redirected)
}

// AcceptProxy serves guests that insist on a proxy until l is closed.
func (r *Relay) AcceptProxy(ctx context.Context, l net.Listener) error {
	return r.accept(ctx, l, r.proxied)
}

// AcceptDNS serves the resolver's clients over TCP until l is closed.
func (r *Relay) AcceptDNS(ctx context.Context, l net.Listener) error {
	return r.accept(ctx, l, func(ctx context.Context, c *net.TCPConn) {
		_ = r.DNS.ServeStream(ctx, c) // ends with the client, whatever it sent
	})
}

func (r *Relay) accept(ctx context.Context, l net.Listener, serve func(context.Context, *net.TCPConn)) error {
	for {
		r.slots <- struct{}{}
		c, err := l.Accept()
		if err != nil {
			<-r.slots
			if scarce(err) {
				time.Sleep(10 * time.Millisecond)
				continue
			}
			return err
		}
		conn, tcp := c.(*net.TCPConn)
		own, cancel := context.WithCancel(egress.WithClient(ctx, c.RemoteAddr()))
		if !tcp || !r.enter(c, cancel) {
			cancel()
			reset(c)
			<-r.slots
			return net.ErrClosed
		}
		stack.Go(func() {
			defer func() { cancel(); r.leave(c); <-r.slots }()
			if contained(func() error { serve(own, conn); return nil }) != nil {
				reset(c)
			}
		})
	}
}

// scarce reports whether a later accept may succeed.
func scarce(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ECONNABORTED) || errors.Is(err, syscall.ENOBUFS) || errors.Is(err, syscall.ENOMEM)
}

// enter takes note of a connection and of what ends it, unless the relay has
// ended.
func (r *Relay) enter(c net.Conn, cancel context.CancelFunc) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return false
	}
	r.live[c] = cancel
	r.all.Add(1)
	if len(r.live) > fewLive && !r.crowd && r.Crowd != nil {
		r.crowd = true
		r.Crowd(true)
	}
	return true
}

func (r *Relay) leave(c net.Conn) {
	_ = c.Close() // most are closed already
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.live, c)
	r.all.Done()
	if r.done++; (r.done >= manyDone || r.crowd) && len(r.live) == 0 {
		r.done = 0
		time.AfterFunc(rest, r.giveBack)
	}
}

// When an idle relay releases its memory: after so many connections, and so
// long after the last of them.
const (
	manyDone = 64
	rest     = time.Second
)

// fewLive is how many connections may live before more processors help.
const fewLive = 4

// giveBack closes the pipes that splice(2) went through. Go keeps them for the
// next connections until they are collected as garbage, of which an idle
// process makes none. A sync.Pool is emptied by the second collection.
func (r *Relay) giveBack() {
	r.mu.Lock()
	idle := len(r.live) == 0
	if idle && r.crowd {
		r.crowd = false
		r.Crowd(false)
	}
	r.mu.Unlock()
	if idle {
		runtime.GC()
		runtime.GC()
	}
}

// Close ends every connection and waits until their ends are recorded.
func (r *Relay) Close() {
	r.mu.Lock()
	r.ended = true
	for c, cancel := range r.live {
		cancel()
		reset(c)
	}
	r.mu.Unlock()
	r.all.Wait()
}

// begin counts one more connection to a host; end counts it out.
func (r *Relay) begin(name string) (h *host, end func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h = r.hosts[name]
	if h == nil {
		if len(r.hosts) >= maxHosts {
			return nil, nil, errBusy
		}
		h = &host{}
		if r.MaxOut > 0 {
			h.quota = &quota{}
			h.quota.left.Store(r.MaxOut)
		}
		r.hosts[name] = h
	}
	if r.MaxConns > 0 && h.conns >= r.MaxConns {
		return nil, nil, errBusy
	}
	h.conns++
	return h, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		h.conns--
	}, nil
}
