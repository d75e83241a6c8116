package ssh_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/egress/git"
	"github.com/bawn-dev/bawn/internal/egress/ssh"
)

// TestOrdinaryWork clones, fetches and pushes over SSH with a guest that holds
// no key and whose own known_hosts knows nothing of us.
func TestOrdinaryWork(t *testing.T) {
	t.Parallel()
	s := newStage(t, host+" KEY\n")
	dir := s.clone(false)
	noise := make([]byte, 3<<20) // more than a channel's window
	_, err := rand.Read(noise)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "noise"), noise, 0o600))
	s.commit(dir, "second")
	s.git(s.env(false), "-C", dir, "push", "--quiet", "origin", "HEAD:refs/heads/agent/new")
	s.commit(dir, "third")
	s.git(s.env(false), "-C", dir, "push", "--quiet", "origin", "HEAD:refs/heads/agent/new", "HEAD:refs/heads/agent/old")
	s.git(s.env(false), "-C", dir, "push", "origin", "HEAD:refs/heads/agent/new")
	s.git(s.env(false), "-C", dir, "-c", "protocol.version=0", "fetch", "--quiet")
	head := s.git(nil, "-C", dir, "rev-parse", "HEAD")
	s.git(s.env(false), "clone", "--quiet", "--branch=agent/new", s.url(false, "app"), filepath.Join(s.dir, "again"))
	for _, ref := range []string{"agent/new", "agent/old"} {
		if got := s.ref(ref); got != head {
			t.Errorf("%s is at %q, want %q", ref, got, head)
		}
	}
	want := ssh.Use{Host: host, Port: 22, User: s.sshd.User}
	if len(s.uses) != 6 {
		t.Errorf("%d uses of the key were recorded, want 6", len(s.uses))
	}
	for _, u := range s.uses {
		if got := u; got.Fingerprint == "" || got.Host != want.Host || got.Port != want.Port || got.User != want.User {
			t.Errorf("got use %+v, want like %+v", got, want)
		}
	}
}

// TestPushAttacks: what the rules forbid does not happen; sshd by itself lets
// it through.
func TestPushAttacks(t *testing.T) {
	tests := []struct {
		name, refspec, ref, want string
	}{
		{"force", "+rewritten:refs/heads/agent/old", "agent/old", "force push"},
		{"delete", ":refs/heads/agent/old", "agent/old", "would delete"},
		{"main", "work:refs/heads/main", "main", "no git rule permits pushing"},
		{"head", "HEAD:refs/heads/main", "main", "no git rule permits pushing"},
	}
	t.Parallel()
	for _, direct := range []bool{true, false} {
		s := newStage(t, host+" KEY\n")
		dir := s.clone(direct)
		s.git(nil, "-C", dir, "checkout", "--quiet", "-b", "work")
		s.commit(dir, "second")
		s.git(nil, "-C", dir, "branch", "rewritten")
		s.git(nil, "-C", dir, "checkout", "--quiet", "--orphan", "fresh")
		s.commit(dir, "fresh")
		s.git(nil, "-C", dir, "branch", "-f", "rewritten")
		s.git(nil, "-C", dir, "checkout", "--quiet", "work")
		for _, tt := range tests {
			before := s.ref(tt.ref)
			out, err := s.tryGit(s.env(direct), "-C", dir, "push", "origin", tt.refspec)
			changed := s.ref(tt.ref) != before
			if direct && !changed && tt.name != "head" {
				t.Errorf("control %s: nothing changed: %s", tt.name, out)
			}
			if !direct && (changed || err == nil || !strings.Contains(out, "bawn: refused") || !strings.Contains(out, tt.want)) {
				t.Errorf("%s: changed: %v, %v, %s; want %q", tt.name, changed, err, out, tt.want)
			}
		}
	}
}

// TestWhoseRepository: rules say as whom, and whether from the server's root or
// the user's home; the other user and the other place are another repository.
func TestWhoseRepository(t *testing.T) {
	home := t.TempDir()
	s := newStage(t, host+" KEY\n", "ForceCommand cd '"+home+"' && exec sh -c \"$SSH_ORIGINAL_COMMAND\"")
	me, root := s.sshd.User, s.repo("app")
	twin := filepath.Join(home, root)
	s.git(nil, "init", "--quiet", "--bare", twin)
	s.git(nil, "-C", filepath.Join(s.dir, "seed"), "push", "--quiet", twin, "main:refs/heads/at-home")
	name := strings.TrimSuffix(root[1:], ".git")
	const none = ""
	for _, tt := range []struct {
		name       string
		rule       git.Rule
		path, want string
	}{
		{"from the root", git.Rule{User: me, Rooted: true, Repo: name}, root, "refs/heads/main"},
		{"from home", git.Rule{User: me, Repo: name}, root[1:], "refs/heads/at-home"},
		{"from home, as forges are asked", git.Rule{User: me, Repo: name}, root, "refs/heads/at-home"},
		{"from home, a pattern", git.Rule{User: me, Repo: "**/app"}, root, "refs/heads/at-home"},
		{"from home, the root is permitted", git.Rule{User: me, Rooted: true, Repo: name}, root[1:], none},
		{"all, from the root", git.Rule{User: me, Repo: "**"}, root, "refs/heads/main"},
		{"all, from home", git.Rule{User: me, Repo: "**"}, root[1:], "refs/heads/at-home"},
		{"as somebody else", git.Rule{Repo: "**"}, root, none},
		{"as another one", git.Rule{User: me + "2", Rooted: true, Repo: name}, root, none},
		{"of somebody's home", git.Rule{User: me, Repo: name}, "~" + me + root, none},
		{"doubled", git.Rule{User: me, Repo: name}, "/" + root, none},
		{"with a dot", git.Rule{User: me, Repo: name}, "./" + root[1:], none},
	} {
		s.mu.Lock()
		s.rules, s.uses = []git.Rule{tt.rule}, nil
		s.mu.Unlock()
		out, err := s.ssh(true, nil, "", "\"git-upload-pack '"+tt.path+"'\"")
		want := map[bool]string{true: "refs/heads/main", false: "refs/heads/at-home"}[tt.path[0] == '/']
		if tt.path[0] != '~' && !strings.Contains(out, want) {
			t.Errorf("%s: control: %v, %.200q", tt.name, err, out)
		}
		out, err = s.ssh(false, nil, "", "\"git-upload-pack '"+tt.path+"'\"")
		if tt.want == none && (!strings.Contains(out, "bawn: refused") || strings.Contains(out, "refs/heads") || len(s.uses) > 0) || !strings.Contains(out, tt.want) {
			t.Errorf("%s: %v, %.200q; want %q", tt.name, err, out, tt.want)
		}
		if other := map[string]string{"refs/heads/main": "at-home", "refs/heads/at-home": "main"}[tt.want]; other != "" && strings.Contains(out, other) {
			t.Errorf("%s: got the other one: %.200q", tt.name, out)
		}
	}
}

// ssh runs the guest's ssh with further options, a destination and a command.
func (s *stage) ssh(direct bool, env []string, options, command string) (string, error) {
	program, to := s.sshCommand(direct)
	line := fmt.Sprintf("%s %s -p %d %s@127.0.0.1 %s", program, options, to.Port, s.sshd.User, command)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", "exec "+line)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir}, env...)
	cmd.Stdin, cmd.WaitDelay = strings.NewReader(""), time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestNothingButGit: everything else that an SSH connection can carry stops at
// our server and works with sshd itself. The sign of success is in the output.
func TestNothingButGit(t *testing.T) {
	s := newStage(t, host+" KEY\n", "AcceptEnv LD_BIND_NOW")
	banner := fmt.Sprintf("-W 127.0.0.1:%d", s.sshd.Addr.Port)
	tests := []struct {
		name             string
		env              []string
		options, command string
		sign             string
	}{
		{"command", nil, "", `'echo si""gn'`, "sign"},
		{"two commands", nil, "", `"git-receive-pack '` + s.repo("app") + `' </dev/null >/dev/null; echo si''gn"`, "sign"},
		{"command in the path", nil, "", `"git-upload-pack '\$(echo si''gn >&2)'"`, "sign"},
		{"option for a path", nil, "", `"git-upload-pack '--help'"`, "SYNOPSIS"},
		{"shell", nil, "-T", "", ""},
		{"subsystem", nil, "-s", "sftp", ""},
		{"port", nil, banner, "", "SSH-2.0-OpenSSH"},
		{"listening port", nil, "-o ExitOnForwardFailure=yes -R 127.0.0.1:0:127.0.0.1:9", "'echo si\"\"gn'", "sign"},
		{"variable", []string{"LD_BIND_NOW=sign"}, "-o SendEnv=LD_BIND_NOW", `'echo $LD_BIND_NOW'`, "sign"},
	}
	if os.Getuid() == 0 { // who else runs sshd can't give a terminal away: there would be no control
		tests = append(tests, tests[0])
		tests[len(tests)-1].name, tests[len(tests)-1].options = "terminal", "-tt"
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if out, err := s.ssh(true, tt.env, tt.options, tt.command); !strings.Contains(out, tt.sign) || tt.sign == "" && err != nil {
				t.Errorf("control: %v, %q; want %q", err, out, tt.sign)
			}
			out, err := s.ssh(false, tt.env, tt.options, tt.command)
			if err == nil || tt.sign != "" && strings.Contains(out, tt.sign) {
				t.Errorf("got %v, %q; want a refusal", err, out)
			}
		})
	}
	t.Cleanup(func() {
		if len(s.uses) != 0 {
			t.Errorf("keys were used: %+v", s.uses)
		}
	})
}

// TestHostKeys: only a host key that the user has accepted is good enough, and
// no key of the user's is shown to another.
func TestHostKeys(t *testing.T) {
	const other = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"
	tests := []struct{ name, known, want string }{
		{"plain", host + " KEY\n", ""},
		{"hashed", "|1|c2FsdHNhbHRzYWx0c2FsdHNhbHQ=|dJqM2PWz87rSribRH0lW7BNQ7wQ= KEY\n", ""},
		{"among others", "x.example " + other + "\nnonsense line\n" + host + " ssh-new AAAA\n" + host + " " + other + "\n" + host + " KEY\n", ""},
		{"unknown", "x.example KEY\n", "known_hosts has none"},
		{"empty", "", "known_hosts has none"},
		{"other port", "[" + host + "]:2222 KEY\n", "known_hosts has none"},
		{"changed", host + " " + other + "\n", "changed host key"},
		{"revoked", host + " KEY\n@revoked * KEY\n", "revoked"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, tt.known)
			out, err := s.tryGit(s.env(false), "ls-remote", s.url(false, "app"))
			if tt.want == "" && err != nil {
				t.Errorf("got %v, %s", err, out)
			}
			if tt.want != "" && (err == nil || !strings.Contains(out, tt.want) || len(s.uses) > 0) {
				t.Errorf("got %v, uses %v, %s; want %q", err, s.uses, out, tt.want)
			}
		})
	}
}

// TestUnrecordedUse: a signature that can't be recorded is not made.
func TestUnrecordedUse(t *testing.T) {
	s := newStage(t, host+" KEY\n")
	s.mu.Lock()
	s.full = errors.New("disk full")
	s.mu.Unlock()
	out, err := s.tryGit(s.env(false), "ls-remote", s.url(false, "app"))
	if err == nil || !strings.Contains(out, "disk full") {
		t.Errorf("got %v, %s; want the recorder's error", err, out)
	}
}

// TestCancel: when the server's context ends, so do the guest's commands.
func TestCancel(t *testing.T) {
	s := newStage(t, host+" KEY\n")
	program, to := s.sshCommand(false)
	cmd := exec.Command("sh", "-c", fmt.Sprintf("exec %s -p %d %s@127.0.0.1 \"git-receive-pack '%s'\"", program, to.Port, s.sshd.User, s.repo("app")))
	stdin, err := cmd.StdinPipe()
	must(t, err)
	defer stdin.Close()
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	overdue := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
	if _, err := stdout.Read(make([]byte, 4)); err != nil {
		t.Errorf("control: no refs came: %v", err)
	}
	s.cancel()
	_, err = io.Copy(io.Discard, stdout)
	must(t, err)
	if err := cmd.Wait(); err == nil || !overdue.Stop() {
		t.Errorf("ssh ended with %v, after more than 20 seconds or in peace", err)
	}
}

// TestZeroServerRefuses: a server without one of its parts serves nobody.
func TestZeroServerRefuses(t *testing.T) {
	guest, ours := net.Pipe()
	defer guest.Close()
	if err := new(ssh.Server).Serve(context.Background(), ours, host, 22); err == nil {
		t.Error("the zero Server serves")
	}
	if _, err := guest.Read(make([]byte, 1)); err == nil {
		t.Error("the connection is open")
	}
}
