package ssh_test

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

	"github.com/bawn-dev/bawn/internal/egress/git"
	"github.com/bawn-dev/bawn/internal/egress/hostkey"
	"github.com/bawn-dev/bawn/internal/egress/ssh"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// host is the name by which the guest knows the server.
const host = "forge.example"

// agentRules are for paths from the server's root.
func agentRules(user string) []git.Rule {
	return []git.Rule{
		{User: user, Rooted: true, Repo: "**/bawn-dev/*"},
		{User: user, Rooted: true, Push: true, Repo: "**/bawn-dev/app", Ref: "refs/heads/agent/**"},
	}
}

// A stage is sshd with a repository, our server before it, and a guest that
// reaches ours (through) or, as the control, sshd itself (direct).
type stage struct {
	t       *testing.T
	dir     string
	sshd    testenv.SSHServer
	through string // known_hosts of the guest
	addr    *net.TCPAddr
	server  *ssh.Server

	cancel context.CancelFunc // ends what the server does

	mu   sync.Mutex
	asks []ssh.Request
	full error // of the log
	uses []ssh.Use
	why  []string

	rules []git.Rule
}

// newStage makes one; known is the user's known_hosts, in which KEY stands for
// sshd's host key.
func newStage(t *testing.T, known string, config ...string) *stage {
	t.Helper()
	testenv.Need(t, "sshd", "git")
	s := &stage{t: t, dir: t.TempDir()}
	s.sshd = testenv.StartSSHD(t, s.dir, config...)
	s.rules = agentRules(s.sshd.User)
	bare := s.repo("app")
	s.git(nil, "init", "--quiet", "--bare", "--initial-branch=main", bare)
	seed := filepath.Join(s.dir, "seed")
	s.git(nil, "init", "--quiet", "--initial-branch=main", seed)
	s.commit(seed, "first")
	s.git(nil, "-C", seed, "push", "--quiet", bare, "main", "main:refs/heads/agent/old")

	key, err := ssh.NewHostKey()
	must(t, err)
	s.server = &ssh.Server{
		HostKey: key, Dial: s.dial, Known: s.known(strings.ReplaceAll(known, "KEY", s.sshd.HostKey)),
		Keys: ssh.FileKeys(s.sshd.Key), Permit: s.permit, Named: s.named, Used: s.used, Inspector: git.Inspector{Dir: t.TempDir(), Graph: &git.Graph{}}, Room: ssh.NewRoom(),
	}
	s.listen()
	s.writeKnownHosts()
	s.through = filepath.Join(s.dir, "session_known_hosts")
	must(t, os.WriteFile(s.through, key.KnownHosts([]string{s.addr.String()}), 0o600))
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (s *stage) known(text string) *hostkey.Known {
	s.t.Helper()
	file := filepath.Join(s.dir, "known_hosts")
	must(s.t, os.WriteFile(file, []byte(text), 0o600))
	k, err := hostkey.Load(s.dir, file, filepath.Join(s.dir, "absent"))
	must(s.t, err)
	return k
}

func (s *stage) repo(name string) string { return filepath.Join(s.dir, "bawn-dev", name+".git") }

func (s *stage) dial(ctx context.Context, name string, port uint16) (net.Conn, error) {
	if name != host || port != 22 {
		return nil, fmt.Errorf("dialled %s:%d", name, port)
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", s.sshd.Addr.String())
}

func (s *stage) permit(_ context.Context, r ssh.Request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asks = append(s.asks, r)
	if ok, reason := git.Allow(r.Operation, s.rules); !ok {
		return errors.New(reason)
	}
	return nil
}

func (s *stage) named(r ssh.Request) git.Operation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return git.Unrooted(r.Operation, s.rules)
}

func (s *stage) used(u ssh.Use) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uses = append(s.uses, u)
	return s.full
}

func (s *stage) listen() {
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	must(s.t, err)
	s.addr = l.Addr().(*net.TCPAddr)
	var all sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.t.Cleanup(func() { cancel(); l.Close(); all.Wait() })
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				if err := s.server.Serve(ctx, conn, host, 22); err != nil {
					s.mu.Lock()
					defer s.mu.Unlock()
					s.why = append(s.why, err.Error())
				}
			})
		}
	})
}

// writeKnownHosts makes the files that the guest's ssh reads by itself: what
// it says of our address is another server's key.
func (s *stage) writeKnownHosts() {
	for name, port := range map[string]int{"direct": s.sshd.Addr.Port, "through": s.addr.Port} {
		must(s.t, os.WriteFile(filepath.Join(s.dir, name), fmt.Appendf(nil, "[127.0.0.1]:%d %s\n", port, s.sshd.HostKey), 0o600))
	}
}

// sshCommand is the guest's ssh. Through us it holds no key; direct it has the
// user's.
func (s *stage) sshCommand(direct bool) (command string, to *net.TCPAddr) {
	const options = " -F none -o BatchMode=yes -o IdentitiesOnly=yes -o StrictHostKeyChecking=yes -o UserKnownHostsFile="
	if direct {
		return "ssh" + options + filepath.Join(s.dir, "direct") + " -i " + s.sshd.Key, s.sshd.Addr
	}
	env := strings.TrimPrefix(ssh.Environment(s.through)[0], "GIT_SSH_COMMAND=")
	return env + options + filepath.Join(s.dir, "through") + " -i /dev/null", s.addr
}

func (s *stage) url(direct bool, repo string) string {
	_, to := s.sshCommand(direct)
	return fmt.Sprintf("ssh://%s@%s%s", s.sshd.User, to, s.repo(repo))
}

// tryGit runs git as the guest would, through us.
func (s *stage) tryGit(env []string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = s.dir
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
	}, env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (s *stage) git(env []string, args ...string) string {
	s.t.Helper()
	out, err := s.tryGit(env, args...)
	if err != nil {
		s.t.Fatalf("git %q: %v\n%s\n%s", args, err, out, s.sshd.Log())
	}
	return strings.TrimSpace(out)
}

func (s *stage) env(direct bool) []string {
	command, _ := s.sshCommand(direct)
	return []string{"GIT_SSH_COMMAND=" + command}
}

func (s *stage) commit(dir, message string) {
	s.t.Helper()
	must(s.t, os.WriteFile(filepath.Join(dir, "file"), []byte(message), 0o600))
	s.git(nil, "-C", dir, "add", "-A")
	s.git(nil, "-C", dir, "commit", "--quiet", "-m", message)
}

func (s *stage) clone(direct bool) string {
	s.t.Helper()
	dir := filepath.Join(s.t.TempDir(), "clone")
	s.git(s.env(direct), "clone", "--quiet", s.url(direct, "app"), dir)
	return dir
}

func (s *stage) ref(name string) string {
	out, err := s.tryGit(nil, "-C", s.repo("app"), "rev-parse", "--verify", "--quiet", name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(out)
}
