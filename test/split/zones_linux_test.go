package split_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv/testhome"
)

// said wants a guest that could, or could not.
func said(t *testing.T, what string, r result, can bool, words ...string) {
	t.Helper()
	if strings.HasPrefix(r.Out, "yes") != can || !can && !strings.HasPrefix(r.Out, "no") {
		t.Errorf("%s: it could: %t, want %t: %d %q\n%s", what, !can, can, r.Code, r.Out, r.Err)
	}
	for _, w := range words {
		if !strings.Contains(r.Out, w) {
			t.Errorf("%s: %q is not in %q", what, w, r.Out)
		}
	}
}

// inShell makes the agent, which is sh, have the guest's words executed. Its
// line says nothing of them, so that what is in their way is the sandbox.
func (r *account) inShell(t testing.TB, flags []string, words ...string) result {
	t.Helper()
	text, err := json.Marshal(words)
	check(t, err)
	file := filepath.Join(r.Work, "words")
	check(t, os.WriteFile(file, text, 0o600))
	argv := append([]string{filepath.Join(r.Bin, "bawn"), "run", "--split", "--mode", "permissive", "--env", "OPENAI_API_KEY"}, flags...)
	return r.Run(t, append(argv, "--", "/bin/sh", "-c", r.line("from", file))...)
}

// TestNetworks: the agent reaches its model and nothing else of what the
// session reaches; its commands reach that, and not the model.
func TestNetworks(t *testing.T) {
	t.Parallel()
	r := newAccount(t)
	model, service := host(t, "the model"), host(t, "the service")
	flags := []string{"--model", "http://127.0.0.1:" + model + "/v1", "--host-port", service}
	const at = "http://host.bawn.internal:"
	said(t, "control: the model from this machine", r.Run(t, r.Guest("get", "http://127.0.0.1:"+model)...), true, "the model")
	said(t, "the agent, its model", r.split(t, flags, "get", at+model), true, "the model")
	said(t, "the agent, a service of the session", r.split(t, flags, "get", at+service), false)
	said(t, "the agent, by an address", r.split(t, flags, "dial", "tcp", "127.0.0.1:"+service), false)
	said(t, "the agent, elsewhere", r.split(t, flags, "dial", "tcp", "192.0.2.1:443"), false)
	said(t, "a command, the service", r.inShell(t, flags, "get", at+service), true, "the service")
	said(t, "a command, the model", r.inShell(t, flags, "get", at+model), false)
	whole := append([]string{filepath.Join(r.Bin, "bawn"), "run"}, flags...)
	for name, port := range map[string]string{"service": service, "model": model} {
		said(t, "without --split the guest reaches the "+name, r.Run(t, append(append(whole, "--"), r.Guest("get", at+port)...)...), true)
	}
}

// TestNothingIsAsked: a rule that allows a host, and the freest mode, open
// nothing for the agent.
func TestNothingIsAsked(t *testing.T) {
	t.Parallel()
	r := newAccount(t)
	r.Rule(t, "allow", "network", "allowed.test")
	const to = "allowed.test:443"
	said(t, "the agent", r.split(t, nil, "proxy", to), true, "403")
	whole := append([]string{filepath.Join(r.Bin, "bawn"), "run", "--mode", "permissive", "--"}, r.Guest("proxy", to)...)
	if control := r.Run(t, whole...); strings.Contains(control.Out, "403") || !strings.HasPrefix(control.Out, "yes") {
		t.Errorf("control: without --split it is refused too: %s%s", control.Out, control.Err)
	}
	log := r.Run(t, filepath.Join(r.Bin, "bawn"), "audit", "query", "--json", "--limit", "0")
	if !strings.Contains(log.Out, "isolation:models") {
		t.Errorf("the log does not say why:\n%s", log.Out)
	}
	if !strings.Contains(log.Out, `"zone":"reasoning"`) {
		t.Errorf("the log does not say in which zone:\n%s", log.Out)
	}
}

// TestKeys: what executes holds no key of the model, in no place where it could
// look, and the agent does.
func TestKeys(t *testing.T) {
	t.Parallel()
	r := newAccount(t)
	key, rest := modelKey[:9], modelKey[9:]
	check(t, os.MkdirAll(filepath.Join(r.Home, ".claude"), 0o700))
	check(t, os.WriteFile(filepath.Join(r.Home, ".claude/.credentials.json"), []byte(modelKey), 0o600))
	flags := []string{"--rw", filepath.Join(r.Home, ".claude")}
	said(t, "the agent's environment", r.split(t, flags, "env"), true, modelKey)
	said(t, "the agent's file", r.split(t, flags, "read", filepath.Join(r.Home, ".claude/.credentials.json")), true, modelKey)
	if env := r.inShell(t, flags, "env"); strings.Contains(env.Out, modelKey) || !strings.Contains(env.Out, "BAWN_SESSION=") {
		t.Errorf("a command's environment: %s%s", env.Out, env.Err)
	}
	said(t, "the agent's file, by a command", r.inShell(t, flags, "read", filepath.Join(r.Home, ".claude/.credentials.json")), false)
	if p := r.inShell(t, flags, "proc"); strings.Contains(p.Out, modelKey) || !strings.HasPrefix(p.Out, "yes") {
		t.Errorf("the processes that a command sees: %s%s", p.Out, p.Err)
	}
	places := []string{"memory", key, rest, r.Home, "/tmp", "/run", "/dev/shm", "/etc", "/var/tmp"}
	if found := r.inShell(t, flags, places...); strings.TrimSpace(found.Out) != "yes:" {
		t.Errorf("a command finds the key: %q %s", found.Out, found.Err)
	}
	said(t, "control: the agent finds it", r.split(t, flags, places...), true, ".credentials.json")
	said(t, "the agent's shells read their own", r.inShell(t, flags, "see", filepath.Join(r.Home, ".claude")), true, "shell-snapshots")
}

// TestProcesses: commands neither see nor reach the agent, nor the other way,
// nor what starts them.
func TestProcesses(t *testing.T) {
	t.Parallel()
	r := newAccount(t)
	for what, run := range map[string]func(testing.TB, []string, ...string) result{"the agent": r.split, "a command": r.inShell} {
		said(t, "control: "+what+" sees itself", run(t, nil, "proc"), true, testhome.GuestWord)
		seen := run(t, nil, "proc")
		for _, hidden := range []string{"bawn run", "bawnd"} {
			if strings.Contains(seen.Out, hidden) {
				t.Errorf("%s sees %q: %s", what, hidden, seen.Out)
			}
		}
	}
	seen := r.inShell(t, nil, "proc")
	if strings.Contains(seen.Out, "/bin/sh -c "+r.line("proc")) && strings.Contains(seen.Out, "OPENAI_API_KEY") {
		t.Errorf("a command sees the agent: %s", seen.Out)
	}
	if open := r.inShell(t, nil, "fds"); strings.TrimSpace(open.Out) != "yes:" {
		t.Errorf("a command inherits %s", open.Out)
	}
}

// TestSocketAndState: what executes has no session socket; neither zone has anything of
// Bawn's own.
func TestSocketAndState(t *testing.T) {
	t.Parallel()
	r := newAccount(t)
	said(t, "control: the agent has a session socket", r.split(t, nil, "socket", "/run/bawn/session.sock"), true)
	said(t, "a command, the session socket", r.inShell(t, nil, "socket", "/run/bawn/session.sock"), false)
	state, cache, config := filepath.Join(r.Home, ".local/state/bawn"), filepath.Join(r.Home, ".cache/bawn"), filepath.Join(r.Home, ".config/bawn")
	for what, run := range map[string]func(testing.TB, []string, ...string) result{"the agent": r.split, "a command": r.inShell} {
		for _, dir := range []string{state, cache, config} {
			said(t, "control: "+dir+" from this machine", r.Run(t, r.Guest("see", dir)...), true)
			said(t, what+", "+dir, run(t, nil, "see", dir), false)
		}
		said(t, what+", a rule of its own", run(t, nil, "put", filepath.Join(config, "policy.toml"), "x"), false)
	}
}

// TestWorkspace: both zones have the same files, and an agent that may only
// look has commands that may write.
func TestWorkspace(t *testing.T) {
	t.Parallel()
	r := newAccount(t)
	file := filepath.Join(r.Work, "file")
	said(t, "control: the agent writes", r.split(t, nil, "put", file, "x"), true)
	said(t, "a command reads it", r.inShell(t, nil, "read", file), true, "x")
	said(t, "the agent that may look", r.split(t, []string{"--split-workspace", "ro"}, "put", file, "y"), false)
	said(t, "its commands", r.inShell(t, []string{"--split-workspace", "ro"}, "put", file, "z"), true)
	said(t, "it sees that", r.split(t, []string{"--split-workspace", "ro"}, "read", file), true, "z")
	left, err := filepath.Glob(filepath.Join(r.Home, ".cache/bawn/split/*"))
	if err != nil || len(left) > 0 {
		t.Errorf("the sessions left %q, %v", left, err)
	}
}

// TestExecutorIsApart: a command can signal its like and not what started it,
// by the number of none of its threads.
func TestExecutorIsApart(t *testing.T) {
	t.Parallel()
	r := newAccount(t)
	if reached := r.inShell(t, nil, "signal"); strings.Contains(reached.Out, "@executor") || !strings.HasPrefix(reached.Out, "yes") {
		t.Errorf("a command can signal the executor: %s%s", reached.Out, reached.Err)
	}
}

// TestRefusedIsListed: what the policy refuses of commands stands at the end of
// the session, for its human and for programs.
func TestRefusedIsListed(t *testing.T) {
	t.Parallel()
	r := newAccount(t, "python3")
	const silent = "import subprocess; subprocess.run(['/bin/sh', '-c', 'echo x > .git/hooks/pre-commit'], stderr=subprocess.DEVNULL)"
	for _, flags := range [][]string{nil, {"--json"}} {
		got := r.Run(t, slices.Concat([]string{filepath.Join(r.Bin, "bawn"), "run", "--split", "--net", "none"}, flags, []string{"--", "/usr/bin/python3", "-c", silent})...)
		if !strings.Contains(got.Err, "builtin:protected:**/.git/hooks/**") || !strings.Contains(got.Err, ".git/hooks/pre-commit") {
			t.Errorf("%v: %+v", flags, got)
		}
	}
}

// TestWordsAroundCommands: what an agent puts around its commands is left away,
// and hides nothing: the command in it is judged as if it stood alone.
func TestWordsAroundCommands(t *testing.T) {
	t.Parallel()
	r := newAccount(t)
	const words = `\builtin shopt -u extglob 2>/dev/null || true && { \builtin unset -f -- 'which'; } >/dev/null 2>&1 || true && eval '%s' < /dev/null && pwd -P >| /tmp/claude-1-cwd`
	for command, code := range map[string]int{"echo one": 0, "touch made && rm -rf /": 126} {
		got := r.Run(t, filepath.Join(r.Bin, "bawn"), "run", "--split", "--net", "none", "--", "/bin/sh", "-c", fmt.Sprintf(words, command))
		if got.Code != code || (got.Out == "one\n") != (code == 0) {
			t.Errorf("%s: %+v", command, got)
		}
	}
	if _, err := os.Lstat(filepath.Join(r.Work, "made")); err == nil {
		t.Error("what was denied has happened")
	}
}

// TestFewDescriptors: a shell that could not wait for its command does not start
// it.
func TestFewDescriptors(t *testing.T) {
	t.Parallel()
	r := newAccount(t, "python3")
	const shell = "import os, resource; resource.setrlimit(resource.RLIMIT_NOFILE, (%d, %[1]d)); os.execv('/bin/sh', ['sh', '-c', 'touch made'])"
	for _, limit := range []int{5, 64} { // the second is the control
		got := r.Run(t, filepath.Join(r.Bin, "bawn"), "run", "--split", "--net", "none", "--", "/usr/bin/python3", "-c", fmt.Sprintf(shell, limit))
		_, err := os.Lstat(filepath.Join(r.Work, "made"))
		if enough := limit > 5; (got.Code == 0) != enough || (err == nil) != enough {
			t.Errorf("with %d: %+v, made: %v", limit, got, err)
		}
	}
}
