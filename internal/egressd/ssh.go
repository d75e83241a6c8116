package egressd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/egress"
	"github.com/bawn-dev/bawn/internal/egress/git"
	"github.com/bawn-dev/bawn/internal/egress/hostkey"
	"github.com/bawn-dev/bawn/internal/egress/relay"
	"github.com/bawn-dev/bawn/internal/egress/ssh"
	"github.com/bawn-dev/bawn/internal/netrule"
	"github.com/bawn-dev/bawn/internal/policy"
)

// knownHosts is where the guest's ssh finds the key of the session's relay.
const knownHosts = inGuest + "/ssh_known_hosts"

// ownKeys are the user's keys where no agent holds them.
var ownKeys = []string{"id_ed25519", "id_ecdsa", "id_rsa"}

// shells speaks SSH with the guest. It is a relay.Handler.
type shells struct {
	server *ssh.Server
	// load reads the host keys that the user has accepted, when the first client
	// connects: most sessions have no client.
	load func() (*hostkey.Known, error)
}

// Serve speaks with one client.
func (h shells) Serve(ctx context.Context, conn net.Conn, t relay.Target) error {
	known, err := h.load()
	if err != nil {
		return errors.Join(err, conn.Close())
	}
	server := *h.server
	server.Known = known
	return server.Serve(ctx, conn, t.Host, t.Port)
}

// makeSSH prepares to end the guest's SSH to hosts that git entries speak of.
func (s *session) makeSSH(context.Context) error {
	if len(s.config.Egress.Git) == 0 {
		return nil
	}
	home := filepath.Join(s.config.Home, ".ssh")
	s.ssh = &shells{
		server: &ssh.Server{
			Keys: s.keys(home), Permit: s.permitSSH, Named: s.named, Used: s.usedKey, Inspector: s.inspector, Room: ssh.NewRoom(),
			Dial: func(ctx context.Context, host string, port uint16) (net.Conn, error) {
				c, _, err := s.dial(ctx, host, port)
				return c, err
			},
		},
		load: sync.OnceValues(func() (*hostkey.Known, error) { return userKnownHosts(home) }),
	}
	return nil
}

// makeHostKey makes the key by which the guest's ssh knows the relay.
func (s *session) makeHostKey(context.Context) (err error) {
	if s.ssh != nil {
		s.ssh.server.HostKey, err = ssh.NewHostKey()
	}
	return err
}

// userKnownHosts are the host keys that the user has accepted.
func userKnownHosts(home string) (*hostkey.Known, error) {
	return hostkey.Load("", filepath.Join(home, "known_hosts"), filepath.Join(home, "known_hosts2"), "/etc/ssh/ssh_known_hosts")
}

func (s *session) keys(home string) ssh.KeySource {
	if sock := s.env.get("SSH_AUTH_SOCK"); sock != "" {
		return ssh.AgentKeys(sock)
	}
	var paths []string
	for _, name := range ownKeys {
		if p := filepath.Join(home, name); exists(p) {
			paths = append(paths, p)
		}
	}
	return ssh.FileKeys(paths...)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// placeSSH lets the guest's ssh know the relay by its key, and by theirs the
// hosts for which it gets an agent.
func (s *session) placeSSH() error {
	if s.ssh == nil && s.agent == nil {
		return nil
	}
	path, err := s.promise("ssh_known_hosts", s.hostKeys)
	if err != nil {
		return err
	}
	if err := s.placeConfig(); err != nil {
		return err
	}
	s.ready.Files = append(s.ready.Files, egress.File{Source: path, Target: knownHosts})
	s.ready.Env = append(s.ready.Env, ssh.Environment(knownHosts)...)
	return nil
}

// hostKeys writes the keys that the guest's ssh is told of.
func (s *session) hostKeys(w io.Writer) error {
	var lines []byte
	if s.ssh != nil {
		hosts, err := gitHosts(s.config.Egress.Git)
		if err != nil {
			return err
		}
		lines = s.ssh.server.HostKey.KnownHosts(hosts)
	}
	_, err := w.Write(append(lines, s.agent.knownHosts()...))
	return err
}

// gitHosts are the hosts of git entries as known_hosts names them.
func gitHosts(entries []string) ([]string, error) {
	var hosts []string
	for _, text := range entries {
		e, err := netrule.ParseGit(text)
		if err != nil {
			return nil, err
		}
		hosts = append(hosts, e.Host().SSHNames()...)
	}
	return hosts, nil
}

// speaksSSH reports whether SSH to a host is ended here.
func (s *session) speaksSSH(host string, port uint16) bool { return len(s.gitRules(host, port)) > 0 }

// permitSSH puts what git would do over SSH to the guard.
func (s *session) permitSSH(ctx context.Context, req ssh.Request) error {
	resource := sshResource(req.Host, req.Port) + "/" + req.Operation.Repo + ".git"
	d := s.checkGit(ctx, resource, req.Operation, lendsToken(req), s.gitRules(req.Host, req.Port))
	if d.Verdict == bawn.Allow {
		return nil
	}
	remedy := gitRemedy(asEntry(req))
	s.tell(egress.Denial{Operation: bawn.Connect, Resource: resource, Rule: d.Rule, Reason: d.Reason, Remedy: remedy})
	return fmt.Errorf("bawn: denied: %s (%s): %s; %s", resource, d.Rule, d.Reason, remedy)
}

// named returns what git would do as the entries name it.
func (s *session) named(req ssh.Request) git.Operation {
	return git.Unrooted(req.Operation, s.gitRules(req.Host, req.Port))
}

// asEntry returns the entry that would permit an operation.
func asEntry(req ssh.Request) (host string, args []string, repo string) {
	host, repo = req.Host, req.Operation.Repo
	if req.User != "git" && req.User != "" {
		host = req.User + "@" + host
	}
	if req.Operation.Rooted {
		repo = "/" + repo
	}
	return host, gitArgs(req.Operation), repo
}

// errToken is why LFS does not work over SSH.
var errToken = errors.New("git-lfs-authenticate answers with a token of the host's, which a guest must not have; use LFS over https")

// lendsToken refuses requests that the host answers with a credential.
func lendsToken(req ssh.Request) error {
	if req.Operation.LFS {
		return errToken
	}
	return nil
}

func sshResource(host string, port uint16) string {
	if port != 22 {
		host = net.JoinHostPort(host, strconv.Itoa(int(port)))
	}
	return "ssh://" + host
}

// usedKey records the use of one of the user's keys before it happens.
func (s *session) usedKey(u ssh.Use) error { return s.recordUse(u, policy.RuleGit) }

func (s *session) recordUse(u ssh.Use, rule string) error {
	e := s.event
	e.Time, e.Kind, e.Operation, e.Resource = now(), bawn.Network.String(), "sign", sshResource(u.Host, u.Port)
	e.Requested, e.Resolved, e.Source, e.Rule = bawn.Allow, bawn.Allow, "rule", rule
	e.Details = map[string]string{"key": u.Fingerprint, "user": u.User}
	if err := s.events.Record(context.Background(), e); err != nil {
		return errors.Join(errors.New("the use of a key can't be recorded"), err)
	}
	return nil
}

// systemConfig is where ssh reads what holds for all users, ssh_config(5).
const systemConfig = "/etc/ssh/ssh_config"

// placeConfig tells every ssh of the guest, not git's alone, of the hosts'
// keys: for each option the first value counts.
func (s *session) placeConfig() error {
	text, err := os.ReadFile(systemConfig)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	line := "GlobalKnownHostsFile " + knownHosts + " /etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2\n"
	path, err := s.put("ssh_config", append([]byte(line), text...))
	if err != nil {
		return err
	}
	s.cover(path, systemConfig)
	return nil
}
