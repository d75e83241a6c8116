package launch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/config"
	"github.com/bawn-dev/bawn/internal/egress"
	"github.com/bawn-dev/bawn/internal/egress/remote"
	"github.com/bawn-dev/bawn/internal/netrule"
	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/terminal"
	"github.com/bawn-dev/bawn/internal/verb"
)

// network starts the relay of a session that reaches the network by name, and
// puts into req what the relay needs in the guest. It returns nil for a session
// that has no such network.
func (l *Launch) network(e *Env, req *sandbox.Request, z zone) (*remote.Relay, error) {
	iso := &req.Session.Isolation
	if iso.Network != bawn.NetworkAllowlist {
		return nil, nil
	}
	ports, err := hostPorts(iso.Egress.HostPorts)
	if err != nil {
		return nil, verb.Usage("write it as 5432, or as GUEST:HOST", "%v", err)
	}
	req.HostPorts, req.Relay = ports, true
	if l.Plan {
		return nil, nil
	}
	c, err := l.relayConfig(e, req, z)
	if err != nil {
		return nil, err
	}
	relay, err := l.launched(e)
	if err != nil {
		return nil, relayError(err)
	}
	err = relay.Configure(c)
	var ready egress.Ready
	if err == nil {
		ready, err = relay.Ready()
	}
	if err != nil {
		return nil, relayError(errors.Join(err, relay.Close()))
	}
	for _, file := range ready.Files {
		req.Files = append(req.Files, sandbox.File(file))
	}
	req.Environ = withoutProxies(req.Environ)
	req.Sockets, req.SetEnv = append(req.Sockets, ready.Sockets...), append(req.SetEnv, ready.Env...)
	for _, note := range ready.Notes {
		l.note(e, note)
	}
	return relay, nil
}

// A zone is the part of a split session whose network is made; the zero zone is
// the whole of one that is not split.
type zone struct {
	name   string   // egress.Reasoning, egress.Execution or ""
	models []string // of both
	inner  bool     // it is that of the containers that the zone makes
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

// launchEarly starts the relay of a session that will probably have one, so
// that it comes to life while the configuration is read.
func (l *Launch) launchEarly(e *Env) {
	if l.Plan || l.Net != nil && !is(l.Net, bawn.NetworkAllowlist.String()) {
		return
	}
	if path, err := remote.FindEgress(); err == nil {
		l.early, _ = remote.Launch(path, e.Environ, e.Stderr, l.Parent != nil) // launched says why not
	}
}

// launched returns the relay, which is the caller's from now on.
func (l *Launch) launched(e *Env) (*remote.Relay, error) {
	if relay := l.early; relay != nil {
		l.early = nil
		return relay, nil
	}
	path, err := remote.FindEgress()
	if err != nil {
		return nil, err
	}
	return remote.Launch(path, e.Environ, e.Stderr, l.Parent != nil)
}

// abandon lets a relay go that turned out not to be needed.
func (l *Launch) abandon() {
	if l.early != nil {
		l.early.Abandon()
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

// note tells the human something before the start.
func (l *Launch) note(e *Env, text string) {
	if !l.Quiet && !l.JSON {
		fmt.Fprintf(e.Stderr, "bawn: note: %s\n", redact.Visible(text))
	}
}

// noteUnset reports variables that --env names and that are not set.
func (l *Launch) noteUnset(e *Env) {
	for _, name := range l.Env {
		if strings.ContainsAny(name, "=*") || slices.ContainsFunc(l.environ(e), func(kv string) bool { return strings.HasPrefix(kv, name+"=") }) {
			continue
		}
		l.note(e, "--env "+name+" passes nothing on: the variable is not set here")
	}
}

// relayConfig is what the relay of this session is told.
func (l *Launch) relayConfig(e *Env, req *sandbox.Request, z zone) (egress.Config, error) {
	s := req.Session
	state, err := settings.StateDir(&e.World)
	if err != nil {
		return egress.Config{}, err
	}
	log, err := settings.AuditDir(&e.World)
	if err != nil {
		return egress.Config{}, err
	}
	rules, err := settings.LoadRules(&e.World, s.Isolation.Workspace)
	if err != nil {
		return egress.Config{}, err
	}
	return egress.Config{
		Session: s.ID, Parent: s.Parent, Agent: s.Agent, Provider: s.Provider, Mode: s.Mode, Autonomy: s.Autonomy,
		Workspace: s.Isolation.Workspace, Dir: req.Dir, Home: e.Getenv("HOME"), System: runtime.GOOS,
		Egress: s.Isolation.Egress, Ask: s.Isolation.Egress.Ask, CanAsk: (l.canAsk(e) || l.Hosted || l.Asks != "" || relayRuns(e, state)) && z.name != egress.Reasoning, Rules: rules,
		AuditDir: log, Prompt: l.Parent == nil, Place: filepath.Join(settings.RuntimeDir(&e.World, state), s.ID+z.suffix()), Zone: z.name, Models: z.models, Masks: l.masks, Own: l.ownHosts(z), Quiet: l.quietHosts(),
	}, nil
}

// quietHosts are those to which the session's agent tells how it is used.
func (l *Launch) quietHosts() []string {
	if l.Known == nil || l.Known.profile == nil {
		return nil
	}
	return l.Known.profile.Closed
}

// ownHosts are the hosts at which the session's agent logs in by itself. It does
// not run in the zone of its commands.
func (l *Launch) ownHosts(z zone) []string {
	if l.Config == nil || z.name == egress.Execution {
		return nil
	}
	return l.Config.Split().Hosts
}

// canAsk reports whether there is a terminal at which somebody could answer, or questions
// wait until there is one.
func (l *Launch) canAsk(e *Env) bool {
	if l.Parent != nil {
		return l.Parent.CanAsk
	}
	return terminal.Present([3]*os.File{e.Stdin, e.Stdout, e.Stderr}) || l.whileAway() == "wait"
}

// whileAway is what a question of the session does where nobody could answer.
func (l *Launch) whileAway() string {
	if l.Config == nil {
		return "commands"
	}
	return l.Config.WhileAway()
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

// noSecret is how the relay's error ends where the vault has not what was named.
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
