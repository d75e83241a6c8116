package egress_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/bawn-dev/bawn/internal/testenv/clients"
	"github.com/bawn-dev/bawn/internal/testenv/testhome"
)

const (
	lastWords = "the script is at its end" // of every model
	unknown   = "askable.test"             // which no session names
	said      = "this is " + unknown
)

// quiet refuses what some agents want for themselves at their start, so that
// nobody is asked about it.
const quiet = `[[rule]]
id = "quiet"
kind = "network"
pattern = "api.github.com"
verdict = "deny"
`

// A coder is a coding agent of npm's in an account of its own, whose model is a
// server outside that wants a key.
type coder struct {
	clients.Client
	*account
	dir   string // of the model
	value string // of the key
}

// TestCodingAgent runs real agents. With the key as a secret they work and have
// only seen a placeholder; what their shell wants of an unknown host waits for
// the human's answer, and goes on then.
func TestCodingAgent(t *testing.T) {
	testenv.Need(t, "npm-agents", "node")
	d := newAccount(t)
	d.bawn(t)
	program := filepath.Join(d.lab, "bin/model")
	check(t, testhome.Programs(filepath.Dir(program), "test/agent/model"))
	for _, client := range clients.All() {
		if os.Geteuid() != 0 && client.Name != "claude" && client.Name != "gemini" {
			continue // as root all of them are tried, and in test/agent as the ordinary user
		}
		if testenv.Short() && client.Name != "claude" {
			continue // the representative
		}
		t.Run(client.Name, func(t *testing.T) {
			t.Parallel()
			c := newCoder(t, client, program)
			t.Run("guest", c.guest)
			t.Run("bare", c.bare) // later, as what it leaves behind would be asked about
			if c.Name == "codex" {
				t.Run("without", c.without) // the model does want a key
			}
		})
	}
}

// newCoder makes an account with an agent, and starts its model outside.
func newCoder(t *testing.T, client clients.Client, program string) *coder {
	c := &coder{Client: client, account: newAccount(t), value: "sk-" + rand.Text()}
	c.dir = filepath.Join(c.lab, "model", c.Name)
	script, err := json.Marshal(map[string]any{"text": lastWords, "commands": []string{
		"echo written > effect",
		"env > environs",
		"cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' >> environs", // which the policy denies where it is asked
		"curl -sS -m 60 " + c.question(),
	}})
	check(t, err)
	file := put(t, string(script), c.dir, "script.json")
	put(t, c.value, c.dir, modelKey)
	server := c.outside(t, order{Argv: []string{program, "-script", file, "-log", c.log(), "-url", filepath.Join(c.dir, modelURL)}})
	t.Cleanup(func() { c.kill(t, server.PID) })
	testenv.Until(t, "the model listens", func() bool { return exists(filepath.Join(c.dir, modelURL)) })
	address := "https://" + modelHost(c.Name)
	check(t, c.Prepare(c.home, address))
	c.env = append(c.env, append(c.Environment(address), trusting)...)
	put(t, quiet, c.home, ".config/bawn/policy.toml")
	c.vault(t, c.Name, c.value, "--host "+modelHost(c.Name)+" "+c.Place+" --env "+c.Key)
	return c
}

// question returns the URL at an unknown host that the agent's shell fetches.
func (c *coder) question() string { return "http://" + unknown + "/for/" + c.Name }

// log is what the model was told.
func (c *coder) log() string { return filepath.Join(c.dir, "log") }

// bare is the control: the agent has the key itself, and there are no questions.
func (c *coder) bare(t *testing.T) {
	m := c.now(t)
	r := c.withKey(c.value).run(t, c.Command(true)...)
	c.worked(t, m, r.out+r.err)
	if environs := c.take(t, "environs"); !strings.Contains(environs, c.value) {
		t.Error("the control does not find the real key in the environment")
	}
}

// guest runs the agent as a guest with a placeholder and a person who answers.
func (c *coder) guest(t *testing.T) {
	m := c.now(t)
	flags := []string{"--allow", modelHost(c.Name), "--secret", c.Name, "--ask-timeout", "60s"}
	s := c.atTerminal(t, c.insideArgs(t, flags, c.Command(true)...)...)
	questions, most := 1, 2 // about the lent key, and then about the host
	if c.Prefixed {
		most = 5 // and about its commands
	}
	s.within(patience, prompt)
	for ; questions < most && !strings.Contains(s.screen(), "connect to "); questions++ {
		s.say("y")
		testenv.Until(t, "the next question", func() bool { return strings.Count(s.screen(), prompt) > questions })
	}
	if !strings.Contains(s.screen(), "connect to "+unknown) {
		t.Errorf("the question does not say what it is about:\n%s", s.screen())
	}
	if asked := c.asked(t, m); asked != 0 {
		t.Errorf("before the answer %d requests are outside", asked)
	}
	s.say("y")
	screen := s.end()
	c.worked(t, m, screen)
	if got := strings.Count(screen, prompt); got != questions {
		t.Errorf("%d questions, want %d", got, questions)
	}
	if strings.Contains(screen, c.value) {
		t.Error("the agent or its human has seen the key")
	}
	if environs := c.take(t, "environs"); strings.Contains(environs, c.value) || !strings.Contains(environs, c.Key+"=sk-") {
		t.Errorf("the guest's environments hold\n%s", environs)
	}
}

// without runs the agent without the secret; the task must fail.
func (c *coder) without(t *testing.T) {
	m := c.now(t)
	e := c.withKey("none")
	r := e.run(t, e.insideArgs(t, []string{"--allow", modelHost(c.Name)}, c.Command(true)...)...)
	c.wantSent(t, m, "none")
	if effect := c.take(t, "effect"); effect != "" || strings.Contains(r.out, lastWords) {
		t.Errorf("without the secret the task was done: %q\n%s%s", effect, r.out, r.err)
	}
}

// withKey is the account with a key in its environment.
func (c *coder) withKey(key string) *account {
	d := *c.account
	d.env = append(append([]string{}, d.env...), c.Key+"="+key)
	return &d
}

// worked checks that the task is done and that every request has the key.
func (c *coder) worked(t *testing.T, m mark, screen string) {
	t.Helper()
	c.wantSent(t, m, c.value)
	if effect := c.take(t, "effect"); effect != "written\n" || !strings.Contains(screen, lastWords) {
		t.Errorf("want the task done; its effect is %q, the agent says\n%s", effect, screen)
	}
	told, err := os.ReadFile(c.log())
	check(t, err)
	if asked := c.asked(t, m); asked != 1 || !strings.Contains(string(told), said) {
		t.Errorf("%s was asked %d times, want 1; the model was told\n%s", unknown, asked, told)
	}
	check(t, os.Truncate(c.log(), 0))
}

// asked counts the requests to the unknown host.
func (c *coder) asked(t *testing.T, m mark) (n int) {
	t.Helper()
	for _, e := range c.since(t, m) {
		if e.Host == unknown && strings.HasSuffix(c.question(), e.Path) {
			n++
		}
	}
	return n
}

// wantSent wants requests to the model, each with the key in its place.
func (c *coder) wantSent(t *testing.T, m mark, key string) {
	t.Helper()
	requests := 0
	for _, e := range c.since(t, m) {
		if e.Host != modelHost(c.Name) {
			continue
		}
		requests++
		if !strings.Contains(e.Header, fmt.Sprintf(c.Header, key)) {
			t.Errorf("the model was sent %+v, want the key %q", e, key)
		}
	}
	if requests == 0 {
		t.Error("the model was never asked")
	}
	t.Logf("%d requests with the key %.5s…", requests, key)
}

// take returns what is in a file of the workspace, and removes it.
func (d *account) take(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(d.work, name)
	if !exists(path) {
		return ""
	}
	text, err := os.ReadFile(path)
	check(t, err)
	check(t, os.Remove(path))
	return string(text)
}
