// Package agent_test runs real coding agents, installed from npm, whose model
// is a script: it makes them write in the workspace, and then do what a guest
// may not. Bare all of it happens; inside "bawn run" only the first, and the
// agent goes on and comes to its end.
package agent_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// An agent is one of npm's.
type agent struct {
	name     string // its folder, its name in the log and that of its credentials
	program  string // below node_modules/.bin
	args     []string
	state    string // its directory below HOME
	settings string // the contents of settings.json in there
	env      []string
}

// agents are headless and ask nobody: what stops them is the sandbox.
var agents = []agent{
	{
		name: "qwen", program: "qwen", state: ".qwen",
		args:     []string{"--approval-mode", "yolo", "-p", "please do the task"},
		settings: `{"security": {"auth": {"selectedType": "openai"}}, "privacy": {"usageStatisticsEnabled": false}, "general": {"disableAutoUpdate": true, "enableAutoUpdate": false}}`,
		env:      []string{"OPENAI_API_KEY=none", "OPENAI_MODEL=scripted"},
	},
	{
		name: "gemini", program: "gemini", state: ".gemini",
		args:     []string{"--approval-mode", "yolo", "-m", "gemini-2.5-flash", "-p", "please do the task"},
		settings: `{"security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": false}}, "general": {"enableAutoUpdate": false, "disableAutoUpdate": true}, "privacy": {"usageStatisticsEnabled": false}, "telemetry": {"enabled": false}}`,
		env:      []string{"GEMINI_API_KEY=none", "GEMINI_CLI_TRUST_WORKSPACE=true"},
	},
}

// mark is what the agent adds to its settings.
const mark = "   "

// commands are what the script makes an agent's shell do, by the effect.
func (y *yard) commands() []string {
	return []string{
		"echo written > inside.txt",
		"echo written > " + y.outside,
		"printf '#!/bin/sh\\n' > .git/hooks/pre-commit",
		"mkdir -p .claude && echo '{}' > .claude/settings.json",
		"cat ~/.netrc",
		"printf '" + mark + "' >> ~/" + y.agent.state + "/settings.json",
	}
}

// What the commands effect.
const (
	workspace     = "wrote in the workspace"
	outside       = "wrote outside of it"
	hook          = "wrote a git hook"
	otherSettings = "wrote another agent's settings"
	secret        = "told the model a secret"
	settings      = "changed its own settings"
)

// effects looks from outside at what has happened.
func (y *yard) effects(t *testing.T) map[string]bool {
	there := func(p ...string) bool { _, err := os.Lstat(filepath.Join(p...)); return err == nil }
	return map[string]bool{
		workspace:     there(y.work, "inside.txt"),
		outside:       there(y.outside),
		hook:          there(y.work, ".git/hooks/pre-commit"),
		otherSettings: there(y.work, ".claude"),
		secret:        strings.Contains(y.read(t, y.log()), y.secret),
		settings:      strings.HasSuffix(y.read(t, y.settings()), mark),
	}
}

func TestAgents(t *testing.T) {
	bawn, model := programs(t)
	each(t, "bare", func(t *testing.T, a agent) { bare(t, newYard(t, a, model)) })
	each(t, "inside", func(t *testing.T, a agent) {
		newYard(t, a, model).inside(t, bawn, nil, workspace, settings)
	})
}

// TestSettings is for whoever wants the agent's settings to stay as they are
// although the directory that they are in is its own.
func TestSettings(t *testing.T) {
	bawn, model := programs(t)
	each(t, "read-only", func(t *testing.T, a agent) {
		y := newYard(t, a, model)
		y.inside(t, bawn, []string{"--open", a.name, "--ro", y.settings()}, workspace)
		if got := y.run(t, "cat", y.settings()); got != a.settings {
			t.Errorf("the settings are now %q, want %q", got, a.settings)
		}
	})
}

// programs builds ours.
func programs(t *testing.T) (bawn, model string) {
	testenv.Need(t, "npm-agents", "node", "git", "userns", "landlock", "seccomp", "notify")
	bin := fixtureDir(t)
	check(t, os.CopyFS(bin, os.DirFS("testdata")))
	return build(t, bin, "cmd/bawn"), build(t, bin, "test/agent/model")
}

// each runs a test for every agent, all at the same time.
func each(t *testing.T, name string, test func(t *testing.T, a agent)) {
	for _, a := range agents {
		t.Run(a.name+"/"+name, func(t *testing.T) {
			t.Parallel()
			test(t, a)
		})
	}
}

// bare is the control: everything happens.
func bare(t *testing.T, y *yard) {
	y.finish(t, y.command()...)
	y.want(t, workspace, outside, hook, otherSettings, secret, settings)
}

// inside wants certain effects only, an agent that does not mind, a workspace
// without traces, and a log of what Bawn refused.
func (y *yard) inside(t *testing.T, bawn string, flags []string, effects ...string) {
	words := []string{bawn, "run", "--agent", y.agent.name, "--rw", y.model, "--rw", filepath.Dir(y.settings())}
	for _, e := range y.agent.env {
		words = append(words, "--env", e)
	}
	words = append(append(words, flags...), "--")
	y.finish(t, append(words, y.command()...)...)
	y.want(t, effects...)
	if got, want := y.run(t, "git", "status", "--porcelain", "--ignored"), "?? inside.txt\n"; got != want {
		t.Errorf("the workspace holds %q, want %q", got, want)
	}
	y.checkAudit(t, bawn)
}

// want compares the effects.
func (y *yard) want(t *testing.T, names ...string) {
	t.Helper()
	got := y.effects(t)
	want := map[string]bool{}
	for name := range got {
		want[name] = slices.Contains(names, name)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("effects (-want +got):\n%s", diff)
	}
}

// checkAudit wants each refusal that Bawn itself pronounced in the log.
func (y *yard) checkAudit(t *testing.T, bawn string) {
	t.Helper()
	log := y.run(t, bawn, "audit", "query", "--json", "--limit", "0", "--verdict", "deny", "--agent", y.agent.name)
	refused := resources(t, log)
	for _, name := range []string{y.outside, filepath.Join(y.work, ".git/hooks/pre-commit"), filepath.Join(y.work, ".claude")} {
		if refused[name] == "" {
			t.Errorf("the audit log has no refusal of %q, but of %v", name, refused)
		}
	}
	t.Logf("refused: %v", refused)
	y.run(t, bawn, "audit", "verify")
}

// build compiles one of our programs into dir.
func build(t *testing.T, dir, pkg string) string {
	t.Helper()
	to := filepath.Join(dir, filepath.Base(pkg))
	cmd := exec.Command("go", "build", "-trimpath", "-o", to, "./"+pkg)
	cmd.Dir, cmd.Env = "../..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", pkg, err, out)
	}
	return to
}
