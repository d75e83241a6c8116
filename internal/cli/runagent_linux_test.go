//go:build !race

// Under the race detector the test program's memory is no place from which a
// sandbox can be started.

package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn/internal/agents"
	"github.com/bawn-dev/bawn/internal/hook"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/sealed"
	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/bawn-dev/bawn/internal/testenv/golden"
)

// agentHome is a home in which every agent is installed and has been used.
func agentHome(t *testing.T) (h configHome, bin string) {
	t.Helper()
	h = newConfigHome(t)
	bin = filepath.Join(h.home, "bin")
	w := agents.World{Home: h.home, Getenv: func(string) string { return "" }}
	for _, a := range agents.All() {
		for _, p := range a.Programs {
			if err := os.Chmod(h.put("bin/"+p, "#!/bin/sh\n"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		for _, dir := range a.ExpandAll(slices.Concat(a.Files.State, a.Files.Private, a.Files.Cache), w) {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Cleanup(func() { // of the user's, only sealed.Remove removes them
		seals, _ := filepath.Glob(filepath.Join(h.home, ".cache/bawn/private/*/*"))
		for _, s := range seals {
			_ = sealed.Remove(s)
		}
	})
	h.put(".claude/settings.json", "{}")
	h.put(".claude.json", "{}")
	h.put(".codex/rules/x", "")
	return h, bin
}

// planned is what the test reads of --plan.
type planned struct {
	Profile map[string]any `json:"agent_profile,omitempty"`
	Plan    struct {
		Mounts []struct{ Kind, Target, Why string }
		Guarded,
		Argv,
		Environment []string
	} `json:"plan"`
}

func (h configHome) plan(bin string, environ, args []string) (p planned) {
	h.Helper()
	build := func(e *launch.Env) *cobra.Command {
		e.Environ = append(e.Environ, append([]string{"PATH=" + bin}, environ...)...)
		return newRunCommand(e)
	}
	out := h.must(build, append([]string{"--plan", "--json", "--net", "none"}, args...)...)
	if err := json.NewDecoder(strings.NewReader(out)).Decode(&p); err != nil {
		h.Fatalf("%v\n%s", err, out)
	}
	return p
}

// TestAgentPlans compares what a session of each agent gets with golden files:
// what it writes, what it must not change, its variables and hosts.
func TestAgentPlans(t *testing.T) {
	testenv.Need(t, "userns", "landlock", "seccomp", "notify")
	h, bin := agentHome(t)
	nobody := h.plan(bin, nil, []string{"--", "sh"})
	if nobody.Profile != nil || len(nobody.Plan.Guarded) > 0 {
		t.Errorf("sh is known: %v", nobody.Profile)
	}
	for _, a := range agents.All() {
		var environ []string
		for _, key := range a.Environment.Keys {
			environ = append(environ, key+"=secret")
		}
		p := h.plan(bin, environ, []string{"--", a.Programs[0], "arg"})
		p.Plan.Environment = slices.DeleteFunc(p.Plan.Environment, func(n string) bool { return slices.Contains(nobody.Plan.Environment, n) })
		p.Plan.Mounts = slices.DeleteFunc(p.Plan.Mounts, func(m struct{ Kind, Target, Why string }) bool { return slices.Contains(nobody.Plan.Mounts, m) })
		text, err := json.MarshalIndent(p, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		got := strings.ReplaceAll(string(text), h.home, "HOME") + "\n"
		golden.Compare(t, filepath.Join("testdata", "agents", a.Name+".golden"), got)
	}
}

// TestAgentSandboxArguments: what switches the agent's own sandbox off comes
// first, and what switches its prompts off where the sandbox holds what it does;
// unless the human speaks of it.
func TestAgentSandboxArguments(t *testing.T) {
	for _, c := range []struct {
		args, want string
		loose      bool // the sandbox does not hold it
	}{
		{"codex exec x", "codex --sandbox danger-full-access exec x", false},
		{"codex", "codex --sandbox danger-full-access", true},
		{"codex exec --sandbox=read-only x", "codex exec --sandbox=read-only x", false},
		{"codex -s read-only", "codex -s read-only", false},
		{"claude -p x", "claude --permission-mode bypassPermissions -p x", false},
		{"claude -p x", "claude -p x", true},
		{"claude --permission-mode plan", "claude --permission-mode plan", false},
		{"claude --allowedTools=Read", "claude --allowedTools=Read", false},
		{"gemini mcp list", "gemini mcp list", false},
		{"gemini -p x", "gemini --approval-mode yolo -p x", false},
		{"claude-agent-acp", "claude-agent-acp", false},
	} {
		name, _, _ := strings.Cut(c.args, " ")
		a, ok := agents.ByProgram(name)
		if !ok {
			t.Fatal(name)
		}
		k := &launch.Known{Agent: a}
		if got := strings.Join(k.Contain(strings.Fields(c.args), !c.loose), " "); got != c.want {
			t.Errorf("%q becomes %q, want %q", c.args, got, c.want)
		}
	}
	var nobody *launch.Known
	if got := nobody.Contain([]string{"sh", "-c", "x"}, true); !slices.Equal(got, []string{"sh", "-c", "x"}) {
		t.Errorf("a program that is not known gets %q", got)
	}
}

// TestAgentsAgreeWithHooks: the data says of hooks what the protocols can.
func TestAgentsAgreeWithHooks(t *testing.T) {
	for _, a := range agents.All() {
		can := hook.Supports(a.Name)
		if can.Veto != a.Hooks.Veto || can.Rewrite != a.Hooks.Rewrite || can.Ask != a.Hooks.Ask {
			t.Errorf("%s: the data has veto %v, rewrite %v, ask %v; the protocol %+v", a.Name, a.Hooks.Veto, a.Hooks.Rewrite, a.Hooks.Ask, can)
		}
	}
}

// TestAgentsCommand prints a row for each, and all of one.
func TestAgentsCommand(t *testing.T) {
	h := newConfigHome(t)
	table := h.must(newAgentsCommand, "--json=false")
	for _, name := range agents.Names() {
		if !strings.Contains(table, "\n"+name+" ") {
			t.Errorf("the table lacks %s:\n%s", name, table)
		}
		one := h.must(newAgentsCommand, name)
		if !strings.Contains(one, "not covered") || !strings.Contains(one, "can't change in a project") {
			t.Errorf("%s", one)
		}
	}
	var list []struct {
		Name  string
		Files struct{ State, Guard []string }
	}
	if err := json.Unmarshal([]byte(h.must(newAgentsCommand, "--json")), &list); err != nil || len(list) != len(agents.Names()) || len(list[0].Files.State) == 0 {
		t.Errorf("%v, %+v", err, list)
	}
	if _, err := h.run(newAgentsCommand, "nobody"); err == nil || !strings.Contains(err.Error(), "no agent that is known") {
		t.Errorf("%v", err)
	}
}
