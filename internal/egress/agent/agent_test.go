package agent_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/bawn-dev/bawn/internal/egress/agent"
	"github.com/bawn-dev/bawn/internal/egress/hostkey"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// A stage is sshd, the user's ssh-agent with two keys, and the filter.
type stage struct {
	t      *testing.T
	dir    string
	sshd   testenv.SSHServer
	user   string // socket of the user's agent
	guest  string // socket of the filter
	filter *agent.Agent

	mu   sync.Mutex
	full error // of the log
	uses []agent.Use
	why  []string
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newStage makes one whose guest may log in to hosts, each a name in the
// user's known_hosts; KEY stands for sshd's host key there.
func newStage(t *testing.T, known string, hosts ...agent.Host) *stage {
	t.Helper()
	testenv.Need(t, "sshd")
	s := &stage{t: t, dir: t.TempDir()}
	s.sshd = testenv.StartSSHD(t, s.dir, "AllowAgentForwarding yes")
	s.user, s.guest = filepath.Join(s.dir, "user"), filepath.Join(s.dir, "guest")
	s.startAgent()
	other := filepath.Join(s.dir, "other")
	s.run("", "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "private", "-f", other)
	s.run(s.user, "ssh-add", "-q", s.sshd.Key, other)

	file := filepath.Join(s.dir, "known_hosts")
	must(t, os.WriteFile(file, []byte(strings.ReplaceAll(known, "KEY", s.sshd.HostKey)), 0o600))
	keys, err := hostkey.Load(s.dir, file)
	must(t, err)
	s.filter = &agent.Agent{
		Upstream: func(ctx context.Context) (net.Conn, error) { return (&net.Dialer{}).DialContext(ctx, "unix", s.user) },
		Known:    keys, Hosts: func() []agent.Host { return hosts }, Keys: fingerprints(s.fingerprint(s.sshd.Key)),
		Record: s.record, Refused: s.refused,
	}
	serve(t, s.filter, s.guest)
	return s
}

func serve(t *testing.T, filter *agent.Agent, socket string) {
	t.Helper()
	l, err := net.Listen("unix", socket)
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- filter.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := testenv.Receive(t, "the end", done); err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
}

func (s *stage) startAgent() {
	cmd := exec.Command("ssh-agent", "-D", "-a", s.user)
	must(s.t, cmd.Start())
	s.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	testenv.Until(s.t, "ssh-agent", func() bool {
		c, err := net.Dial("unix", s.user)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

func (s *stage) fingerprint(key string) string {
	text, err := os.ReadFile(key + ".pub")
	must(s.t, err)
	public, _, _, _, err := ssh.ParseAuthorizedKey(text)
	must(s.t, err)
	return ssh.FingerprintSHA256(public)
}

func (s *stage) record(u agent.Use) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uses = append(s.uses, u)
	return s.full
}

func (s *stage) refused(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.why = append(s.why, err.Error())
}

// reasons returns why requests were refused so far, and forgets it.
func (s *stage) reasons() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.why = nil }()
	return strings.Join(s.why, "\n")
}

func (s *stage) try(socket, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = s.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "SSH_AUTH_SOCK=" + socket}
	cmd.WaitDelay = 20 * time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (s *stage) run(socket, name string, args ...string) string {
	s.t.Helper()
	out, err := s.try(socket, name, args...)
	if err != nil {
		s.t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return out
}

// login has ssh log in with an agent's keys; options go before the destination.
func (s *stage) login(socket, command string, options ...string) (string, error) {
	args := append([]string{
		"-F", "none", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR",
		"-o", "IdentityFile=none", "-p", fmt.Sprint(s.sshd.Addr.Port),
	}, options...)
	return s.try(socket, "ssh", append(args, s.sshd.User+"@127.0.0.1", command)...)
}

// TestLogin: ssh logs in to a permitted host through the filter, and nowhere
// else, though the user's agent has the key for anywhere.
func TestLogin(t *testing.T) {
	forge := agent.Host{Name: "forge.example", Port: 22}
	tests := []struct {
		name, known string
		hosts       []agent.Host
		want        string
	}{
		{"permitted", "forge.example KEY\n", []agent.Host{{Name: "x.example", Port: 22}, forge}, ""},
		{"another host", "forge.example KEY\n", []agent.Host{{Name: "x.example", Port: 22}}, "known_hosts does not have the host key"},
		{"another port", "forge.example KEY\n", []agent.Host{{Name: "forge.example", Port: 2222}}, "known_hosts does not have the host key"},
		{"unknown host key", "x.example KEY\n", []agent.Host{forge}, "known_hosts does not have the host key"},
		{"revoked host key", "forge.example KEY\n@revoked * KEY\n", []agent.Host{forge}, "known_hosts does not have the host key"},
		{"no host", "forge.example KEY\n", nil, "known_hosts does not have the host key"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, tt.known, tt.hosts...)
			if out, err := s.login(s.user, "echo in"); err != nil {
				t.Fatalf("control: %v, %s", err, out)
			}
			out, err := s.login(s.guest, "echo in")
			why := s.reasons()
			if tt.want == "" {
				use := agent.Use{Host: forge, User: s.sshd.User, Fingerprint: s.fingerprint(s.sshd.Key)}
				if err != nil || len(s.uses) != 1 || s.uses[0] != use {
					t.Errorf("got %v, %s, %s, uses %+v; want in, with use %+v", err, out, why, s.uses, use)
				}
				return
			}
			if err == nil || len(s.uses) > 0 || !strings.Contains(why, tt.want) {
				t.Errorf("got %v, %s, uses %+v, reason %q; want %q", err, out, s.uses, why, tt.want)
			}
		})
	}
}

// TestWhatSSHToolsMayDo: list the permitted key; no more.
func TestWhatSSHToolsMayDo(t *testing.T) {
	s := newStage(t, "forge.example KEY\n", agent.Host{Name: "forge.example", Port: 22})
	all, some := s.run(s.user, "ssh-add", "-l"), s.run(s.guest, "ssh-add", "-l")
	if strings.Count(all, "\n") != 2 || strings.Count(some, "\n") != 1 || !strings.Contains(some, s.fingerprint(s.sshd.Key)) {
		t.Errorf("the user sees %q, the guest %q", all, some)
	}
	must(t, os.WriteFile(filepath.Join(s.dir, "text"), []byte("text"), 0o600))
	s.run("", "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(s.dir, "new"))
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"sign a text", []string{"ssh-keygen", "-Y", "sign", "-n", "git", "-f", s.sshd.Key + ".pub", "text"}, "namespace"},
		{"log in and be forwarded", []string{"ssh", "-F", "none", "-A", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "IdentityFile=none", "-p", fmt.Sprint(s.sshd.Addr.Port), s.sshd.User + "@127.0.0.1", "ssh -F none -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o IdentityFile=none -p " + fmt.Sprint(s.sshd.Addr.Port) + " 127.0.0.1 true"}, "forwarding"},
		{"add", []string{"ssh-add", filepath.Join(s.dir, "new")}, "only listing"},
		{"lifetime", []string{"ssh-add", "-t", "1000", filepath.Join(s.dir, "new")}, "only listing"},
		{"remove", []string{"ssh-add", "-d", filepath.Join(s.dir, "new")}, "only listing"},
		{"remove all", []string{"ssh-add", "-D"}, "only listing"},
	}
	for _, tt := range tests {
		os.Remove(filepath.Join(s.dir, "text.sig"))
		s.reasons()
		if out, err := s.try(s.guest, tt.args[0], tt.args[1:]...); err == nil || !strings.Contains(s.reasons(), tt.want) {
			t.Errorf("%s: got %v, %s; want a refusal with %q", tt.name, err, out, tt.want)
		}
		if out, err := s.try(s.user, tt.args[0], tt.args[1:]...); err != nil {
			t.Errorf("control %s: %v, %s", tt.name, err, out)
		}
	}
}

// TestSignedTexts: where a namespace is permitted, git may sign in it.
func TestSignedTexts(t *testing.T) {
	s := newStage(t, "")
	s.filter.Namespaces = []string{"git"}
	text := filepath.Join(s.dir, "text")
	must(t, os.WriteFile(text, []byte("text"), 0o600))
	s.run(s.guest, "ssh-keygen", "-Y", "sign", "-n", "git", "-f", s.sshd.Key+".pub", text)
	if len(s.uses) != 1 || s.uses[0].Namespace != "git" {
		t.Errorf("uses: %+v", s.uses)
	}
	if out, err := s.try(s.guest, "ssh-keygen", "-Y", "sign", "-n", "file", "-f", s.sshd.Key+".pub", text); err == nil {
		t.Errorf("namespace file: %s", out)
	}
}

// TestUnrecordedUse: what can't be recorded is not signed.
func TestUnrecordedUse(t *testing.T) {
	s := newStage(t, "forge.example KEY\n", agent.Host{Name: "forge.example", Port: 22})
	s.mu.Lock()
	s.full = errors.New("disk full")
	s.mu.Unlock()
	if out, err := s.login(s.guest, "true"); err == nil || !strings.Contains(s.reasons(), "disk full") {
		t.Errorf("got %v, %s", err, out)
	}
}

// TestZeroAgentRefuses: an Agent without one of its parts closes its listener.
func TestZeroAgentRefuses(t *testing.T) {
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	must(t, err)
	if err := new(agent.Agent).Serve(context.Background(), l); err == nil {
		t.Error("the zero Agent serves")
	}
	if _, err := l.Accept(); err == nil {
		t.Error("the listener is open")
	}
}

// fingerprints returns a function for [agent.Agent.Keys] that permits the keys with
// these fingerprints ("SHA256:…", as ssh-add -l prints them) and their
// certificates.
func fingerprints(list ...string) func(ssh.PublicKey) bool {
	permitted := map[string]bool{}
	for _, f := range list {
		permitted[f] = true
	}
	return func(key ssh.PublicKey) bool {
		if cert, ok := key.(*ssh.Certificate); ok {
			key = cert.Key
		}
		return permitted[ssh.FingerprintSHA256(key)]
	}
}
