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
	"github.com/bawn-dev/bawn/internal/testenv/clients"
)

// lastWords is what the script says in the end.
const lastWords = "the script is at its end"

// patience ends an agent that hangs.
const patience = 5 * time.Minute

// offline keeps sessions from what the default profile reaches.
const offline = "[[rule]]\nid = \"offline\"\nkind = \"network\"\npattern = \"*\"\nverdict = \"deny\"\npriority = 100\nreason = \"tests reach nothing\"\n"

// An account is the home of a user who runs an agent in a project.
type account struct {
	agent   clients.Client
	home    string
	work    string   // a git repository below home
	model   string   // directory of the scripted model's files
	program string   // the model
	url     string   // where it listens, once it does
	outside string   // a file that is not there
	secret  string   // in ~/.netrc
	key     string   // of the model
	env     []string // of the agent
	steps   int      // of the model's script
	asked   []string // of the human
}

// write makes steps the model's script.
func write[S any](t *testing.T, y *account, steps []S) {
	t.Helper()
	y.steps = len(steps)
	script, err := json.Marshal(map[string]any{"commands": steps, "text": lastWords})
	check(t, err)
	put(t, string(script), y.model, "script.json")
}

// newAccount makes an account without a script.
func newAccount(t *testing.T, a clients.Client, model string) *account {
	t.Helper()
	base := fixtureDir(t)
	y := &account{
		agent: a, home: filepath.Join(base, "home"), work: filepath.Join(base, "home/src/project"), model: filepath.Join(base, "model"),
		program: model, outside: filepath.Join(base, "outside/file"), secret: rand.Text(), key: "none",
	}
	put(t, "machine example.com login dev password "+y.secret+"\n", y.home, ".netrc")
	put(t, "hello\n", y.work, "README")
	put(t, offline, y.home, ".config/bawn/policy.toml")
	check(t, os.MkdirAll(filepath.Dir(y.outside), 0o755))
	y.run(t, "git", "init", "-q")
	y.run(t, "git", "add", "README")
	y.run(t, "git", "-c", "user.name=dev", "-c", "user.email=dev@example.com", "commit", "-q", "-m", "first")
	return y
}

// serve starts the model on this machine and sets the agent up for it.
func (y *account) serve(t *testing.T) {
	t.Helper()
	at := filepath.Join(y.model, "url")
	cmd := exec.CommandContext(t.Context(), y.program, "-script", filepath.Join(y.model, "script.json"), "-log", y.log(), "-url", at)
	cmd.Stderr = os.Stderr
	check(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Wait() }) // killed with the test's context
	testenv.Until(t, "the model's address", func() bool { _, err := os.Stat(at); return err == nil })
	y.at(t, strings.TrimSpace(y.read(t, at)))
}

// at sets the agent up for a model that is at an address.
func (y *account) at(t *testing.T, url string) {
	t.Helper()
	y.url = url
	y.env = append(append(y.env, y.agent.Environment(url)...), y.agent.Key+"="+y.key)
	check(t, y.agent.Prepare(y.home, url))
}

// port is the model's.
func (y *account) port() string { return y.url[strings.LastIndexByte(y.url, ':')+1:] }

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
	t.Cleanup(func() { check(t, testenv.RemoveAll(dir)) })
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

func (y *account) read(t *testing.T, p string) string {
	t.Helper()
	text, err := os.ReadFile(p)
	check(t, err)
	return string(text)
}

// settings are the agent's own.
func (y *account) settings() string { return filepath.Join(y.home, y.agent.Settings) }

// log is what the model was told.
func (y *account) log() string { return filepath.Join(y.model, "log.jsonl") }

// start runs a command in the project as its owner would.
func (y *account) start(t *testing.T, argv ...string) (stdout, stderr string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := y.cmd(ctx, argv...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	return out.String(), errs.String(), err
}

func (y *account) cmd(ctx context.Context, argv ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.WaitDelay = y.work, time.Minute
	cmd.Env = append([]string{"HOME=" + y.home, "PATH=" + os.Getenv("PATH"), "TERM=dumb", "LANG=C.UTF-8", "USER=dev"}, y.env...)
	return cmd
}

// run runs a command that must succeed and returns what it prints.
func (y *account) run(t *testing.T, argv ...string) string {
	t.Helper()
	out, errs, err := y.start(t, argv...)
	if err != nil {
		t.Fatalf("%q: %v\n%s%s", argv, err, out, errs)
	}
	return out
}

// finish runs the agent and wants it to follow the script to its end.
func (y *account) finish(t *testing.T, argv ...string) {
	t.Helper()
	begin := time.Now()
	out, errs, err := y.start(t, argv...)
	t.Logf("%v: %v\n%s%s", time.Since(begin).Round(time.Millisecond), err, out, errs)
	if err != nil || !strings.Contains(out, lastWords) {
		t.Errorf("the agent ended with %v and printed %q; want %q", err, out, lastWords)
	}
	steps := 0
	for _, r := range y.told(t) {
		if r.Result != "" {
			t.Logf("step %d gave %.300s", r.Step-1, r.Result)
		}
		if r.Tool != "" {
			steps++
		}
	}
	if steps != y.steps {
		t.Errorf("the agent was told %d commands, want %d", steps, y.steps)
	}
}

// A request is what the model was told, and what it said to that.
type request struct {
	Step         int
	Tool, Result string
	MS           int64
}

// told are the requests of the agent, but for its own business.
func (y *account) told(t *testing.T) []request {
	t.Helper()
	var all []request
	for line := range strings.Lines(y.read(t, y.log())) {
		var r request
		check(t, json.Unmarshal([]byte(line), &r))
		all = append(all, r)
	}
	return all
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
