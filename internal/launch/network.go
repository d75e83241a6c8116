package launch

import (
	"errors"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/config"
	"github.com/bawn-dev/bawn/internal/dotenv"
	"github.com/bawn-dev/bawn/internal/egress"
	"github.com/bawn-dev/bawn/internal/egress/remote"
	"github.com/bawn-dev/bawn/internal/netrule"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/verb"
)

// relays starts the network processes of a session, one for each zone that reaches the
// network by name.
type relays struct {
	launch *Launch
	env    *Env
	early  *remote.Relay // started before its task is known; nil once it is taken
	told   *remote.Relay // that was told its task, until open waits for its answer
	asks   bool          // a human can be asked about connections
}

// tell starts the relay of a zone, if it has one, and tells it its task: it prepares
// itself until open asks for its needs.
func (n *relays) tell(req *sandbox.Request, z zone) error {
	iso := &req.Session.Isolation
	if iso.Network != bawn.NetworkAllowlist {
		return nil
	}
	ports, err := hostPorts(iso.Egress.HostPorts)
	if err != nil {
		return verb.Usage("write it as 5432, or as GUEST:HOST", "%v", err)
	}
	req.HostPorts, req.Relay = ports, true
	if n.launch.Plan {
		return nil
	}
	c, err := n.config(req, z)
	if err != nil {
		return err
	}
	relay, err := n.take()
	if err != nil {
		return relayError(err)
	}
	relay.ObeyRules(func() egress.Rules { return n.launch.rulesOf(n.env, c.Workspace) })
	if err := relay.Configure(c); err != nil {
		return relayError(errors.Join(err, relay.Close()))
	}
	n.told = relay
	return nil
}

// open starts the relay of a zone, unless it has been told its task, and puts the relay's
// needs into req. It returns nil for a zone that has no such network.
func (n *relays) open(req *sandbox.Request, z zone) (*remote.Relay, error) {
	if n.told == nil {
		if err := n.tell(req, z); err != nil || n.told == nil {
			return nil, err
		}
	}
	relay := n.told
	n.told = nil
	ready, err := relay.Ready()
	if err != nil {
		return nil, relayError(errors.Join(err, relay.Close()))
	}
	for _, file := range ready.Files {
		req.Files = append(req.Files, sandbox.File(file))
	}
	req.Environ = withoutProxies(req.Environ)
	req.Sockets, req.SetEnv = append(req.Sockets, ready.Sockets...), append(req.SetEnv, ready.Env...)
	for _, note := range ready.Notes {
		n.launch.note(n.env, note)
	}
	return relay, nil
}

// A zone is the part of a split session whose network is made; the zero zone is
// the whole of one that is not split.
type zone struct {
	name   string   // egress.Reasoning, egress.Execution or ""
	models []string // of both
	own    []string // hosts at which the session's agent logs in by itself
	quiet  []string // hosts to which the agent tells how it is used
	canAsk bool     // at a terminal
	masks  []dotenv.Mask
	inner  bool // it is that of the containers that the zone makes
}

// ownZone is that of a session which is not split itself; a child of one that is
// belongs to a part of it.
func (p *planner) ownZone() zone {
	if p.Parent != nil {
		return p.zone(p.Parent.Zone, p.Parent.Models)
	}
	return p.zone("", nil)
}

// zone is the part of the session of that name. The agent does not run in the zone of
// its commands.
func (p *planner) zone(name string, models []string) zone {
	z := zone{name: name, models: models, canAsk: p.canAsk()}
	_, z.masks = p.masked.list()
	if name != egress.Execution {
		z.own = p.config.Split().Hosts
	}
	if p.Known != nil && p.Known.profile != nil {
		z.quiet = p.Known.profile.Closed
	}
	return z
}

// suffix tells the places of a session's relays apart.
func (z zone) suffix() string {
	switch {
	case z.inner:
		return "-c"
	case z.name == egress.Reasoning:
		return "-r"
	}
	return ""
}

// begin starts the relay of a session that will probably have one, so that it comes
// to life while the configuration is read.
func (n *relays) begin() {
	if n.launch.Plan || n.launch.Net != nil && !is(n.launch.Net, bawn.NetworkAllowlist.String()) {
		return
	}
	if path, err := remote.FindEgress(); err == nil {
		n.early, _ = n.start(path) // take says why not
	}
}

// take returns a relay, which is the caller's from now on.
func (n *relays) take() (*remote.Relay, error) {
	if relay := n.early; relay != nil {
		n.early = nil
		return relay, nil
	}
	path, err := remote.FindEgress()
	if err != nil {
		return nil, err
	}
	return n.start(path)
}

func (n *relays) start(path string) (*remote.Relay, error) {
	pass := n.env.passphrase()
	if pass != nil {
		defer pass.Close()
	}
	return remote.Launch(path, remote.Surroundings{Environ: n.env.Environ, Stderr: n.env.Stderr, Apart: n.launch.Parent != nil, Passphrase: pass})
}

// abandon lets a relay go that turned out not to be needed.
func (n *relays) abandon() {
	if n.early != nil {
		n.early.Abandon()
	}
	if n.told != nil {
		n.told.Close()
	}
}

// withoutRelay closes the network of a session for which nobody has asked for
// one, where the relay's program is not installed: go run ./cmd/bawn builds only
// one of the two.
func (l *Launch) withoutRelay(e *Env, cfg *config.Config, iso *bawn.Isolation) error {
	if iso.Network != bawn.NetworkAllowlist || cfg.NetworkAt().Layer != config.Builtin || cfg.Provider == config.HostProvider {
		return nil
	}
	_, err := remote.FindEgress()
	var missing *remote.MissingError
	if !errors.As(err, &missing) {
		return err
	}
	l.note(e, "no network: it is opened by bawnd, which is not installed beside bawn (go build -o DIR ./cmd/bawn ./cmd/bawnd)")
	iso.Network, iso.Egress = bawn.NetworkNone, bawn.Egress{Ports: iso.Egress.Ports}
	return nil
}

// withoutProxies leaves out where the host has its proxy, and with which
// password: the guest reaches no proxy, and the relay takes that way for it.
func withoutProxies(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return strings.HasSuffix(strings.ToUpper(name), "_PROXY") && !strings.EqualFold(name, "NO_PROXY")
	})
}

// config describes a zone to its relay.
func (n *relays) config(req *sandbox.Request, z zone) (egress.Config, error) {
	l, e, s := n.launch, n.env, req.Session
	state, err := settings.StateDir(&e.World)
	if err != nil {
		return egress.Config{}, err
	}
	log, err := settings.AuditDir(&e.World)
	if err != nil {
		return egress.Config{}, err
	}
	files := watched(e, s.Isolation.Workspace)
	rules, err := l.networkRules(e, s.Isolation.Workspace)
	if err != nil {
		return egress.Config{}, err
	}
	asks := (z.canAsk || l.Hosted || l.Asks != "" || relayRuns(e, state)) && z.name != egress.Reasoning
	n.asks = n.asks || asks
	return egress.Config{
		Session: s.ID, Parent: s.Parent, Agent: s.Agent, Provider: s.Provider, Mode: s.Mode, Autonomy: s.Autonomy,
		Workspace: s.Isolation.Workspace, Dir: req.Dir, Home: e.Getenv("HOME"), System: runtime.GOOS,
		Egress: s.Isolation.Egress, Ask: s.Isolation.Egress.Ask, CanAsk: asks, Rules: rules.Rules, Watch: files,
		AuditDir: log, Prompt: l.Parent == nil, Place: filepath.Join(settings.RuntimeDir(&e.World, state), s.ID+z.suffix()), Zone: z.name, Models: z.models, Masks: z.masks, Own: z.own, Quiet: z.quiet,
	}, nil
}

// hostPorts are the ports of the guest's loopback behind which the host's are.
func hostPorts(entries []string) ([]uint16, error) {
	var ports []uint16
	for _, entry := range entries {
		p, err := netrule.ParseHostPort(entry)
		if err != nil {
			return nil, err
		}
		ports = append(ports, p.Guest)
	}
	return ports, nil
}

// noSecret is the end of the relay's error if the vault has no such secret.
const noSecret = "no such secret"

// relayError says what to do when there is no relay.
func relayError(err error) error {
	if strings.HasSuffix(err.Error(), noSecret) {
		return verb.Usage("\"bawn secret list\" lists those that there are, \"bawn secret set\" keeps another", "%w", err)
	}
	hint := "use --net none, or \"bawn doctor\" to see what is wrong"
	var missing *remote.MissingError
	if errors.As(err, &missing) {
		hint = "install bawnd beside bawn (go build -o DIR ./cmd/bawn ./cmd/bawnd), or use --net none or --net full"
	}
	return &verb.Error{Code: verb.ExitInternal, Err: err, Hint: hint}
}
