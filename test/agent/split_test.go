package agent_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv/clients"
)

// tasks are what the script makes an agent do in two zones: ordinary work, and
// what neither zone may.
func (y *account) tasks() []string {
	return []string{
		"printf 'all: out\\nout: in\\n\\tcat in in > out\\n' > Makefile && echo text > in",
		"make -s && cat out",
		"cat > notes.md <<EOF\n# Notes\nwritten in one command\nEOF",
		"grep -c written notes.md | tr -d '\\n' && wc -l < notes.md",
		"git add Makefile in notes.md",
		"git -c user.name=a -c user.email=a@a commit -qm work && git log --format=%s",
		"cd /tmp && echo shared > between && pwd",
		"cat /tmp/between",
		"false || echo \"code $?\"",
		"for i in 1 2 3; do echo line $i; done | tail -n 1",
		"echo written > inside.txt",
		"printf '#!/bin/sh\\n' > .git/hooks/pre-commit",
		"mkdir -p .claude && echo '{}' > .claude/settings.json",
		"cat ~/.netrc",
	}
}

// splits are the agents that are split, as each takes long: one that starts
// commands as they are, and two that put words of their own around them.
var splits = []string{"codex", "claude", "gemini"}

// TestSplit runs unmodified agents in two zones, where each of their commands
// can be judged. They do their work, their
// commands see neither keys nor settings of theirs, and each command was judged.
func TestSplit(t *testing.T) {
	bawn, model := programs(t)
	each(t, "split", func(t *testing.T, a clients.Client) {
		if !slices.Contains(splits, a.Name) {
			return
		}
		y := newAccount(t, a, model)
		write(t, y, y.tasks())
		y.serve(t)
		words := []string{bawn, "run", "--split", "--net", "none", "--mode", "permissive", "--model", y.port()}
		y.finish(t, append(append(words, "--"), a.Command(true)...)...)
		y.want(t, workspace, removed) // there is nothing to be removed
		y.worked(t)
		log := y.run(t, bawn, "audit", "query", "--json", "--limit", "0", "--agent", a.Name)
		if n := strings.Count(log, `"zone":"execution"`); n < y.steps {
			t.Errorf("the log has %d events of commands; want one for each of %d", n, y.steps)
		}
		y.run(t, bawn, "audit", "verify")
	})
}

// worked wants what the model was told of the tasks.
func (y *account) worked(t *testing.T) {
	t.Helper()
	told := y.read(t, y.log())
	for _, want := range []string{`text\ntext`, "12", "work", "/tmp", "shared", "code 1", "line 3"} {
		if !strings.Contains(told, want) && !strings.Contains(told, strings.ReplaceAll(want, `\`, `\\`)) {
			t.Errorf("the model was not told %q", want)
		}
	}
	if got := y.run(t, "git", "log", "--format=%s"); !strings.HasPrefix(got, "work\n") {
		t.Errorf("git log says %q", got)
	}
}
