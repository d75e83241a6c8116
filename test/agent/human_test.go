package agent_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// why is what the human says with a no.
const why = "nobody does that here"

// human answers what is asked in an account until the test ends: yes to a
// deployment and to what is written in the workspace, no to all else.
func (y *account) human(t *testing.T, bawn string) {
	t.Helper()
	relay := y.cmd(context.Background(), bawn, "serve")
	relay.Stderr = os.Stderr
	check(t, relay.Start())
	testenv.Until(t, "the relay", func() bool { return !strings.Contains(y.pending(t.Context(), bawn), "no relay runs") })
	ctx, cancel := context.WithCancel(context.Background())
	var human sync.WaitGroup
	human.Go(func() {
		for answered := map[string]bool{}; ctx.Err() == nil; time.Sleep(200 * time.Millisecond) {
			y.answer(ctx, bawn, answered)
		}
	})
	t.Cleanup(func() {
		cancel()
		human.Wait()
		_ = relay.Process.Signal(syscall.SIGTERM)
		_ = relay.Wait() // by the signal
		t.Logf("was asked: %q", y.asked)
	})
}

// pending are the questions, or the error of the command that lists them.
func (y *account) pending(ctx context.Context, bawn string) string {
	out, _ := y.cmd(ctx, bawn, "approvals", "--json").CombinedOutput() // it says why, or the test is over
	return string(out)
}

// answer says yes or no to each question that is pending.
func (y *account) answer(ctx context.Context, bawn string, answered map[string]bool) {
	for line := range strings.Lines(y.pending(ctx, bawn)) {
		var q struct{ ID, State, Resource string }
		if json.Unmarshal([]byte(line), &q) != nil || q.State != "pending" || answered[q.ID] {
			continue
		}
		answered[q.ID] = true
		y.asked = append(y.asked, q.Resource)
		words := []string{bawn, "deny", q.ID, "--why", why}
		if q.Resource == deploy || strings.HasSuffix(q.Resource, ">inside.txt") {
			words = []string{bawn, "approve", q.ID}
		}
		if said, err := y.cmd(ctx, words...).CombinedOutput(); err != nil && ctx.Err() == nil {
			y.asked = append(y.asked, "failed: "+string(said))
		}
	}
}

// commandOfHook is a hook's command in the settings of an agent.
var commandOfHook = regexp.MustCompile(`("(?:command|bash)":) *"[^"]*bawn hook (?:[^"\\]|\\.)*"`)

// killHooks makes each hook that "bawn init" wrote one that is killed, and
// code that agents load such that it can't be.
func (y *account) killHooks(t *testing.T) {
	t.Helper()
	killed := 0
	check(t, filepath.WalkDir(y.home, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.Contains(path, "/.local/state/") {
			return err
		}
		text, err := os.ReadFile(path)
		dead := commandOfHook.ReplaceAllString(string(text), `$1"kill -9 $$$$"`)
		if strings.Contains(string(text), "Written by \"bawn init\"") {
			dead = "throw new Error('dead')\n"
		}
		if err != nil || dead == string(text) {
			return err
		}
		killed++
		return os.WriteFile(path, []byte(dead), 0o600)
	}))
	if killed == 0 {
		t.Fatalf("%s has no hook that could die", y.agent.Name)
	}
}

// reasons wants the model to be told why something was refused; pushed is what it is
// told of the push, which a human refuses or the sandbox in which the bare repository is
// read-only.
func (y *account) reasons(t *testing.T, pushed string) {
	t.Helper()
	results := map[string]string{}
	for _, r := range y.told(t) {
		if r.Step > 0 && r.Result != "" {
			if line, ok := y.everything()[r.Step-1].(string); ok {
				results[line] = r.Result
			}
		}
	}
	for line, want := range map[string]string{push: pushed, "cat ~/.netrc": "builtin:protected"} {
		if !strings.Contains(results[line], want) {
			t.Errorf("%s: the model was told %.500q; want %q", line, results[line], want)
		}
	}
}
