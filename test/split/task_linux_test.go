package split_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// jobs are what an agent does in a task: what it runs, and what it sees of it,
// must be the same whether its shells are shells or not.
func jobs(dir, die string) []job {
	sh := func(name, line string) job { return job{Name: name, Argv: []string{"/bin/sh", "-c", line}, Dir: dir} }
	bash := func(name, line string) job { return job{Name: name, Argv: []string{"bash", "-c", line}, Dir: dir} }
	with := func(j job, change func(*job)) job { change(&j); return j }
	return []job{
		sh("write", "printf 'all: out\\nout: in\\n\\tcat in > out\\n' > Makefile && echo text > in"),
		sh("build", "make -s && cat out"),
		sh("pipes", "seq 1 100 | grep 7 | wc -l"),
		sh("exit code", "exit 42"),
		sh("not found", "cd /; nonesuch-program 2>/dev/null; echo $?"),
		sh("both streams", "echo out; echo err >&2; false"),
		sh("here-document", "cat <<EOF | tr a-z A-Z\nline one\nline two\nEOF"),
		sh("variables", "X=1; Y=$((X + 41)); echo \"$Y\""),
		sh("cd", "mkdir -p sub && cd sub && pwd && cd .. && pwd"),
		sh("git init", "git init -q ."),
		sh("git commit", "git add Makefile in && git commit -qm first && git log --format=%s"),
		sh("git diff", "echo more >> in && git diff --stat"),
		sh("background", "(sleep 0.2; echo late) & echo early; wait"),
		sh("for", "for f in in out; do wc -c < $f; done"),
		sh("temporary", "echo kept > "+between+" && ls "+between),
		sh("temporary again", "cat "+between),
		sh("signal", die),
		with(sh("input", "read a; read b; echo \"$b $a\""), func(j *job) { j.Input = "first\nsecond\n" }),
		with(sh("environment", "echo \"$GREETING\""), func(j *job) { j.Env = []string{"GREETING=hello there"} }),
		bash("bash", "set -o pipefail; a=(x y z); echo ${#a[@]}; [[ -f in ]] && echo there; false | true"),
		with(job{Name: "statements", Argv: []string{"bash"}, Dir: dir}, func(j *job) { j.Input = "cd sub\nexport V=kept\npwd\necho $V\nexit 5\n" }),
		{Name: "env", Argv: []string{"/usr/bin/env", "bash", "-c", "echo by env"}, Dir: dir},
		{Name: "script", Argv: []string{"/bin/sh", "script.sh", "an argument"}, Dir: dir},
		{Name: "node's way", Argv: []string{"/bin/sh", "-c", "--", "echo $0 \"$@\"", "zero", "one two"}, Dir: dir},
		with(sh("terminal", "test -t 0 && test -t 1 && stty size"), func(j *job) { j.Terminal = true }),
		with(sh("typed", "printf 'name? '; read line; echo \"got $line\""), func(j *job) { j.Terminal, j.Input = true, "words\n" }),
	}
}

// between is a file that a job leaves in /tmp for the next one. Unsandboxed, it lies in
// the machine's own.
var between = fmt.Sprintf("/tmp/bawn-between-%d", os.Getpid())

// TestTask runs the same task unsandboxed and split: an agent notices nothing.
func TestTask(t *testing.T) {
	t.Parallel()
	r := newAccount(t)
	t.Cleanup(func() { os.Remove(between) })
	for _, program := range []string{"make", "git", "sleep", "nonesuch-program", "stty", "seq", "tr"} {
		r.Rule(t, "allow", "command", program+" *")
	}
	bare, split := r.do(t, "bare", nil), r.do(t, "split", []string{filepath.Join(r.Bin, "bawn"), "run", "--split", "--mode", "permissive", "--"})
	if diff := cmp.Diff(bare, split); diff != "" {
		t.Errorf("bare (-) and split (+) are not the same:\n%s", diff)
	}
	for _, j := range bare {
		if strings.Contains(j.Out, "hello there") {
			return
		}
	}
	t.Errorf("control: the task did nothing: %+v", bare)
}

// do has the jobs done in a directory of their own, which they do not name.
func (r *account) do(t *testing.T, name string, before []string) []job {
	t.Helper()
	dir := filepath.Join(r.Work, name)
	check(t, os.MkdirAll(dir, 0o755))
	check(t, os.WriteFile(filepath.Join(dir, "script.sh"), []byte("echo \"script $1\"\n"), 0o644))
	from, to := filepath.Join(r.Work, name+".jobs"), filepath.Join(r.Work, name+".done")
	text, err := json.Marshal(jobs(dir, r.line("die")))
	check(t, err)
	check(t, os.WriteFile(from, text, 0o600))
	if ended := r.Run(t, append(before, r.Guest("task", from, to)...)...); ended.Code != 0 {
		log := r.Run(t, filepath.Join(r.Bin, "bawn"), "audit", "query", "--limit", "3")
		t.Fatalf("%s: %d %s%s\n%s", name, ended.Code, ended.Out, ended.Err, log.Out)
	}
	text, err = os.ReadFile(to)
	check(t, err)
	var done []job
	check(t, json.Unmarshal([]byte(strings.ReplaceAll(string(text), "/"+name, "/here")), &done))
	return done
}
