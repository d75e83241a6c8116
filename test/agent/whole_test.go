package agent_test

import (
	"crypto/rand"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/bawn-dev/bawn/internal/testenv/clients"
)

// What somebody is asked about, and what looks for the model's key. All else of the script is the same unsandboxed and split.
const (
	deploy  = "make deploy"
	push    = "git push --force ./remote.git HEAD:refs/heads/main"
	look    = "python3 look.py"
	long    = "seq 1 3000" // the agent cuts it, and unsandboxed loses some of its end
	keyMark = "sk-whole-"
)

// call is a call of a tool of the agent's own.
type call struct {
	Tool string         `json:"tool"`
	Args map[string]any `json:"args"`
}

// task is a day's work: what an agent writes itself, and 36 commands.
func (y *account) task() []any {
	in := func(name string) string { return filepath.Join(y.work, name) }
	const calc = "package calc\n\n// Add adds.\nfunc Add(a, b int) int { return a - b }\n"
	return []any{
		"mkdir -p calc cmd/calc && pwd",
		"cat > go.mod <<'EOF'\nmodule example.com/calc\n\ngo 1.21\nEOF",
		call{"write_file", map[string]any{"file_path": in("calc/calc.go"), "content": calc}},
		"cat > Makefile <<'EOF'\nbuild:\n\tgo build -o bin/ ./cmd/calc\ntest: build\n\t./bin/calc 2>&1 | grep -x 42 || { echo \"FAIL: got $$(./bin/calc 2>&1)\"; exit 1; }\ndeploy: build\n\techo deployed >> deployed\nEOF",
		"cat Makefile",
		"printf 'package main\\n\\nimport \"example.com/calc/calc\"\\n\\nfunc main() { println(calc.Add(20, 22)) }\\n' > cmd/calc/main.go",
		"go vet ./...",
		"make test",
		call{"read_file", map[string]any{"file_path": in("calc/calc.go")}},
		call{"edit", map[string]any{"file_path": in("calc/calc.go"), "old_string": "a - b", "new_string": "a + b"}},
		"make -s test && echo passed",
		"make -s build && ./bin/calc",
		"cd calc && ls && pwd",
		call{"write_file", map[string]any{"file_path": in(".gitignore"), "content": "bin/\nkeep/\ndeployed\nremote.git/\n"}},
		"git add . && git status --short",
		"git commit -q -m 'calc: add' && git log --format=%s",
		"grep -rn 'func ' --include='*.go' . | sort | head -n 5",
		"find . -name '*.go' -not -path './.git/*' | sort | wc -l",
		"sed -i 's/adds/sums/' calc/calc.go && git diff --numstat",
		"git commit -aqm 'calc: say it better' && git log --oneline | wc -l",
		"git log -p --format=%s",
		"seq 1 500",
		long,
		"(sleep 0.3; echo late >> late.txt) & echo early; wait; cat late.txt",
		"false",
		"ls nonesuch; echo \"code $?\"",
		"echo out; echo err >&2; exit 42",
		"for f in *.mod; do wc -l < \"$f\"; done",
		"tr a-z A-Z <<EOF | rev\nhere\n$((6 * 7)) documents\nEOF",
		"X=1; Y=$((X + 41)); echo \"$Y $(git rev-parse --is-inside-work-tree)\"",
		"printf 'int main(void) { return 7; }\\n' > seven.c",
		"cc -o bin/seven seven.c && ./bin/seven; echo \"code $?\"",
		"printf 'import glob, os\\nprint(sorted(os.environ.items()))\\nfor p in glob.glob(\"/proc/[0-9]*/environ\"):\\n    try:\\n        print([v for v in open(p).read().split(chr(0)) if \"sk-\" + \"whole-\" in v])\\n    except OSError:\\n        pass\\n' > look.py",
		look,
		"timeout 5 sleep 0.1; bash -c 'set -o pipefail; false | true; echo $?'",
		"mkdir keep && echo precious > keep/file && ls keep",
		deploy,
		push,
		"rm -rf keep",
		"git status --short && git log --format='%s %T' && cat deployed",
	}
}

// newWhole makes an account with the task and a key that only the agent may hold.
func newWhole(t *testing.T, a clients.Client, model string) *account {
	y := newAccount(t, a, model)
	y.key = keyMark + rand.Text()
	put(t, "[user]\n\tname = dev\n\temail = dev@example.com\n", y.home, ".gitconfig")
	check(t, os.MkdirAll(filepath.Join(y.home, ".cache/go-build"), 0o755)) // of somebody who has used it
	y.run(t, "git", "init", "-q", "--bare", "remote.git")
	write(t, y, y.task())
	return y
}

// TestWhole gives an unmodified agent the task twice, unsandboxed and in two zones,
// with a human who has nothing but a phone. The agent sees the same, and leaves
// the same behind, but for what the human or the policy does not want.
func TestWhole(t *testing.T) {
	testenv.Whole(t)
	testenv.Need(t, "chromium", "go", "cc", "make", "python3")
	bawn, model := programs(t)
	for _, a := range clients.All() {
		if a.Name != "qwen" {
			continue // one agent is enough for as long a day; a human would be asked about each command of Gemini
		}
		bare, split := newWhole(t, a, model), newWhole(t, a, model)
		t.Run(a.Name, func(t *testing.T) {
			t.Run("bare", func(t *testing.T) {
				t.Parallel()
				bare.serve(t)
				bare.finish(t, a.Command(true)...)
			})
			t.Run("split", func(t *testing.T) {
				t.Parallel()
				split.whole(t, bawn)
			})
		})
		if t.Failed() {
			return
		}
		compare(t, bare, split)
		split.intents(t, bawn)
		for name, y := range map[string]*account{"bare": bare, "split": split} {
			median, sum := y.pace(t)
			t.Logf("%s: a turn of the agent takes %d ms (median), all %d ms", name, median, sum)
		}
	}
}

// whole runs the task in two zones, with the relay's page on a phone.
func (y *account) whole(t *testing.T, bawn string) {
	port, end := y.relay(t, bawn)
	answered := y.phone(t, bawn, port)
	y.serve(t)
	y.at(t, "http://host.bawn.internal:"+y.port())
	words := []string{bawn, "run", "--split", "--net", "none", "--model", y.port()}
	y.finish(t, append(append(words, "--"), y.agent.Command(true)...)...)
	if err := answered(); err != nil {
		t.Errorf("the phone: %v", err)
	}
	if len(y.processes(t)) == 0 || len(y.places(t)) == 0 {
		t.Error("control: nothing is seen of the relay while it runs")
	}
	end()
	y.clean(t)
}

// results are what the agent's model was told of each step, without what is
// never twice the same.
func (y *account) results(t *testing.T) map[string]string {
	volatile := regexp.MustCompile(`PGID: \d+|Signal: [01]\b|[0-9a-f]{64}|run_shell_command_\w+|\b\d+\.\d+s\b|\(cached\)`)
	found := map[string]string{}
	steps := y.task()
	for _, r := range y.told(t) {
		if r.Result == "" || r.Step == 0 {
			continue
		}
		name, isCommand := steps[r.Step-1].(string)
		if !isCommand {
			name = steps[r.Step-1].(call).Tool
		}
		found[name] = volatile.ReplaceAllString(strings.ReplaceAll(r.Result, filepath.Dir(y.home), "/BASE"), "…")
	}
	return found
}

// compare wants the same of both, but for what differs on purpose.
func compare(t *testing.T, bare, split *account) {
	b, s := bare.results(t), split.results(t)
	const refusal = "nobody rewrites history here"
	if !strings.Contains(s[push], refusal) || strings.Contains(b[push], refusal) {
		t.Errorf("%s: the agent was told %s; want %q", push, s[push], refusal)
	}
	if !strings.Contains(b[look], bare.key) || strings.Contains(s[look], keyMark) || !strings.Contains(s[look], "PATH") {
		t.Errorf("the model's key: bare %s\nsplit %s", b[look], s[look])
	}
	for _, said := range []string{b[long], s[long]} {
		if !strings.Contains(said, `Output: 1\n2\n3\n4\n`) {
			t.Errorf("%s: the agent was told %s", long, said)
		}
	}
	for _, what := range []string{push, look, long} {
		delete(b, what)
		delete(s, what)
	}
	for what, said := range b {
		if isCut(said, s[what]) {
			t.Logf("%s: bare the agent has lost the end: %s", what, said)
			b[what] = s[what]
		}
	}
	if diff := cmp.Diff(b, s); diff != "" {
		t.Errorf("what the agent saw (-bare +split):\n%s", diff)
	}
	if diff := cmp.Diff(bare.leaves(t), split.leaves(t)); diff != "" {
		t.Errorf("the workspace (-bare +split):\n%s", diff)
	}
	for _, y := range []*account{bare, split} {
		_, err := os.Stat(filepath.Join(y.work, "keep/file")) // a checkpoint has it: nobody is asked
		pushed := y.run(t, "git", "-C", "remote.git", "for-each-ref")
		if err == nil || (pushed == "") != (y == split) {
			t.Errorf("split %t: what is to be removed: %v; what was pushed: %q", y == split, err, pushed)
		}
	}
}

// isCut reports whether a result is the whole one, but for the end of the
// output: this agent stops to read its terminal soon after the command's end,
// also where the machine is busy.
func isCut(said, whole string) bool {
	head, tail, ok := strings.Cut(said, `\nError: `)
	begin, end, both := strings.Cut(whole, `\nError: `)
	return ok && both && tail == end && len(head) < len(begin) && strings.HasPrefix(begin, strings.TrimSuffix(head, "(empty)"))
}

// leaves are the files of the workspace with their contents: not what compilers
// make, and neither what is denied in one of the two.
func (y *account) leaves(t *testing.T) map[string]string {
	found := map[string]string{}
	check(t, fs.WalkDir(os.DirFS(y.work), ".", func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && slices.Contains([]string{".git", "bin", "keep", "remote.git"}, p) {
			return fs.SkipDir
		}
		if err == nil && d.Type().IsRegular() {
			found[p] = y.read(t, filepath.Join(y.work, p))
		}
		return err
	}))
	return found
}
