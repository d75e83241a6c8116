package agent_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// lastWords is what the script says in the end.
const lastWords = "the script is at its end"

// patience ends an agent that hangs.
const patience = 60 * time.Second

// A yard is the home of somebody who runs an agent in a project.
type yard struct {
	agent    agent
	home     string
	work     string    // a git repository below home
	model    string    // directory of the scripted model
	programs [2]string // with-model and the model
	outside  string    // a file that is not there
	secret   string    // in ~/.netrc
}

// newYard makes a yard with the agent set up and the script written.
func newYard(t *testing.T, a agent, model string) *yard {
	t.Helper()
	base := fixtureDir(t)
	y := &yard{
		agent: a, home: filepath.Join(base, "home"), work: filepath.Join(base, "home/src/project"), model: filepath.Join(base, "model"),
		programs: [2]string{filepath.Join(filepath.Dir(model), "with-model"), model}, outside: filepath.Join(base, "outside/file"), secret: rand.Text(),
	}
	script, err := json.Marshal(map[string]any{"commands": y.commands(), "text": lastWords})
	check(t, err)
	put(t, string(script), y.model, "script.json")
	put(t, a.settings, y.settings())
	put(t, "machine example.com login dev password "+y.secret+"\n", y.home, ".netrc")
	put(t, "hello\n", y.work, "README")
	check(t, os.MkdirAll(filepath.Dir(y.outside), 0o755))
	y.run(t, "git", "init", "-q")
	y.run(t, "git", "add", "README")
	y.run(t, "git", "-c", "user.name=dev", "-c", "user.email=dev@example.com", "commit", "-q", "-m", "first")
	return y
}

// fixtureDir makes a directory that every sandbox leaves where it is: below
// the home directory, or below /var/lib for root, as /tmp is private inside.
func fixtureDir(t *testing.T) string {
	t.Helper()
	parent := "/var/lib"
	if os.Geteuid() != 0 {
		home, err := os.UserHomeDir()
		check(t, err)
		parent = home
	}
	dir, err := os.MkdirTemp(parent, ".bawn-agent-test-")
	check(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	check(t, os.Chmod(dir, 0o755))
	return dir
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// put writes a file with the directories that lead to it.
func put(t *testing.T, text string, parts ...string) {
	t.Helper()
	p := filepath.Join(parts...)
	check(t, os.MkdirAll(filepath.Dir(p), 0o755))
	check(t, os.WriteFile(p, []byte(text), 0o600))
}

func (y *yard) read(t *testing.T, p string) string {
	t.Helper()
	text, err := os.ReadFile(p)
	check(t, err)
	return string(text)
}

// settings are the agent's own.
func (y *yard) settings() string { return filepath.Join(y.home, y.agent.state, "settings.json") }

// log is what the model was told.
func (y *yard) log() string { return filepath.Join(y.model, "log.jsonl") }

// command is the agent with its model beside it.
func (y *yard) command() []string {
	program := filepath.Join(os.Getenv(testenv.AgentsVariable), y.agent.name, "node_modules/.bin", y.agent.program)
	return append([]string{y.programs[0], y.programs[1], y.model, program}, y.agent.args...)
}

// start runs a command in the project as its owner would.
func (y *yard) start(t *testing.T, argv ...string) (stdout, stderr string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.Dir, cmd.WaitDelay = &out, &errs, y.work, time.Second
	cmd.Env = append([]string{"HOME=" + y.home, "PATH=" + os.Getenv("PATH"), "TERM=dumb", "LANG=C.UTF-8", "USER=dev"}, y.agent.env...)
	err = cmd.Run()
	return out.String(), errs.String(), err
}

// run runs a command that must succeed and returns what it prints.
func (y *yard) run(t *testing.T, argv ...string) string {
	t.Helper()
	out, errs, err := y.start(t, argv...)
	if err != nil {
		t.Fatalf("%q: %v\n%s%s", argv, err, out, errs)
	}
	return out
}

// finish runs the agent and wants it to follow the script to its end.
func (y *yard) finish(t *testing.T, argv ...string) {
	t.Helper()
	begin := time.Now()
	out, errs, err := y.start(t, argv...)
	t.Logf("%v: %v\n%s%s", time.Since(begin).Round(time.Millisecond), err, out, errs)
	if err != nil || !strings.Contains(out, lastWords) {
		t.Errorf("the agent ended with %v and printed %q; want %q", err, out, lastWords)
	}
	steps := 0
	for line := range strings.Lines(y.read(t, y.log())) {
		var r struct {
			Step         int
			Tool, Result string
		}
		check(t, json.Unmarshal([]byte(line), &r))
		if r.Result != "" {
			t.Logf("step %d gave %.300s", r.Step-1, r.Result)
		}
		if r.Tool != "" {
			steps++
		}
	}
	if steps != len(y.commands()) {
		t.Errorf("the agent was told %d commands, want %d", steps, len(y.commands()))
	}
}

// resources returns the resources of audit records with why they were refused.
func resources(t *testing.T, log string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for line := range strings.Lines(log) {
		var entry struct {
			Event struct{ Resource, Rule, Reason string }
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatalf("audit record: %v: %s", err, line)
		}
		found[entry.Event.Resource] = fmt.Sprintf("%s (%s)", entry.Event.Rule, entry.Event.Reason)
	}
	return found
}
