package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/egress/proxy"
	"github.com/bawn-dev/bawn/internal/egress/refuse"
	"github.com/bawn-dev/bawn/internal/egress/sniff"
	"github.com/bawn-dev/bawn/internal/hostname"
	"github.com/bawn-dev/bawn/internal/stack"
)

// How long a client may take for its request.
const (
	webHello    = 10 * time.Second       // on 80 and 443, where the client speaks first
	refuseHello = 300 * time.Millisecond // before it is refused there
	otherHello  = 20 * time.Millisecond  // before it is refused elsewhere
	firstHello  = 500 * time.Millisecond // for the rest, before half a word is passed on
)

// web reports whether the client of a port must speak first, TLS or HTTP.
func web(port uint16) bool { return port == 80 || port == 443 }

// redirected serves a connection that the guest made to anywhere. One to our
// own socket was not redirected and meant no host: to follow it would lead
// here again.
func (r *Relay) redirected(ctx context.Context, c *net.TCPConn) {
	to, err := r.original(c)
	if err != nil {
		reset(c)
		return
	}
	t, ok := r.target(to)
	switch {
	case to == ownAddr(c):
		r.refuseUnasked(ctx, c, t, refusal(RuleStale, fmt.Sprintf("%s is bawn's own port, and no host", to), "connect to the host itself"))
	case !ok:
		r.refuseUnasked(ctx, c, t, stale(to))
	default:
		r.serve(ctx, c, t)
	}
}

// ownAddr is where a connection arrived, after it was redirected.
func ownAddr(c *net.TCPConn) netip.AddrPort {
	a, ok := c.LocalAddr().(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	at := a.AddrPort()
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
}

func stale(to netip.AddrPort) *refused {
	return refusal(RuleStale, fmt.Sprintf("%s stands for no name of this session", to.Addr()), "resolve the name again")
}

// refuseUnasked refuses connections without a host, about which the guard can't
// be asked.
func (r *Relay) refuseUnasked(ctx context.Context, c stream, t Target, no *refused) {
	err := r.refuse(c, t, nil, no)
	r.recordEnd(ctx, t, bawn.Decision{}, &flow{}, netip.AddrPort{}, 0, err)
}

// target is the meaning of an address that the guest dialled.
func (r *Relay) target(to netip.AddrPort) (Target, bool) {
	name := to.Addr().String()
	if !r.Names.Owns(to.Addr()) {
		return Target{Host: name, Port: to.Port(), Addr: true}, true
	}
	if n, ok := r.Names.Name(to.Addr()); ok {
		return Target{Host: n, Port: to.Port()}, true
	}
	return Target{Host: name, Port: to.Port(), Addr: true}, false
}

// proxied serves a connection that names its target itself.
func (r *Relay) proxied(ctx context.Context, c *net.TCPConn) {
	_ = c.SetReadDeadline(r.Now().Add(webHello))
	req, err := proxy.Handshake(c)
	_ = c.SetReadDeadline(time.Time{})
	if err != nil {
		return // the client has been told
	}
	t, ok := r.asked(req.Host, req.Port)
	if !ok {
		no := stale(netip.MustParseAddrPort(t.resource()))
		r.reject(req, t, no)
		r.recordEnd(ctx, t, bawn.Decision{}, &flow{}, netip.AddrPort{}, 0, no)
		return
	}
	d := r.check(ctx, t)
	if d.Verdict != bawn.Allow {
		r.reject(req, t, &refused{d: d, remedy: remedyFor(t, d)})
		return
	}
	conn, err := req.Accept()
	if err != nil {
		return
	}
	if s, ok := conn.(stream); ok {
		r.allowed(ctx, s, t, d)
	}
}

// asked is the request of a proxy's client. A client that resolves names itself
// has one of our addresses for the name.
func (r *Relay) asked(host string, port uint16) (Target, bool) {
	if a, err := netip.ParseAddr(host); err == nil {
		return r.target(netip.AddrPortFrom(a, port))
	}
	return Target{Host: host, Port: port}, true
}

// reject tells a client of the proxy and the human.
func (r *Relay) reject(req *proxy.Client, t Target, no *refused) {
	n := r.denial(t, no.d, no.remedy)
	r.tell(n)
	_ = req.Reject(refuse.Denial{Resource: n.Resource, Rule: n.Rule, Reason: n.Reason, Remedy: n.Remedy}) // it is gone then
}

// serve decides on a connection and carries it.
func (r *Relay) serve(ctx context.Context, c stream, t Target) {
	if d := r.check(ctx, t); d.Verdict == bawn.Allow {
		r.allowed(ctx, c, t, d)
	} else {
		_ = r.refuse(c, t, nil, &refused{d: d, remedy: remedyFor(t, d)}) // the guard has recorded it
	}
}

// check puts a connection to the guard.
func (r *Relay) check(ctx context.Context, t Target) bawn.Decision {
	return r.Guard.Check(ctx, bawn.Action{
		Kind: bawn.Network, Operation: bawn.Connect, Resource: t.resource(),
		Session: r.Event.Session, Agent: r.Event.Agent, Dir: r.Event.Dir, At: r.Now(),
	}, r.Event)
}

func (t Target) resource() string { return net.JoinHostPort(t.Host, strconv.Itoa(int(t.Port))) }

// allowed carries a connection that was decided on.
func (r *Relay) allowed(ctx context.Context, c stream, t Target, d bawn.Decision) {
	h, end, err := r.begin(t.Host)
	if err != nil {
		err = r.refuse(c, t, nil, refusal(RuleBusy, err.Error(), "end some, or raise isolation.resources.net_connections"))
		r.recordEnd(ctx, t, d, &flow{}, netip.AddrPort{}, 0, err)
		return
	}
	defer end()
	began := r.Now()
	f := &flow{}
	var to netip.AddrPort
	err = contained(func() (err error) {
		to, err = r.carry(ctx, c, t, h, f)
		return err
	})
	if err != nil {
		reset(c) // where that has not been done
	}
	if f.limited.Load() { // whatever else failed because of it
		err = errLimit
		r.tell(r.denial(t, errLimit.d, errLimit.remedy))
	}
	r.recordEnd(ctx, t, d, f, to, r.Now().Sub(began), err)
}

// carry moves a connection's bytes by the way its port and rules ask for.
func (r *Relay) carry(ctx context.Context, c stream, t Target, h *host, f *flow) (netip.AddrPort, error) {
	switch {
	case t.Port == 22 && r.opensSSH(t):
		return netip.AddrPort{}, r.handle(ctx, c, nil, t, r.SSH, h, f)
	case web(t.Port) || r.Classes.HTTP(t.Host, t.Port):
		return r.hello(ctx, c, t, h, f)
	}
	return r.through(ctx, c, t, h, f)
}

// hello reads a client's first bytes, and then goes on accordingly.
func (r *Relay) hello(ctx context.Context, c stream, t Target, h *host, f *flow) (netip.AddrPort, error) {
	_ = c.SetReadDeadline(r.Now().Add(webHello))
	hello, said, err := sniff.Read(c, sniff.Limits{})
	_ = c.SetReadDeadline(time.Time{})
	if err != nil {
		reset(c)
		return netip.AddrPort{}, err
	}
	if no := r.agrees(t, hello); no != nil {
		return netip.AddrPort{}, r.refuse(c, t, &heard{hello, said}, no)
	}
	t.TLS = hello.Kind == sniff.TLS
	if hello.Kind == sniff.SSH {
		return netip.AddrPort{}, r.handle(ctx, c, said, t, r.SSH, h, f)
	}
	if !t.TLS || r.Classes.HTTP(t.Host, t.Port) {
		return netip.AddrPort{}, r.handle(ctx, c, said, t, r.HTTP, h, f)
	}
	up, to, err := r.dial(ctx, t)
	if err != nil {
		return to, r.refuse(c, t, &heard{hello, said}, r.unreachable(t, err))
	}
	if err := write(up, said, f, h.quota); err != nil {
		reset(up)
		reset(c)
		return to, err
	}
	return to, both(ctx, c, up, f, func() error { return send(up, c, f, h.quota) })
}

// agrees returns nil if the client's bytes are for the host it dialled, in the
// protocol of the port.
func (r *Relay) agrees(t Target, hello sniff.Hello) *refused {
	at := t.resource()
	opened := r.Classes.HTTP(t.Host, t.Port)
	switch {
	case hello.Kind == sniff.SSH && r.opensSSH(t):
		return nil
	case hello.Problem != "" && (hello.Problem != sniff.NoServerName || !t.Addr):
		return refusal(RuleProtocol, fmt.Sprintf("the first bytes to %s are refused: %s", at, hello.Problem), "use an ordinary client")
	case hello.ECH && hello.Kind == sniff.TLS && !opened: // where TLS is opened there is no other host to mean
		return refusal(RuleAgree, fmt.Sprintf("the client of %s may mean another host, which it encrypts (ECH)", at), "turn ECH off in the client")
	case hello.Host != "" && !t.means(hello.Host), hello.Host == "" && !t.Addr && named(hello.Kind):
		return refusal(RuleAgree, fmt.Sprintf("the client dialled %s and then asked for %q", at, hello.Host), "ask for the host that was dialled")
	case t.Port == 443 && hello.Kind != sniff.TLS, t.Port == 80 && !plain(hello.Kind), opened && hello.Kind != sniff.TLS && !plain(hello.Kind):
		return refusal(RuleProtocol, fmt.Sprintf("%s is for %s, and the client said something else", at, protocol(t.Port)), "use another port for other protocols, and name it in a rule")
	}
	return nil
}

// means reports whether a host that a client asks for is the one that it
// dialled. The loopback has several names.
func (t Target) means(host string) bool {
	if a, err := netip.ParseAddr(t.Host); err == nil && a.IsLoopback() {
		_, class, err := hostname.Normal(host)
		return err == nil && class == hostname.Loopback
	}
	return host == t.Host
}

// opensSSH reports whether SSH to a host is ended here.
func (r *Relay) opensSSH(t Target) bool { return r.Classes.SSH != nil && r.Classes.SSH(t.Host, t.Port) }

// plain reports whether a protocol is HTTP without TLS.
func plain(k sniff.Kind) bool { return k == sniff.HTTP1 || k == sniff.HTTP2 }

// named reports whether clients of a protocol say which host they mean. HTTP/2
// says so later, in each request.
func named(k sniff.Kind) bool { return k == sniff.TLS || k == sniff.HTTP1 }

func protocol(port uint16) string {
	if port == 80 {
		return "HTTP"
	}
	return "HTTPS"
}

// through carries any protocol: the host may speak first. The guest's first
// bytes must agree with the host if they name one.
func (r *Relay) through(ctx context.Context, c stream, t Target, h *host, f *flow) (netip.AddrPort, error) {
	up, to, err := r.dial(ctx, t)
	if err != nil {
		return to, r.refuse(c, t, nil, r.unreachable(t, err))
	}
	return to, both(ctx, c, up, f, func() error { return r.first(c, up, t, f, h) })
}

// first hears the guest's first bytes, passes them on if they agree, and then
// all others.
func (r *Relay) first(c, up stream, t Target, f *flow, h *host) error {
	early := &early{stream: c, now: r.Now, pause: r.pause, pass: func(b []byte) error { return write(up, b, f, h.quota) }}
	hello, said, err := sniff.Read(early, sniff.Limits{})
	_ = c.SetReadDeadline(time.Time{})
	if errors.Is(err, io.EOF) {
		return finish(up)
	}
	if err != nil && (hello.Kind != sniff.Unknown || !errors.Is(err, io.ErrUnexpectedEOF)) {
		return err // half of what names a host is not passed on
	}
	if named(hello.Kind) || plain(hello.Kind) {
		if no := r.agrees(t, hello); no != nil {
			return r.refuse(c, t, &heard{hello, said}, no)
		}
	}
	if err := write(up, said[early.passed:], f, h.quota); err != nil {
		return err
	}
	return send(up, c, f, h.quota)
}

// both moves bytes both ways until both have ended, one has failed, or ctx has
// ended.
func both(ctx context.Context, c, up stream, f *flow, out func() error) error {
	end := func() { reset(up); reset(c) }
	stop := context.AfterFunc(ctx, end)
	defer stop()
	done := make(chan error, 1)
	stack.Go(func() {
		err := contained(out)
		if err != nil {
			end()
		}
		done <- err
	})
	err := receive(c, up, f)
	if err != nil {
		end()
	}
	if outErr := <-done; err == nil || errors.Is(err, net.ErrClosed) {
		err = outErr
	}
	_ = up.Close() // it was reset already, or has nothing more to say
	return err
}

// dial connects to the guest's destination.
func (r *Relay) dial(ctx context.Context, t Target) (stream, netip.AddrPort, error) {
	c, to, err := r.Dial(ctx, t.Host, t.Port)
	if err != nil {
		return nil, to, err
	}
	s, ok := c.(stream)
	if !ok {
		_ = c.Close()
		return nil, to, fmt.Errorf("BUG(bawn): %T can't be closed on one side", c)
	}
	return s, to, nil
}

// handle gives a connection to one that speaks its protocol.
func (r *Relay) handle(ctx context.Context, c stream, said []byte, t Target, by Handler, h *host, f *flow) error {
	return by.Serve(ctx, &metered{stream: c, said: said, flow: f, quota: h.quota}, t)
}
