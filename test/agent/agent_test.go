// Package agent_test runs real coding agents, installed from npm, whose model
// is a script: it makes them write in the workspace, and then do what a guest
// may not. Bare all of it happens; inside "bawn run" only the first, and the
// agent goes on and comes to its end.
package agent_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// An agent is one of npm's.
type agent struct {
	name     string // its folder, and what follows "agent" in the log
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

// commands are what the script makes an agent's shell do, by the effect.
func (y *yard) commands() []string {
	return []string{
		"echo written > inside.txt",
		"echo written > " + y.outside,
		"printf '#!/bin/sh\\n' > .git/hooks/pre-commit",
		"mkdir -p .claude && echo '{}' > .claude/settings.json",
		"cat ~/.netrc",
		"echo ' ' >> ~/" + y.agent.state + "/settings.json",
	}
}

// effects looks from outside at what has happened.
func (y *yard) effects(t *testing.T) map[string]bool {
	there := func(p ...string) bool { _, err := os.Lstat(filepath.Join(p...)); return err == nil }
	return map[string]bool{
		"wrote in the workspace":   there(y.work, "inside.txt"),
		"wrote outside of it":      there(y.outside),
		"wrote a git hook":         there(y.work, ".git/hooks/pre-commit"),
		"wrote another's setting":  there(y.work, ".claude"),
		"told the model a secret":  strings.Contains(y.read(t, y.log()), y.secret),
		"changed its own settings": y.read(t, y.settings()) != y.agent.settings,
	}
}

func TestAgents(t *testing.T) {
	testenv.Need(t, "npm-agents", "node", "git", "userns", "landlock", "seccomp", "notify")
	bin := fixtureDir(t)
	bawn, model := build(t, bin, "cmd/bawn"), build(t, bin, "test/agent/model")
	check(t, os.CopyFS(bin, os.DirFS("testdata")))
	for _, a := range agents {
		t.Run(a.name, func(t *testing.T) {
			t.Run("bare", func(t *testing.T) {
				t.Parallel()
				bare(t, newYard(t, a, model))
			})
			t.Run("inside", func(t *testing.T) {
				t.Parallel()
				inside(t, newYard(t, a, model), bawn)
			})
		})
	}
}

// bare is the control: everything happens.
func bare(t *testing.T, y *yard) {
	y.finish(t, y.command()...)
	want := map[string]bool{}
	for name := range y.effects(t) {
		want[name] = true
	}
	if diff := cmp.Diff(want, y.effects(t)); diff != "" {
		t.Errorf("bare (-want +got):\n%s", diff)
	}
}

// inside wants only the first, an agent that does not mind, a workspace
// without traces, and a log of what Bawn refused.
func inside(t *testing.T, y *yard, bawn string) {
	words := []string{bawn, "run", "--agent", y.agent.name, "--rw", filepath.Dir(y.settings()), "--ro", y.settings(), "--rw", y.model}
	for _, e := range y.agent.env {
		words = append(words, "--env", e)
	}
	y.finish(t, append(append(words, "--"), y.command()...)...)
	got := y.effects(t)
	want := map[string]bool{}
	for name := range got {
		want[name] = name == "wrote in the workspace"
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("inside (-want +got):\n%s", diff)
	}
	if got, want := y.run(t, "git", "status", "--porcelain", "--ignored"), "?? inside.txt\n"; got != want {
		t.Errorf("the workspace holds %q, want %q", got, want)
	}
	y.checkAudit(t, bawn)
}

// checkAudit wants each refusal that Bawn itself pronounced in the log.
func (y *yard) checkAudit(t *testing.T, bawn string) {
	t.Helper()
	log := y.run(t, bawn, "audit", "query", "--json", "--limit", "0", "--verdict", "deny", "--agent", y.agent.name)
	refused := resources(t, log)
	want := []string{y.outside, filepath.Join(y.work, ".git/hooks/pre-commit"), filepath.Join(y.work, ".claude"), y.settings()}
	for _, name := range want {
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
