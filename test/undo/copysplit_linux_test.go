package undo_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/bawn-dev/bawn/internal/testenv/testhome"
)

// inZones is an agent that plants itself, has a command plant, and says what it then sees.
const inZones = `
import os, subprocess
os.makedirs('agent/.vscode')
for name in ['agent/.envrc', 'agent/.vscode/tasks.json', 'agent/plain', '.envrc', '.git/hooks/post-checkout']:
    open(name, 'w').write('evil')
os.symlink('/etc/passwd', 'agent/link')
subprocess.run(['/bin/sh', '-c', 'cp -a agent command'], check=True)
subprocess.run(['/bin/sh', '-c', 'echo evil >command/late'], check=True)
subprocess.run(['/bin/sh', '-c', 'echo evil >>kept'], check=True)
for top, dirs, names in os.walk('.'):
    dirs[:] = [d for d in dirs if d != '.git']
    for name in names:
        print('there', os.path.relpath(os.path.join(top, name)))
print('kept', open('kept').read().split())
`

// TestCopySplitPlants has the agent and a command, each in its zone, plant on one copy what
// the host would execute or obey. Each sees what the other one makes, none of it reaches the
// workspace, and apply holds it back. The control is the same without a session.
func TestCopySplitPlants(t *testing.T) {
	testenv.ByUser(t)
	testenv.Need(t, "python3", "git", "bwrap")
	r := newAccount(t, "userns", "landlock", "seccomp", "notify")
	place := func(name string) string {
		dir := filepath.Join(r.Home, name)
		r.must(t, "sh", "-c", `mkdir $0 && cd $0 && git init -q && mkdir -p .git/hooks && echo mine >kept`, dir)
		return dir
	}
	sorted := func(out string) []string {
		list := strings.Split(strings.TrimSpace(out), "\n")
		slices.Sort(list)
		return list
	}
	control, ws := place("control"), place("ws")
	planted := sorted(r.must(t, "sh", "-c", `cd $0 && python3 -c "$1"`, control, inZones))
	if len(planted) != 12 || planted[0] != "kept ['mine', 'evil']" {
		t.Fatalf("control: %q", planted)
	}
	work := func() map[string]string { // what is neither git's objects nor a directory
		m := contents(t, ws)
		maps.DeleteFunc(m, func(name, _ string) bool { return strings.HasPrefix(name, ".git/objects/") })
		return m
	}
	before := work()
	in := func(args string) string {
		return r.must(t, "sh", "-c", `cd $0 && exec bawn `+args, ws, inZones)
	}
	if seen := sorted(in(`run -q --split --copy --name p --net none --mode permissive -- /usr/bin/python3 -c "$1"`)); !slices.Equal(seen, planted) {
		t.Errorf("the agent sees %q, want %q", seen, planted)
	}
	if after := work(); !maps.Equal(after, before) {
		t.Errorf("before anything is applied: %q, want %q", slices.Sorted(maps.Keys(after)), slices.Sorted(maps.Keys(before)))
	}
	held := in("apply p --yes")
	after := work()
	for _, name := range []string{".envrc", "agent/.envrc", "command/.envrc", "agent/.vscode/tasks.json", "command/.vscode/tasks.json", "agent/link", "command/link"} {
		_, err := os.Lstat(filepath.Join(ws, name))
		if err == nil || !strings.Contains(held, "held      "+name) {
			t.Errorf("%s: %v; want it held back:\n%s", name, err, held)
		}
	}
	if _, err := os.Lstat(filepath.Join(ws, ".git/hooks/post-checkout")); err == nil {
		t.Error("a hook has come to the host's git directory")
	}
	if after["agent/plain"] != "evil" || after["command/late"] != "evil\n" || after["kept"] != "mine\nevil\n" {
		t.Errorf("control: what is harmless was not taken over: %q", slices.Sorted(maps.Keys(after)))
	}
	looks := r.must(t, "sh", "-c", `cd $0 && { bawn run -q --split --split-workspace ro --copy --name q --net none --mode permissive -- /usr/bin/python3 -c "$1"; }`, ws, looking)
	if strings.TrimSpace(looks) != "refused changed" {
		t.Errorf("an agent that may look writes, or does not see its commands' work: %q", looks)
	}
	refusal := r.must(t, "sh", "-c", `cd $0 && { bawn run --split --copy --provider bwrap --net none -- true 2>&1; echo "code $?"; }`, ws)
	if !strings.Contains(refusal, `share a copy with provider "native" only`) || !strings.Contains(refusal, "code 2\n") {
		t.Errorf("with bwrap: %q", refusal)
	}
	testhome.Check(t, os.RemoveAll(control))
}

// looking is an agent that may only look at the copy, and whose command changes it.
const looking = `
import subprocess
try:
    open('mine', 'w')
except OSError:
    print('refused', end=' ')
subprocess.run(['/bin/sh', '-c', 'echo changed >theirs'], check=True)
print(open('theirs').read())
`
