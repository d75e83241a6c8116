package undo_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/bawn-dev/bawn/internal/testenv/testhome"
)

// A taken is one line of "bawn checkpoints --json".
type taken struct{ ID, Why string }

// checkpoints are those of an occasion.
func (r *account) checkpoints(t *testing.T, why string) (ids []string) {
	t.Helper()
	var list []taken
	text := r.must(t, "bawn", "checkpoints", "--json")
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	for _, c := range list {
		if c.Why == why {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// hooked is a guest that changes f2, has its agent's hook read a message, and destroys
// when the test has seen what it wanted.
func (r *account) hooked(message string) []string {
	script := `echo "after the first task" >f2; printf '%s' "$1" | ` + filepath.Join(r.Bin, "bawn") + ` hook claude >answer; touch asked; while [ ! -e go ]; do sleep 0.05; done; echo "after the second" >f2; rm -f f1`
	return []string{"bawn", "run", "-q", "--net", "none", "--mode", "permissive", "--", "sh", "-c", script, "sh", strings.ReplaceAll(message, "CWD", r.Work)}
}

// TestWithinSession has checkpoints taken while a session runs: at a prompt of its agent,
// and before a command that destroys. "bawn undo" goes back to that moment. The controls
// say the same of an event and a command that are neither.
func TestWithinSession(t *testing.T) {
	const head = `{"session_id":"s","transcript_path":"/x","cwd":"CWD","permission_mode":"default",`
	for name, c := range map[string]struct {
		why, message string
		taken        bool
	}{
		"a prompt":             {"prompt", head + `"hook_event_name":"UserPromptSubmit","prompt":"tidy up"}`, true},
		"a destruction":        {"destruction", head + `"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"rm -f f1"}}`, true},
		"the end of a turn":    {"prompt", head + `"hook_event_name":"Stop","stop_hook_active":false}`, false},
		"a command that reads": {"destruction", head + `"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"cat f1"}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newAccount(t)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			cmd := r.Command(ctx, r.hooked(c.message)...)
			var said strings.Builder
			cmd.Stderr = &said
			testhome.Check(t, cmd.Start())
			testenv.Until(t, "the hook's answer", func() bool { _, err := os.Stat(filepath.Join(r.Work, "asked")); return err == nil })
			if c.taken {
				testenv.Until(t, "a checkpoint", func() bool { return len(r.checkpoints(t, c.why)) > 0 })
			}
			testhome.Check(t, os.WriteFile(filepath.Join(r.Work, "go"), nil, 0o644))
			if err := cmd.Wait(); err != nil {
				t.Fatalf("%v: %s", err, &said)
			}
			ids := r.checkpoints(t, c.why)
			if !c.taken {
				if len(ids) > 0 {
					t.Errorf("checkpoints: %q", ids)
				}
				return
			}
			if len(ids) != 1 {
				t.Fatalf("checkpoints: %q", ids)
			}
			r.must(t, "bawn", "undo", "--yes", ids[0])
			if out := r.must(t, "cat", "f1", "f2"); out != "1\nafter the first task\n" {
				t.Errorf("the moment of the checkpoint: %q", out)
			}
		})
	}
}
