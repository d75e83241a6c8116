package examples

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/bawn-dev/bawn/internal/testenv/clients"
	"github.com/bawn-dev/bawn/internal/testenv/testhome"
)

// bin is the directory of the programs, for all tests.
var bin string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("/var/tmp", "bawn-examples-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	bin = filepath.Join(dir, "bin")
	code := m.Run()
	if err := testenv.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// programs puts bawn into PATH, in a home that is empty, and returns that.
func programs(t *testing.T, features ...string) string {
	t.Helper()
	testenv.Need(t, append([]string{"userns", "landlock", "seccomp", "notify", "git"}, features...)...)
	if _, err := os.Stat(bin); err != nil {
		if err := testhome.Programs(bin, "cmd/bawn", "cmd/bawnd", "cmd/bawn-egress", "test/agent/model", "examples/library"); err != nil {
			t.Fatal(err)
		}
	}
	home, err := os.MkdirTemp(filepath.Dir(bin), "home-")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv("LC_ALL", "C.UTF-8")
	for _, name := range []string{"XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"} {
		t.Setenv(name, "")
	}
	return home
}

// run starts an example, which ends with 1 where its claim does not hold, and compares
// what it prints with its README.
func run(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("./run", args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("%v", err)
		if exit, ok := err.(*exec.ExitError); ok {
			t.Errorf("standard error: %s", exit.Stderr)
		}
	}
	t.Logf("%s", out)
	if !shows(t, dir, string(out)) {
		t.Errorf("README.md of %s does not show this output:\n%s", dir, out)
	}
}

// block is what a README shows of a terminal.
var block = regexp.MustCompile("(?s)```console\n(.*?)```")

// says reports whether a README shows the output in one of its blocks, behind a prompt. In
// a line "…" stands for any text, and as a line of its own for any lines.
func says(readme, out string) bool {
	for _, m := range block.FindAllStringSubmatch(readme, -1) {
		_, shown, _ := strings.Cut(m[1], "\n") // behind the command
		pattern := strings.ReplaceAll("\n"+regexp.QuoteMeta(shown), "\n…\n", "\n(?s:.*)")
		pattern = strings.TrimPrefix(strings.ReplaceAll(pattern, "…", ".*"), "\n")
		if ok, _ := regexp.MatchString("^"+pattern+"$", out); ok && shown != "" {
			return true
		}
	}
	return false
}

// TestLengths: the README of an example has at most 120 words.
func TestLengths(t *testing.T) {
	files, err := filepath.Glob("*/README.md")
	if err != nil || len(files) < 10 {
		t.Fatalf("%q, %v", files, err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if n := len(strings.Fields(string(text))); err != nil || n > 120 {
			t.Errorf("%s has %d words, want at most 120; %v", name, n, err)
		}
	}
}

func TestSays(t *testing.T) {
	readme := "# X\n```console\n$ run\none … three\n```\n```console\n$ run\n…\nlast\n```\n"
	for out, want := range map[string]bool{
		"one two three\n": true, "one two four\n": false, "one two three\nmore\n": false, "": false, "a\nb\nlast\n": true, "last\n": true, "a\nlast\nb\n": false,
	} {
		if got := says(readme, out); got != want {
			t.Errorf("%q: %v", out, got)
		}
	}
}

// TestLocalModel: the model is reached where --model names it, and only there.
func TestLocalModel(t *testing.T) {
	testenv.ByUser(t)
	programs(t, "python3")
	run(t, "local-model")
}

// TestMCPServer: the plugin's tool works, and reads no password; the control, which is the
// server as it stands, does.
func TestMCPServer(t *testing.T) {
	testenv.ByUser(t)
	programs(t, "python3")
	run(t, "mcp-server")
}

// TestMonorepo: a guest works in its package, and can't change the others.
func TestMonorepo(t *testing.T) {
	testenv.ByUser(t)
	programs(t)
	run(t, "monorepo")
}

// TestAgents: real agents, whose model is a script, do what the README says.
func TestAgents(t *testing.T) {
	testenv.ByUser(t)
	testenv.Whole(t)
	for _, c := range clients.All() {
		switch c.Name {
		case "claude", "codex", "opencode":
			t.Run(c.Name, func(t *testing.T) { agent(t, c) })
		}
	}
}

func agent(t *testing.T, c clients.Client) {
	home := programs(t, "npm-agents", "node")
	script, err := json.Marshal(map[string]any{"text": "done", "commands": []string{"echo hello >hello.txt", "mkdir -p .vscode && echo {} >.vscode/tasks.json"}})
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(home, name) }
	if err := os.WriteFile(at("script.json"), script, 0o600); err != nil {
		t.Fatal(err)
	}
	model := exec.CommandContext(t.Context(), filepath.Join(bin, "model"), "-script", at("script.json"), "-log", at("log"), "-url", at("url"))
	model.Stderr = os.Stderr
	if err := model.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = model.Wait() }) // killed with the test's context
	var address string
	testenv.Until(t, "the model's address", func() bool {
		text, err := os.ReadFile(at("url"))
		address = strings.TrimSpace(string(text))
		return err == nil && address != ""
	})
	if err := c.Prepare(home, address); err != nil {
		t.Fatal(err)
	}
	for _, v := range append(c.Environment(address), c.Key+"=none") {
		name, value, _ := strings.Cut(v, "=")
		t.Setenv(name, value)
	}
	t.Setenv("BAWN_FLAGS", "--model "+address)
	run(t, "agents", c.Command(true)...)
}

// TestLibrary: a line that the policy allows runs as a guest, and one that asks does not.
func TestLibrary(t *testing.T) {
	testenv.ByUser(t)
	home := programs(t)
	work := filepath.Join(home, "project")
	if err := os.Mkdir(work, 0o755); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{"echo hello >made; cat made": "", "git push --force": "git push --force: ask: "} {
		cmd := exec.Command("library", line)
		cmd.Dir = work
		out, err := cmd.CombinedOutput()
		if err != nil || want != "" && !strings.HasPrefix(string(out), want) || want == "" && !shows(t, "library", string(out)) {
			t.Errorf("%s: %v: %s", line, err, out)
		}
	}
}

// shows compares an output with a README.
func shows(t *testing.T, dir, out string) bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	return says(string(text), out)
}

// commands are the calls of bawn in the files of an editor.
var commands = regexp.MustCompile(`bawn run ([^"\n]*)-- \w+`)

// TestEditorCommands: each session that the files start can be planned.
func TestEditorCommands(t *testing.T) {
	programs(t)
	texts := []string{string(file(t, "tasks.json")), string(file(t, "mise.toml"))}
	t.Chdir(t.TempDir())
	seen := 0
	for _, text := range texts {
		for _, m := range commands.FindAllStringSubmatch(text, -1) {
			words := append([]string{"run", "--plan"}, strings.Fields(m[1])...)
			if out, err := exec.Command("bawn", append(words, "--", "true")...).CombinedOutput(); err != nil {
				t.Errorf("%q: %v: %s", m[0], err, out)
			}
			seen++
		}
	}
	if seen != 4 {
		t.Errorf("%d sessions, want 4", seen)
	}
}

// TestEnvrc: with the file for direnv, a program's name starts it as a guest. What direnv
// brings are two functions, which stand in here.
func TestEnvrc(t *testing.T) {
	testenv.Need(t, "bash")
	dir, tools := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{"bawn": "#!/bin/sh\necho bawn \"$@\"\n", "claude": "#!/bin/sh\necho unsandboxed\n"} {
		if err := os.WriteFile(filepath.Join(tools, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	envrc, err := filepath.Abs("editor/envrc")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("bash", "-c", `direnv_layout_dir() { echo "$PWD/.direnv"; }; PATH_add() { PATH=$1:$PATH; }; source "$0"; claude -p hi`, envrc)
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + tools + ":/usr/bin:/bin"}
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "bawn run -- claude -p hi\n" {
		t.Errorf("%v: %q", err, out)
	}
}
