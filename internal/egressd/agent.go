package egressd

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	gossh "golang.org/x/crypto/ssh"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/egress"
	"github.com/bawn-dev/bawn/internal/egress/agent"
	"github.com/bawn-dev/bawn/internal/egress/hostkey"
	"github.com/bawn-dev/bawn/internal/egress/ssh"
	"github.com/bawn-dev/bawn/internal/netrule"
)

const (
	agentName  = "agent.sock"
	agentGuest = inGuest + "/" + agentName
	ruleAgent  = "builtin:ssh-agent"
	sshPort    = 22
)

// maxReached bounds the hosts that are remembered because the guest connected
// to them.
const maxReached = 1024

// maxSocketPath is the longest socket address on every system (unix(7); 104
// bytes with the final NUL on BSD).
const maxSocketPath = 103

// A keyring is the ssh-agent that the guest gets: the user's own signs, for logins
// to the hosts that entries of isolation.hosts name with port 22. It does not sign
// for hosts with git entries: Bawn itself speaks SSH with those.
type keyring struct {
	session *session
	known   *hostkey.Known
	exact   []string // named by an entry as they are

	mu    sync.Mutex
	below []string // to which the guest has connected, named by a wildcard or a network
}

// makeAgent prepares the guest's ssh-agent where the user has asked for one.
func (s *session) makeAgent(context.Context) error {
	if !s.config.Egress.SSHAgent {
		return nil
	}
	if s.env.get("SSH_AUTH_SOCK") == "" {
		s.note("there is no ssh-agent to sign for the session: SSH_AUTH_SOCK is not set")
		return nil
	}
	exact, any, err := shellHosts(s.config.Egress.Hosts)
	if err != nil {
		return err
	}
	if !any {
		s.note("the session gets no ssh-agent: no entry of isolation.hosts names port 22, as --allow build.example:22 does")
		return nil
	}
	known, err := userKnownHosts(filepath.Join(s.config.Home, ".ssh"))
	if err != nil {
		return err
	}
	s.agent = &keyring{session: s, known: known, exact: slices.DeleteFunc(exact, func(h string) bool { return s.speaksSSH(h, sshPort) })}
	return nil
}

func (s *session) note(text string) { s.ready.Notes = append(s.ready.Notes, text) }

// shellHosts returns the hosts that entries with port 22 name as they are, and
// whether there is any such entry.
func shellHosts(entries []string) (exact []string, any bool, err error) {
	for _, text := range entries {
		h, err := netrule.ParseHost(text)
		if err != nil {
			return nil, false, err
		}
		if !h.Ports().Has(sshPort) {
			continue
		}
		any = true
		if name := strings.Trim(h.SSHNames()[0], "[]"); !strings.ContainsAny(name, "*/") {
			exact = append(exact, name)
		}
	}
	return exact, any, nil
}

// reached remembers that the guest connects to a host, if its name follows
// from no entry alone. A nil keyring does nothing.
func (k *keyring) reached(host string, port uint16) {
	if k == nil || port != sshPort || !k.permits(host) {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.below) < maxReached && !slices.Contains(k.below, host) && !slices.Contains(k.exact, host) {
		k.below = append(k.below, host)
	}
}

// permits reports whether an entry names port 22 of a host, and git has no say
// there.
func (k *keyring) permits(host string) bool {
	_, ok := k.session.rules.Hosts.Match(host, sshPort)
	return ok && !k.session.speaksSSH(host, sshPort)
}

// hosts are those to which the guest may log in by now.
func (k *keyring) hosts() []agent.Host {
	k.mu.Lock()
	defer k.mu.Unlock()
	var list []agent.Host
	for _, name := range slices.Concat(k.exact, k.below) {
		list = append(list, agent.Host{Name: name, Port: sshPort})
	}
	return list
}

// knownHosts are the lines for the guest's ssh about these hosts' keys: of
// those that are named as they are, and of others whose names known_hosts
// shows.
func (k *keyring) knownHosts() (lines []byte) {
	if k == nil {
		return nil
	}
	names := slices.Concat(k.exact, slices.DeleteFunc(k.known.Names(), func(n string) bool { return !k.permits(n) }))
	slices.Sort(names)
	for _, n := range slices.Compact(names) {
		lines = append(lines, k.known.Lines(n)...)
	}
	return lines
}

// record puts a signature to the guard, as the connection to its host was, and
// takes note of it before it is made.
func (k *keyring) record(ctx context.Context, u agent.Use) error {
	s := k.session
	g, connection := s.guard, net.JoinHostPort(u.Host.Name, strconv.Itoa(int(u.Host.Port)))
	g.Decider = deciderFunc(func(ctx context.Context, a bawn.Action) (bawn.Decision, error) {
		a.Resource = connection
		return s.guard.Decider.Decide(ctx, a)
	})
	d := g.Check(ctx, s.action(sshResource(u.Host.Name, u.Host.Port)+"/"), s.event)
	if d.Verdict != bawn.Allow {
		return fmt.Errorf("a login to %s: %s (%s)", connection, d.Reason, d.Rule)
	}
	return s.recordUse(ssh.Use{Host: u.Host.Name, Port: u.Host.Port, User: u.User, Fingerprint: u.Fingerprint}, d.Rule)
}

// refused tells and records why the agent has refused something. That ssh binds
// its connection to the session's own relay is nothing to tell.
func (k *keyring) refused(err error) {
	s := k.session
	if s.ssh != nil && strings.Contains(err.Error(), s.ssh.server.HostKey.Fingerprint()) {
		return
	}
	s.tell(egress.Denial{
		Operation: bawn.Connect, Resource: "ssh-agent", Rule: ruleAgent, Reason: err.Error(),
		Remedy: "the agent signs logins to hosts that are allowed with port 22 and are in your known_hosts (bawn run --ssh-agent --allow HOST:22)",
	})
	e := s.event
	e.Time, e.Kind, e.Operation, e.Resource = now(), bawn.Network.String(), "sign", "ssh-agent"
	e.Requested, e.Resolved, e.Source, e.Rule, e.Reason = bawn.Allow, bawn.Deny, "rule", ruleAgent, err.Error()
	_ = s.events.Record(context.Background(), e) // a log that takes nothing denies the next signature
}

// placeAgent listens where the guest's ssh connects, and serves until ctx ends.
func (s *session) placeAgent(ctx context.Context) error {
	if s.agent == nil {
		return nil
	}
	if err := s.makeGuard(ctx); err != nil { // the guest may ask before everything else is ready
		return err
	}
	l, err := listenIn(s.config.Place, agentName)
	if err != nil {
		return fmt.Errorf("make a socket for the guest's ssh-agent: %w", err)
	}
	a := s.agent.filter(ctx)
	go func() { _ = a.Serve(ctx, l) }() // ends with the session; without it nothing is signed
	s.ready.Files = append(s.ready.Files, egress.File{Source: filepath.Join(s.config.Place, agentName), Target: agentGuest})
	s.ready.Sockets = append(s.ready.Sockets, agentGuest)
	s.ready.Env = append(s.ready.Env, "SSH_AUTH_SOCK="+agentGuest)
	return nil
}

// filter is the agent that stands before the user's.
func (k *keyring) filter(ctx context.Context) *agent.Agent {
	return &agent.Agent{
		Upstream: agent.At(k.session.env.get("SSH_AUTH_SOCK")), Known: k.known, Hosts: k.hosts, Keys: func(gossh.PublicKey) bool { return true },
		Record: func(u agent.Use) error { return k.record(ctx, u) }, Refused: k.refused,
	}
}

// listenIn makes a socket that its owner alone may connect to. Where the path
// is too long for an address it goes through the open directory (proc(5)).
func listenIn(dir, name string) (net.Listener, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	path := filepath.Join(dir, name)
	at := path
	if len(at) > maxSocketPath {
		at = fmt.Sprintf("/proc/self/fd/%d/%s", d.Fd(), name)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: at, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // the directory goes as a whole
	return l, os.Chmod(path, 0o600)
}
