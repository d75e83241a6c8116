// Package dial makes the connections that leave: it resolves a name once,
// judges every address of the answer, and dials exactly an address that passed.
// Later answers for the name make no difference. An answer may be used again
// for a few seconds (Remember); it is judged each time.
package dial

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/bawn-dev/bawn/internal/hostname"
)

const (
	defaultTimeout = 30 * time.Second
	stagger        = 250 * time.Millisecond // before the next address is tried beside the last (RFC 8305, section 5)
	maxAddrs       = 16                     // of one answer
)

// A Dialer connects to hosts on the public Internet, and to others where
// Allow says so. The zero Dialer connects to public addresses only. A Dialer
// may be used concurrently and must not be changed once it is.
type Dialer struct {
	// Lookup resolves a name in normal form (hostname.NormalASCII). Nil asks the
	// host's own resolver, /etc/hosts included, without its search list for
	// names that have a dot.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)

	// Allow reports whether a rule of the human's names this address, which is
	// not a public one (Class) or one of the machine's own. Nil allows none.
	Allow func(host string, a netip.Addr, port uint16) bool

	// Own returns the machine's own addresses. Nil asks the kernel each time.
	Own func() ([]netip.Addr, error)

	// Proxy is the proxy that names with a dot are dialled through; nil means no
	// proxy. See ParseProxy.
	Proxy *Proxy

	// Timeout limits one Dial as a whole: resolving, all addresses, the
	// proxy's answer. 0 stands for 30 s.
	Timeout time.Duration
}

// A RefusedError says that a host has no address that may be dialled.
type RefusedError struct {
	Host  string
	Addr  netip.Addr // the first that was refused
	Class string     // why: see Class, or "one of this machine's own"
}

// Error says what was refused and which setting opens it.
func (e *RefusedError) Error() string {
	what := fmt.Sprintf("%q is at %s", e.Host, e.Addr)
	if e.Addr.String() == e.Host {
		what = e.Host
	}
	return fmt.Sprintf("%s, which is not a public address (%s); want one that is, or a rule that names this address", what, e.Class)
}

// Remedy says what opens it.
func (e *RefusedError) Remedy() string {
	return "name the address in isolation.hosts, or with --allow, if it is meant to be reached"
}

// own is the class of the machine's own addresses.
const own = "one of this machine's own"

var (
	errPort  = errors.New("port 0 can't be dialled; want 1 to 65535")
	errEmpty = errors.New("the name has no address")
)

// Dial connects to a host, which is a name or a canonical IP address, over TCP, and
// returns the address that it dialled. It returns a *RefusedError when no address
// of the host may be dialled, and a net.Error whose Timeout is true when time was
// up. A host that is an address has been decided by the caller: it is dialled when
// it is public.
//
// A proxy resolves the name itself, so that Dial judges and returns no address. The
// user who sets up a proxy trusts it to refuse forbidden addresses. Addresses,
// single labels and names like .internal are never dialled through the proxy.
func (d *Dialer) Dial(ctx context.Context, host string, port uint16) (net.Conn, netip.AddrPort, error) {
	name, class, err := hostname.NormalASCII(host)
	if err != nil {
		return nil, netip.AddrPort{}, err
	}
	if port == 0 {
		return nil, netip.AddrPort{}, fmt.Errorf("%q: %w", host, errPort)
	}
	timeout := d.Timeout
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if class == hostname.Name && d.Proxy.serves(name, port) {
		c, err := d.connectThrough(ctx, name, port)
		return c, netip.AddrPort{}, err
	}
	addrs, err := d.permitted(ctx, name, port)
	if err != nil {
		return nil, netip.AddrPort{}, err
	}
	return race(ctx, addrs, port)
}

// permitted resolves a host and returns the addresses that may be dialled.
func (d *Dialer) permitted(ctx context.Context, host string, port uint16) ([]netip.Addr, error) {
	addrs, err := d.resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	var open []netip.Addr
	var refused *RefusedError
	var mine []netip.Addr // asked for once, and only where it matters
	for _, a := range addrs {
		if d.Allow != nil && d.Allow(host, a, port) {
			open = append(open, a)
			continue
		}
		class := Class(a)
		if class == "" && mine == nil {
			if mine, err = d.own(); err != nil {
				return nil, fmt.Errorf("the machine's own addresses: %w", err)
			}
		}
		if class == "" && slices.Contains(mine, embedded(a)) {
			class = own
		}
		switch {
		case class == "":
			open = append(open, a)
		case refused == nil:
			refused = &RefusedError{Host: host, Addr: a, Class: class}
		}
	}
	switch {
	case len(open) > 0:
		return alternate(open[:min(len(open), maxAddrs)]), nil
	case refused != nil:
		return nil, refused
	}
	return nil, fmt.Errorf("%q: %w", host, errEmpty)
}

// resolve returns the addresses of a host in the form in which they are
// dialled: ::ffff:127.0.0.1 is 127.0.0.1.
func (d *Dialer) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a.Unmap()}, nil
	}
	lookup := d.Lookup
	if lookup == nil {
		lookup = hostLookup
	}
	addrs, err := lookup(ctx, host)
	if err != nil {
		return nil, fmt.Errorf("%q can't be resolved: %w", host, err)
	}
	out := make([]netip.Addr, 0, len(addrs))
	for _, a := range addrs {
		if a = a.Unmap(); !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out, nil
}

// hostLookup asks the host's resolver. A final dot keeps it from trying the
// name below the domains of its search list, where another host would answer.
func hostLookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if strings.Contains(host, ".") {
		host += "."
	}
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

func (d *Dialer) own() ([]netip.Addr, error) {
	if d.Own != nil {
		return d.Own()
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	out := make([]netip.Addr, 0, len(addrs))
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok {
			if ip, ok := netip.AddrFromSlice(n.IP); ok {
				out = append(out, ip.Unmap())
			}
		}
	}
	return out, nil
}

// alternate puts addresses of both families in turn, beginning with the
// family of the first (RFC 8305, section 4).
func alternate(addrs []netip.Addr) []netip.Addr {
	var a, b []netip.Addr
	for _, x := range addrs {
		if x.Is4() == addrs[0].Is4() {
			a = append(a, x)
		} else {
			b = append(b, x)
		}
	}
	out := make([]netip.Addr, 0, len(addrs))
	for i := range max(len(a), len(b)) {
		out = append(out, a[min(i, len(a)):min(i+1, len(a))]...)
		out = append(out, b[min(i, len(b)):min(i+1, len(b))]...)
	}
	return out
}

// An attempt is the outcome of dialling one address.
type attempt struct {
	conn net.Conn
	to   netip.AddrPort
	err  error
}

// race dials the addresses one after the other, the next one when the last
// has failed or has not answered for a while. The first connection wins; when
// race returns, nothing is left of the others.
func race(ctx context.Context, addrs []netip.Addr, port uint16) (net.Conn, netip.AddrPort, error) {
	if len(addrs) == 1 {
		a := dialOne(ctx, netip.AddrPortFrom(addrs[0], port))
		return a.conn, a.to, a.err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan attempt)
	next, running := 0, 0
	start := func() {
		to := netip.AddrPortFrom(addrs[next], port)
		go func() { done <- dialOne(ctx, to) }()
		next, running = next+1, running+1
	}
	defer func() {
		cancel()
		for ; running > 0; running-- {
			if a := <-done; a.conn != nil {
				a.conn.Close()
			}
		}
	}()
	var errs []error
	wait := time.NewTimer(stagger)
	defer wait.Stop()
	for start(); running > 0; {
		select {
		case a := <-done:
			running--
			if a.err == nil {
				return a.conn, a.to, nil
			}
			errs = append(errs, a.err)
		case <-wait.C:
		}
		if next < len(addrs) && ctx.Err() == nil {
			start()
			wait.Reset(stagger)
		}
	}
	return nil, netip.AddrPort{}, fmt.Errorf("%w (and %d other addresses fail)", errs[0], len(errs)-1)
}

// dialOne connects to exactly the address to.
func dialOne(ctx context.Context, to netip.AddrPort) attempt {
	d := net.Dialer{Control: exactly(to)}
	c, err := d.DialContext(ctx, "tcp", to.String())
	if err != nil {
		return attempt{err: err}
	}
	return attempt{conn: c, to: to}
}

// exactly has a socket look, before it connects, at where it is about to go.
func exactly(to netip.AddrPort) func(network, address string, c syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		if a, err := netip.ParseAddrPort(address); err != nil || a != to {
			return fmt.Errorf("BUG(bawn): about to dial %q instead of %s", address, to)
		}
		return nil
	}
}
