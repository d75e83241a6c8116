package agent_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bawn-dev/bawn/internal/testenv/clients"
)

// requests are what the script makes an agent ask of an editor.
func (y *account) requests() []any {
	tool := func(path string) any { return map[string]string{"write": path, "text": "written"} }
	return []any{
		"echo written > inside.txt",
		tool(filepath.Join(y.work, "notes.txt")),
		deploy,
		"echo written > " + y.outside,
		tool(y.outside + ".tool"),
		tool(filepath.Join(y.work, ".vscode/tasks.json")),
		"printf '#!/bin/sh\\n' > .git/hooks/pre-commit",
		"cat ~/.netrc",
		"printf '" + mark + "' >> ~/" + y.agent.Settings,
		push,
		remover,
	}
}

// remover removes a directory that is precious.
const remover = "rm -r keep"

// Effects of tools of an agent's own.
const (
	noted       = "made a file with a tool"
	toolOutside = "wrote outside with a tool"
)

// asking are the agents whose programs for editors ask about each command. Bawn starts
// the others with their prompts off: the sandbox contains what they do.
var asking = []string{"claude", "opencode"}

// TestEditors has agents that speak the Agent Client Protocol work for an editor
// whose human says yes to nearly everything. Without a sandbox all of it happens. Through
// "bawn acp" what lies outside, what is guarded and what is secret does not,
// whatever the human says. What an agent asks about, and the human says no to, does
// not happen, and all else does.
func TestEditors(t *testing.T) {
	bawn, model := programs(t)
	each(t, "bare editor", func(t *testing.T, a clients.Client) {
		if a.Editor() == nil {
			return // it speaks no such protocol
		}
		y, e := newEditor(t, a, model)
		y.env = append(y.env, a.Free...)
		e.work(t, a.Editor()...)
		all := []string{workspace, noted, outside, toolOutside, byTool, hook, secret, settings, deployed, pushed, removed}
		y.wantEdited(t, slices.DeleteFunc(all, func(effect string) bool { return effect == toolOutside && a.Keeps })...)
	})
	each(t, "editor", func(t *testing.T, a clients.Client) {
		if a.Editor() == nil {
			return
		}
		y, e := newEditor(t, a, model)
		e.refuses = []string{push, remover}
		e.work(t, append([]string{bawn, "acp", "--host-port", y.port(), "--"}, a.Editor()...)...)
		want, questions := []string{workspace, noted, deployed, removed}, 0
		if slices.Contains(asking, a.Name) {
			want, questions = want[:3], 1
		}
		y.wantEdited(t, want...)
		if n := e.about(deploy); n != questions {
			t.Errorf("the human was asked %d times about %q, want %d", n, deploy, questions)
		}
	})
}

// newEditor makes an account with an agent that works for an editor.
func newEditor(t *testing.T, a clients.Client, model string) (*account, *editor) {
	t.Helper()
	y := newGround(t, a, model)
	write(t, y, y.requests())
	y.serve(t)
	check(t, os.WriteFile(y.settings(), []byte(a.Asking(y.url)), 0o600))
	y.env = append(y.env, a.Seat()...)
	return y, &editor{y: y}
}

// wantEdited compares the effects.
func (y *account) wantEdited(t *testing.T, names ...string) {
	t.Helper()
	there := func(p ...string) bool { _, err := os.Lstat(filepath.Join(p...)); return err == nil }
	got, want := y.effects(t), map[string]bool{}
	delete(got, otherSettings)
	got[noted], got[toolOutside] = there(y.work, "notes.txt"), there(y.outside+".tool")
	for name := range got {
		want[name] = slices.Contains(names, name)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("effects (-want +got):\n%s", diff)
	}
}
