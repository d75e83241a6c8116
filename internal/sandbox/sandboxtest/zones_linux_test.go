package sandboxtest_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	words "github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest"
	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest/probe"
	"github.com/bawn-dev/bawn/internal/testenv/listening"
)

// TestNativeEgress and TestNativeZones are the provider's that nobody has to
// name.
func TestNativeEgress(t *testing.T) {
	t.Parallel()
	contenderNamed(t, "native").egress(t)
}

func TestNativeZones(t *testing.T) {
	t.Parallel()
	contenderNamed(t, "native").zones(t)
}

// egress asks services of the host from a session that may reach one of them,
// by other addresses, ports and protocols. Without a sandbox, each answers.
func (c contender) egress(t *testing.T) {
	f := c.fixtures(t)
	f.Install(t, relay(t))
	if c.says(t, f)[sandbox.NetAllow].Strength == words.Unenforced {
		return // that it is refused then is part of honest
	}
	open := service(t, "OPEN")
	closed := []string{fmt.Sprintf("tcp 127.0.0.1:%d", f.TCP4), fmt.Sprintf("tcp 127.9.9.9:%d", f.TCP4), fmt.Sprintf("udp 127.0.0.1:%d", f.UDP4), fmt.Sprintf("sendto 127.0.0.1:%d", f.UDP4)}
	if f.TCP6 != 0 {
		closed = append(closed, fmt.Sprintf("tcp [::1]:%d", f.TCP6))
	}
	if f.External != "" {
		closed = append(closed, "tcp "+f.External)
	}
	for op, a := range attemptsIn(t, sandboxtest.NoSandbox(t, f, slices.Concat([]string{f.Victim, "attempt"}, closed)...), closed) {
		if !strings.HasPrefix(a.Answer, probe.Answer) {
			t.Errorf("control: %s: %+v", op, a)
		}
	}
	ops := append(slices.Clone(closed), "tcp 127.0.0.1:"+open, "tcp 192.0.2.1:443", "tcp 169.254.169.254:80", "udp 192.0.2.1:443")
	r := c.run("--net", "allowlist", "--host-port", open)(t, f, slices.Concat([]string{f.Victim, "attempt"}, ops)...)
	got := attemptsIn(t, r, ops)
	if a := got["tcp 127.0.0.1:"+open]; a.Answer != "OPEN" {
		t.Errorf("control: the service that is open: %+v: %s", a, r.Stderr)
	}
	for op, a := range got {
		if op != "tcp 127.0.0.1:"+open && a.Answer != "" {
			t.Errorf("%s is answered: %+v", op, a)
		}
	}
}

// service is one of this machine's loopback, and returns its port.
func service(t *testing.T, says string) string {
	t.Helper()
	return strconv.Itoa(int(listening.Serve(t, func(c net.Conn) { _, _ = io.WriteString(c, says) }).Port()))
}

// zones keeps what an agent thinks with apart from what it executes: the one
// reaches its model, the other the session's services, and only the first has
// the key. A provider that can't keep them apart refuses.
func (c contender) zones(t *testing.T) {
	f := c.fixtures(t)
	f.Install(t, relay(t))
	f.Environ = append(f.Environ, modelKey+"="+keyOf(f))
	program, err := secretClient()
	if err != nil {
		t.Fatal(err)
	}
	permit(t, f, f.Victim, f.Install(t, program))
	model, other := service(t, "MODEL"), service(t, "SERVICE")
	ops := []string{"tcp 127.0.0.1:" + model, "tcp 127.0.0.1:" + other, fmt.Sprintf("tcp 127.0.0.1:%d", f.TCP4)}
	flags := []string{"--split", "--mode", "permissive", "--net", "allowlist", "--env", modelKey, "--model", model, "--host-port", other}
	run := c.run(flags...)
	agent := run(t, f, slices.Concat([]string{f.Victim, "attempt"}, ops)...)
	if !slices.Contains([]string{"native", "bwrap"}, c.name) {
		if agent.Code == 0 || agent.Stdout != "" || !strings.Contains(agent.Stderr, "can't keep the zones of a split session apart") {
			t.Errorf("it can't keep zones apart, yet: exit code %d, %q: %s", agent.Code, agent.Stdout, agent.Stderr)
		}
		return
	}
	line := f.Victim + " attempt"
	for _, op := range ops {
		line += " '" + op + "'"
	}
	command := c.run(flags...)(t, f, "/bin/sh", "-c", line)
	for who, want := range map[*sandboxtest.Result][]string{&agent: {"MODEL", "", ""}, &command: {"", "SERVICE", ""}} {
		got := attemptsIn(t, *who, ops)
		for i, op := range ops {
			if got[op].Answer != want[i] {
				t.Errorf("%s: %+v, want %q: %s", op, got[op], want[i], who.Stderr)
			}
		}
	}
	c.keys(t, f, flags, f.Install(t, program))
}

// permit has the policy let a split session's commands be these programs, which
// no policy knows.
func permit(t *testing.T, f *sandboxtest.Fixtures, programs ...string) {
	t.Helper()
	var text string
	for _, p := range programs {
		text += fmt.Sprintf("[[rule]]\nkind = \"filesystem\"\noperations = [\"exec\"]\npattern = %q\nverdict = \"allow\"\nreason = \"the test's\"\n", p)
		text += fmt.Sprintf("[[rule]]\nkind = \"command\"\npattern = %q\nverdict = \"allow\"\nreason = \"the test's\"\n", p+" *")
	}
	if err := os.WriteFile(filepath.Join(f.Config, "policy.toml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// modelKey is a variable that agents have their key in.
const modelKey = "OPENAI_API_KEY"

func keyOf(f *sandboxtest.Fixtures) string { return "sk-of-" + f.Token }

// keys looks for the agent's key where its commands can look.
func (c contender) keys(t *testing.T, f *sandboxtest.Fixtures, flags []string, secretclient string) {
	t.Helper()
	// In a file, so that what is in the way of a command is the sandbox.
	list := filepath.Join(f.Workspace, "list")
	text := strings.Join([]string{"env", modelKey, "then", "search", keyOf(f)[:9], keyOf(f)[9:], "/tmp", "/run", "/dev/shm", "/etc"}, "\n")
	if err := os.WriteFile(list, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	argv := []string{secretclient, "from", list}
	agent := fetched(t, c.run(flags...)(t, f, argv...))
	if agent[0].Text != keyOf(f) || !strings.Contains(agent[1].Text, "environ") {
		t.Errorf("control: the agent has no key: %+v", agent)
	}
	command := fetched(t, c.run(flags...)(t, f, "/bin/sh", "-c", strings.Join(argv, " ")))
	if command[0].Text != "" || strings.Contains(command[1].Text, "environ") {
		t.Errorf("a command finds the agent's key: %+v", command)
	}
}
