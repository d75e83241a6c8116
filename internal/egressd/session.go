package egressd

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/audit"
	"github.com/bawn-dev/bawn/internal/egress"
	"github.com/bawn-dev/bawn/internal/egress/dial"
	"github.com/bawn-dev/bawn/internal/egress/dns"
	"github.com/bawn-dev/bawn/internal/egress/git"
	"github.com/bawn-dev/bawn/internal/egress/mitm"
	"github.com/bawn-dev/bawn/internal/egress/names"
	"github.com/bawn-dev/bawn/internal/egress/relay"
	"github.com/bawn-dev/bawn/internal/guard"
	"github.com/bawn-dev/bawn/internal/netrule"
	"github.com/bawn-dev/bawn/internal/policy"
	"github.com/bawn-dev/bawn/internal/secrets"
	"github.com/bawn-dev/bawn/internal/stdlog"
)

// A session is the outside of one guest's network.
type session struct {
	config   egress.Config
	env      environ
	rules    *netrule.Rules
	asks     *asks
	log      *audit.Log
	events   *audit.Share // how it is written to
	guard    guard.Guard
	current  *currentPolicy
	within   bawn.Decider // the guard's, for a connection that has been allowed; nil is the guard's own
	key      [32]byte     // of digests
	event    bawn.Event
	names    *names.Table
	dns      *dns.Server
	dialer   *dial.Dialer
	ports    map[uint16]uint16 // of the guest's loopback, to those of the host's
	tell     func(egress.Denial)
	quiet    *netrule.Hosts // closed, and nobody is told
	hushing  sync.Mutex
	hushed   map[string]bool // names of them that are recorded
	relay    *relay.Relay
	masked   func(string) string // takes the values out that were lent; nil before there is a relay
	printed  atomic.Int32        // lines that libraries have printed
	ready    egress.Ready
	promised []promise      // what fill writes
	later    []func() error // files that the guest does not read in its first moments
	placed   bool           // config.Place is ours

	vault    *secrets.Vault
	offers   offers
	own      *netrule.Hosts // at which the agent logs in by itself
	budgets  budgets
	bindings []bawn.Binding // with the placeholders that the guest holds
	bound    []netrule.Host // the hosts of bindings
	ca       *mitm.CA       // nil where no host is opened

	workspace *workspace // its secrets; nil where nothing is looked for

	inspector git.Inspector
	ssh       *shells  // nil where no git entry is
	agent     *keyring // nil where the guest gets none
}

// HostName is the name of the host's loopback in a guest, for the ports of
// isolation.host_ports.
const HostName = "host.bawn.internal"

// environ is the environment of bawnd, which is that of bawn run.
type environ []string

// get returns the value of the last NAME=value, or "".
func (e environ) get(name string) string {
	for _, v := range slices.Backward(e) {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}

// now is the relay's clock.
func now() time.Time { return time.Now() }

// newSession determines the needs of a session's sandbox, and makes places for
// them, so that it can be planned. fill and arm make the rest. close closes
// everything that it opened, also after an error.
func newSession(ctx context.Context, c egress.Config, env environ, send func(egress.Message) error) (*session, error) {
	s := &session{inspector: git.Inspector{Graph: &git.Graph{}, Packs: make(chan struct{}, maxPacks)}, config: c, env: env, names: names.New(), asks: newAsks(send, now)}
	s.tell = s.quietly(func(n egress.Denial) { _ = send(egress.Message{Denial: &n}) }) // bawn is gone, and the human with it
	if c.Workspace != "" {
		s.workspace = newWorkspace(c.Workspace)
	}
	s.event = bawn.Event{Session: c.Session, Parent: c.Parent, Agent: c.Agent, Dir: c.Dir, Provider: c.Provider, Mode: c.Mode}
	if c.Zone != "" {
		s.event.Details = map[string]string{"zone": c.Zone}
	}
	for _, step := range []func(context.Context) error{s.readRules, s.openLog, s.openVault, s.makeSSH, s.makeDialer, s.makeAgent, s.place} {
		if err := step(ctx); err != nil {
			return s, err
		}
	}
	return s, nil
}

// fill makes the session's keys and writes the placed files. Nobody may read a
// file of the place before.
func (s *session) fill(ctx context.Context) error {
	if err := atOnce(ctx, s.makeHostKey, s.makeCA); err != nil {
		return err
	}
	for len(s.promised) > 0 {
		p := s.promised[0]
		s.promised = s.promised[1:]
		if err := p.keep(); err != nil {
			return err
		}
	}
	s.promised = nil // its array holds the roots
	return nil
}

// arm makes what decides on connections and carries them.
func (s *session) arm(ctx context.Context) error {
	if err := s.makeGuard(ctx); err != nil {
		return err
	}
	s.dns = &dns.Server{Names: s.names, Permit: s.permit}
	s.relay = relay.New(s.options(), room())
	stdlog.To(s.print)
	return nil
}

// maxPrinted is how many lines of libraries are recorded: a host can have them printed.
const maxPrinted = 100

// print records output of libraries through Go's standard log.
func (s *session) print(line string) {
	if s.printed.Add(1) > maxPrinted {
		return
	}
	e := s.event
	e.Time, e.Kind, e.Operation, e.Resource = now(), bawn.Network.String(), "note", "log"
	e.Requested, e.Resolved, e.Source, e.Reason = bawn.Allow, bawn.Allow, "auto", s.masked(line)
	s.ended(e)
}

// atOnce takes steps that know nothing of each other, and waits for all.
func atOnce(ctx context.Context, steps ...func(context.Context) error) error {
	errs := make([]error, len(steps))
	var all sync.WaitGroup
	for i, step := range steps[1:] {
		all.Go(func() { errs[i+1] = step(ctx) })
	}
	errs[0] = steps[0](ctx)
	all.Wait()
	return errors.Join(errs...)
}

func (s *session) readRules(context.Context) error {
	rules, err := netrule.Compile(s.config.Egress)
	if err != nil {
		return err
	}
	s.budgets.limit(s.config.Egress)
	s.rules, s.ports = rules, map[uint16]uint16{}
	if s.quiet, err = netrule.ParseHosts(s.config.Quiet); err != nil {
		return err
	}
	for _, entry := range s.config.Egress.HostPorts {
		p, err := netrule.ParseHostPort(entry)
		if err != nil {
			return err
		}
		s.ports[p.Guest] = p.Host
	}
	return nil
}

func (s *session) openLog(context.Context) (err error) {
	s.log, err = audit.Open(s.config.AuditDir, audit.Options{})
	s.events = audit.NewShare(s.log, audit.MaxShare, "the session's network")
	return err
}

// makeGuard makes the guard, unless there is one.
func (s *session) makeGuard(context.Context) error {
	if s.guard.Decider != nil {
		return nil
	}
	current, err := newCurrentPolicy(&s.config, s.asks.send)
	if err != nil {
		return err
	}
	s.current = current
	question := policy.Question{
		Mode: s.config.Mode, Autonomy: s.config.Autonomy, Contained: bawn.ContainedFully, Workspace: s.config.Workspace,
		Home: s.config.Home, System: s.config.System,
	}
	var ask bawn.Approver
	if s.config.CanAsk {
		ask = s.asks
	}
	own, err := netrule.ParseHosts(s.config.Own)
	if err != nil {
		return err
	}
	s.own = own
	approver := newPending(ask, s.config.Ask)
	decider := policy.Egress{
		Session: question, Rules: s.rules, Only: s.config.Zone == egress.Reasoning, Sealed: s.config.Egress.Only,
		Unattended: !approver.can(), Own: own,
	}
	s.guard = guard.Guard{Decider: s.hosts(s.current.decider(decider)), Approver: approver, Recorder: s.events, Now: now}
	decider.Admitted = true
	s.within = s.hosts(s.current.decider(decider))
	_, err = rand.Read(s.key[:])
	return err
}

func (s *session) makeDialer(context.Context) error {
	s.dialer = &dial.Dialer{Lookup: dial.Remember(nil, now), Allow: func(_ string, a netip.Addr, port uint16) bool {
		_, ok := s.rules.HostAddr(a, port)
		return ok && !a.IsLoopback() && !a.IsUnspecified() // these are host_ports' alone, however wide an entry is
	}}
	var err error
	s.dialer.Proxy, err = upstream(s.config.Egress.Proxy, s.env)
	return err
}

// permit says whether the guest gets an address for a name: where a connection
// would be allowed, or somebody would be asked.
func (s *session) permit(name string) (bool, string) {
	if name == HostName && len(s.ports) > 0 {
		return true, ""
	}
	d, err := s.guard.Decider.Decide(context.Background(), s.action(net.JoinHostPort(name, "443")))
	if err == nil && d.Verdict != bawn.Deny {
		return true, ""
	}
	if s.rules.Named(name) {
		return true, ""
	}
	s.hush(name, d)
	return false, d.Reason
}

// dial connects to a guest's host.
func (s *session) dial(ctx context.Context, host string, port uint16) (net.Conn, netip.AddrPort, error) {
	if !loopback(host) {
		s.agent.reached(host, port)
		return s.dialer.Dial(ctx, host, port)
	}
	to, ok := s.ports[port]
	if !ok {
		return nil, netip.AddrPort{}, fmt.Errorf("port %d of the host is not opened", port)
	}
	return localhost.Dial(ctx, "localhost", to)
}

// localhost connects to the host's own loopback, for ports that were opened.
var localhost = &dial.Dialer{
	Lookup: func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}, nil
	},
	Allow: func(string, netip.Addr, uint16) bool { return true },
}

// loopback reports whether a host is the guest's name for this machine.
func loopback(host string) bool {
	if host == HostName {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}

// hosts decides on the opened ports of the host's loopback, and leaves all
// else to next.
func (s *session) hosts(next bawn.Decider) bawn.Decider {
	return deciderFunc(func(ctx context.Context, a bawn.Action) (bawn.Decision, error) {
		host, port, err := net.SplitHostPort(a.Resource)
		if err != nil || !loopback(host) || a.Operation != bawn.Connect || a.Kind != bawn.Network {
			return next.Decide(ctx, a)
		}
		for guest := range s.ports {
			if port == fmt.Sprint(guest) {
				return bawn.Decision{Verdict: bawn.Allow, Rule: "isolation:host_ports:" + port, Source: bawn.User, Reason: "the host's port was opened for the session"}, nil
			}
		}
		return bawn.Denied("this port of the host is not opened", "isolation:host_ports"), nil
	})
}

type deciderFunc func(context.Context, bawn.Action) (bawn.Decision, error)

func (f deciderFunc) Decide(ctx context.Context, a bawn.Action) (bawn.Decision, error) {
	return f(ctx, a)
}

// room is how many connections are carried at a time: each takes two sockets
// and two pipes, and Go keeps some pipes more.
func room() int {
	const perConnection, most = 8, 4096
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil {
		return 64
	}
	return int(max(16, min(most, (l.Cur-min(l.Cur, 256))/perConnection)))
}

// serve takes the guest's sockets: as many for connections as for DNS, DNS
// over TCP and proxies each (sandbox.GuestNetwork.Files).
func (s *session) serve(ctx context.Context, sockets []*os.File) error {
	defer closeAll(sockets)
	if len(sockets) == 0 || len(sockets)%4 != 0 {
		return fmt.Errorf("got %d sockets of the guest; want four kinds of as many each", len(sockets))
	}
	n := len(sockets) / 4
	kinds := []func(context.Context, *os.File) error{s.connections, s.datagrams, s.streams, s.proxies}
	for i, f := range sockets {
		if err := kinds[i/n](ctx, f); err != nil {
			return err
		}
	}
	return nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close() // duplicated where it is served
	}
}

func (s *session) options() relay.Options {
	o := relay.Options{
		Guard: s.guard, Event: s.event, Names: s.names, DNS: s.dns, Dial: s.dial, Now: now, Denied: s.tell, Ended: s.ended,
		Classes: relay.Classes{HTTP: s.opened}, HTTP: newRequests(s), Crowd: crowd,
		MaxConns: s.config.Egress.MaxConns, MaxOut: s.config.Egress.MaxOutMB << 20,
	}
	if s.ssh != nil {
		o.SSH, o.Classes.SSH = s.ssh, s.speaksSSH
	}
	return o
}

// opened reports whether requests to a host are decided one by one: a rule
// speaks of them, or a secret may be put in.
func (s *session) opened(host string, port uint16) bool {
	return s.rules.Opened(host, port) ||
		slices.ContainsFunc(s.bound, func(h netrule.Host) bool { return h.Match(host, port) })
}

// until closes c when ctx ends.
func until(ctx context.Context, c interface{ Close() error }) {
	context.AfterFunc(ctx, func() { _ = c.Close() })
}

func (s *session) listen(ctx context.Context, f *os.File, serve func(context.Context, net.Listener) error) error {
	l, err := net.FileListener(f)
	if err != nil {
		return fmt.Errorf("take a socket of the guest: %w", err)
	}
	if _, ok := l.(*net.TCPListener); !ok {
		return errors.Join(fmt.Errorf("take a socket of the guest: %v is not TCP", l.Addr()), l.Close())
	}
	until(ctx, l)
	go func() {
		_ = serve(ctx, l) // ends when the socket is closed
		_ = l.Close()     // or else fails: then nobody waits in it
	}()
	return nil
}

func (s *session) connections(ctx context.Context, f *os.File) error {
	return s.listen(ctx, f, s.relay.Accept)
}

func (s *session) proxies(ctx context.Context, f *os.File) error {
	return s.listen(ctx, f, s.relay.AcceptProxy)
}

func (s *session) streams(ctx context.Context, f *os.File) error {
	return s.listen(ctx, f, s.relay.AcceptDNS)
}

func (s *session) datagrams(ctx context.Context, f *os.File) error {
	pc, err := net.FilePacketConn(f)
	if err != nil {
		return fmt.Errorf("take the guest's socket for DNS: %w", err)
	}
	if _, ok := pc.(*net.UDPConn); !ok {
		return errors.Join(fmt.Errorf("take the guest's socket for DNS: %v is not UDP", pc.LocalAddr()), pc.Close())
	}
	until(ctx, pc)
	go func() {
		_ = s.dns.ServePacket(ctx, pc) // ends when the socket is closed
		_ = pc.Close()
	}()
	return nil
}

// close ends every connection, writes the last records and removes the guest's
// placed files.
func (s *session) close() error {
	if s.relay != nil {
		s.relay.Close()
	}
	var errs []error
	s.offers.close()
	if s.vault != nil {
		s.vault.Close()
	}
	for _, p := range s.promised {
		errs = append(errs, p.file.Close())
	}
	if s.log != nil {
		errs = append(errs, s.log.Close())
	}
	if s.placed {
		errs = append(errs, egress.RemovePlace(s.config.Place))
	}
	return errors.Join(errs...)
}

// ended writes, soon, what became of something that was recorded before it
// began. A log that can't be written denies every further request.
func (s *session) ended(e bawn.Event) { _ = s.events.Later(e) }
