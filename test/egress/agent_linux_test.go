package egress_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/bawn-dev/bawn/internal/testenv/world"
)

// keyring is an account whose user has an ssh-agent, and servers outside into
// which its key may log in: db.test and a.wild.test with one host key,
// other.test with another. All are in known_hosts.
type keyring struct {
	*account
	user, socket, dir string
}

func newKeyring(t *testing.T) *keyring {
	t.Helper()
	d := newAccount(t, "sshd")
	me, err := user.Current()
	check(t, err)
	k := &keyring{account: d, user: me.Username, socket: filepath.Join(d.home, "a.sock"), dir: filepath.Join(d.home, "keys")}
	check(t, os.MkdirAll(k.dir, 0o755))
	var known strings.Builder
	for name, hosts := range map[string][]string{"one": {"db.test", "a.wild.test"}, "two": {"other.test"}} {
		k.local(t, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(k.dir, name))
		public, err := os.ReadFile(filepath.Join(k.dir, name+".pub"))
		check(t, err)
		for _, h := range hosts {
			fmt.Fprintf(&known, "%s %s\n", h, strings.Join(strings.Fields(string(public))[:2], " "))
		}
	}
	put(t, known.String(), d.home, ".ssh/known_hosts")
	id := filepath.Join(k.dir, "id")
	k.local(t, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", id)
	k.serve(t, "one", "db.test", "a.wild.test")
	k.serve(t, "two", "other.test")
	agent := exec.Command("ssh-agent", "-D", "-a", k.socket)
	agent.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	check(t, agent.Start())
	t.Cleanup(func() { _ = agent.Process.Kill(); _ = agent.Wait() })
	testenv.Until(t, "ssh-agent", func() bool { return answers(k.socket) == nil })
	d.env = append(d.env, "SSH_AUTH_SOCK="+k.socket)
	k.local(t, "ssh-add", "-q", id)
	return k
}

// answers returns an error until a process listens at the socket: its file exists earlier.
func answers(socket string) error {
	conn, err := net.Dial("unix", socket)
	if err == nil {
		err = conn.Close()
	}
	return err
}

func (k *keyring) local(t *testing.T, argv ...string) {
	t.Helper()
	if r := k.run(t, argv...); r.code != 0 {
		t.Fatalf("%q: %s%s", argv, r.out, r.err)
	}
}

// serve starts a server outside on port 22 of hosts.
func (k *keyring) serve(t *testing.T, key string, hosts ...string) {
	t.Helper()
	lines := []string{
		"HostKey " + filepath.Join(k.dir, key), "AuthorizedKeysFile " + filepath.Join(k.dir, "id.pub"), "StrictModes no", "UsePAM no", "PidFile none", "PermitRootLogin yes",
	}
	for _, h := range hosts {
		lines = append(lines, "ListenAddress "+addresses(h)[0]+":22")
	}
	config := put(t, strings.Join(lines, "\n")+"\n", k.dir, key+".config")
	r := k.outside(t, order{Argv: []string{world.Sbin("sshd"), "-D", "-f", config}})
	t.Cleanup(func() { k.outside(t, order{Argv: []string{"kill", fmt.Sprint(r.PID)}, Wait: true}) })
	check(t, listening(addresses(hosts[0])[0]+":22"))
}

// TestAgent: with the user's agent a guest logs in where an entry with port 22
// names the host, and does nothing else with it that works without bawn.
func TestAgent(t *testing.T) {
	k := newKeyring(t)
	ssh := "ssh -o BatchMode=yes "
	blind := "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null "
	as := k.user + "@"
	db := []string{"--ssh-agent", "--allow", "db.test:22"}
	hop := fmt.Sprintf("'%s%s %s%s echo $((40+2))'", ssh, blind, as, addresses("other.test")[0])
	for name, c := range map[string]struct {
		line  string
		flags []string
		works bool // in the sandbox; without it everything does
	}{
		"named":                 {ssh + as + "db.test 'echo $((40+2))'", db, true},
		"by a wildcard":         {ssh + as + "a.wild.test 'echo $((40+2))'", []string{"--ssh-agent", "--allow", "*.wild.test:22"}, true},
		"listed":                {"ssh-add -l && echo 42", db, true},
		"not asked for":         {ssh + as + "db.test 'echo $((40+2))'", []string{"--allow", "db.test:22"}, false},
		"another port":          {ssh + as + "db.test 'echo $((40+2))'", []string{"--ssh-agent", "--allow", "db.test:443"}, false},
		"another host":          {ssh + as + "other.test 'echo $((40+2))'", db, false},
		"another by a jump":     {ssh + blind + "-o ProxyCommand='ssh -o BatchMode=yes " + blind + "-W %h:%p " + as + "db.test' " + as + "other.test 'echo $((40+2))'", db, false},
		"forwarded":             {ssh + "-A " + as + "db.test " + hop, db, false},
		"a git host":            {ssh + as + "db.test 'echo $((40+2))'", append([]string{"--git", "db.test fetch"}, db...), false},
		"a key added":           {"f=$(mktemp -u); ssh-keygen -q -t ed25519 -N '' -f $f && ssh-add -t 2 -q $f && echo 42", db, false},
		"locked and unlocked":   {"printf '#!/bin/sh\\necho x\\n' > ask; chmod +x ask; export SSH_ASKPASS=$PWD/ask SSH_ASKPASS_REQUIRE=force; ssh-add -x && ssh-add -X && echo 42", db, false},
		"a text signed":         {"ssh-add -L > k.pub; echo text | ssh-keygen -q -Y sign -n file -f k.pub >/dev/null && echo 42", db, false},
		"the user's own socket": {"SSH_AUTH_SOCK=" + k.socket + " ssh-add -l && echo 42", db, false},
	} {
		t.Run(name, func(t *testing.T) {
			outside := "ssh() { command ssh -o UserKnownHostsFile=" + filepath.Join(k.home, ".ssh/known_hosts") + ` "$@"; }; `
			if r := k.sh(t, outside+c.line); !strings.Contains(r.out, "42") {
				t.Errorf("the control says %q %q", r.out, r.err)
			}
			if r := k.inside(t, c.flags, c.line); strings.Contains(r.out, "42") != c.works {
				t.Errorf("inside: %q %q; want it to work: %v", r.out, r.err, c.works)
			}
		})
	}
	// Nothing was added or removed; the control's key lives for two seconds.
	testenv.Until(t, "the one key", func() bool { return strings.Count(k.sh(t, "ssh-add -l").out, "\n") == 1 })
}

// TestAgentIsRecorded: each signature is in the log with its host and key, and
// each refusal.
func TestAgentIsRecorded(t *testing.T) {
	k := newKeyring(t)
	flags := []string{"--ssh-agent", "--allow", "db.test:22"}
	r := k.inside(t, flags, "ssh -o BatchMode=yes "+k.user+"@db.test true; ssh-add -D; true")
	log := k.run(t, k.bawn(t), "audit", "query", "--json")
	var signed, refused int
	for line := range strings.Lines(log.out) {
		switch {
		case strings.Contains(line, `"sign"`) && strings.Contains(line, `"ssh://db.test"`) && strings.Contains(line, "SHA256:") && strings.Contains(line, k.user):
			signed++
		case strings.Contains(line, `"sign"`) && strings.Contains(line, "only listing and signing"):
			refused++
		}
	}
	if signed != 1 || refused == 0 {
		t.Errorf("%d signatures and %d refusals are in the log; want one, and some\n%s%s", signed, refused, log.out, log.err)
	}
	if !strings.Contains(r.err, "only listing and signing are permitted") {
		t.Errorf("the summary says nothing of what was refused: %s", r.err)
	}
	r = k.inside(t, []string{"--ssh-agent", "--allow", "db.test:443"}, "echo ${SSH_AUTH_SOCK:-none}")
	if r.out != "none\n" || !strings.Contains(r.err, "no entry of isolation.hosts names port 22") {
		t.Errorf("without a host for it: %q %q", r.out, r.err)
	}
}
