package hooksetup

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bawn-dev/bawn/internal/agents"
)

// world is a machine of the test's own: nothing of it lies outside of dir.
func world(t *testing.T) (s Setup, dir string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s = Setup{
		Bawn: "/opt/some place/bawn", Home: dir + "/home", Project: dir + "/home/p", Root: dir + "/root", State: dir + "/state",
		Getenv: func(string) string { return "" },
	}
	for _, d := range []string{s.Project, s.Root} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return s, dir
}

// tree is every file and directory below dir, but for Bawn's own.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || strings.HasPrefix(path, filepath.Join(dir, "state")) {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := ""
		if info.Mode().IsRegular() {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text = string(b)
		}
		all[strings.TrimPrefix(path, dir)] = info.Mode().String() + " " + text
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func put(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func agent(t *testing.T, name string) *agents.Agent {
	t.Helper()
	a, ok := agents.ByName(name)
	if !ok {
		t.Fatalf("no agent %q", name)
	}
	return a
}

func do(t *testing.T, s Setup, a *agents.Agent, l Level) Plan {
	t.Helper()
	p, err := s.Plan(a, l)
	if err == nil {
		err = s.Apply(p)
	}
	if err != nil {
		t.Fatalf("%s %s: %v", a.Name, l, err)
	}
	return p
}

func undo(t *testing.T, s Setup, a *agents.Agent, l Level) {
	t.Helper()
	p, err := s.Undo(a, l)
	if err == nil {
		err = s.Apply(p)
	}
	if err != nil {
		t.Fatalf("undo %s %s: %v", a.Name, l, err)
	}
}

// places calls f for each agent at each level where it has hooks.
func eachPlace(t *testing.T, f func(t *testing.T, a *agents.Agent, l Level)) {
	n := 0
	for _, a := range agents.All() {
		for _, l := range []Level{Project, User, Managed} {
			if !a.Hooks.Veto || at(a, l) == "" {
				continue
			}
			n++
			t.Run(a.Name+" "+string(l), func(t *testing.T) {
				t.Parallel()
				f(t, a, l)
			})
		}
	}
	if n < 20 {
		t.Errorf("only %d places", n)
	}
}

// Where nothing was, everything goes again; the second time changes nothing.
func TestThereAndBack(t *testing.T) {
	eachPlace(t, func(t *testing.T, a *agents.Agent, l Level) {
		s, dir := world(t)
		before := tree(t, dir)
		if p := do(t, s, a, l); !p.Changes() {
			t.Error("nothing to write")
		}
		after := tree(t, dir)
		if cmp.Equal(before, after) {
			t.Error("nothing was written")
		}
		if again := do(t, s, a, l); again.Changes() {
			t.Errorf("the second time would change %+v", again.Edits)
		}
		if d := cmp.Diff(after, tree(t, dir)); d != "" {
			t.Errorf("the second time changed %s", d)
		}
		undo(t, s, a, l)
		if d := cmp.Diff(before, tree(t, dir)); d != "" {
			t.Errorf("undone, it differs: %s", d)
		}
		undo(t, s, a, l)
	})
}

// theirs is what a user may have had in an agent's settings.
var theirs = map[string]string{
	"claude":  "{\n\t// mine\n\t\"model\": \"opus\",\n\t\"hooks\": {\"PreToolUse\": [{\"matcher\": \"Bash\", \"hooks\": [{\"type\": \"command\", \"command\": \"lint\"}]}]},\n}\n",
	"codex":   "{\"hooks\": {\"PreToolUse\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"lint\"}]}]}}",
	"gemini":  "{\n    \"hooksConfig\": {},\n    \"ui\": {\"theme\": \"x\"}\n}",
	"qwen":    "{}",
	"cursor":  "{\"version\": 1, \"hooks\": {\"stop\": [{\"command\": \"lint\"}]}}\n",
	"crush":   "{\r\n  \"lsp\": {}\r\n}\r\n",
	"copilot": "{\"version\": 1, \"hooks\": {\"preToolUse\": [{\"type\": \"command\", \"bash\": \"lint\"}]}}",
}

const theirTOML = "# mine\nmodel = \"o\" # this\n\n[features]\nweb = true\n\n[hooks.state.\"/x/hooks.json:stop:0:0\"]\ntrusted_hash = \"sha256:00\"\n\n[[hooks.Stop]]\nmatcher = \"x\""

// had gives an agent files of the user's, and returns their paths.
func had(t *testing.T, s Setup, a *agents.Agent, l Level) (files []string) {
	t.Helper()
	parts, _, err := s.parts(a, l)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range parts {
		text := theirs[a.Name]
		if strings.HasSuffix(p.path, ".toml") {
			text = theirTOML
		}
		if text == "" {
			continue // a file that is all ours
		}
		put(t, p.path, text)
		files = append(files, p.path)
	}
	return files
}

// What the user had is there all the time, and to the byte in the end.
func TestNothingOfTheirsIsLost(t *testing.T) {
	eachPlace(t, func(t *testing.T, a *agents.Agent, l Level) {
		s, dir := world(t)
		files := had(t, s, a, l)
		before := tree(t, dir)
		do(t, s, a, l)
		for _, f := range files {
			for _, line := range strings.Split(theirs[a.Name], "\n") {
				if line = strings.TrimRight(line, "\r ,}]"); !strings.HasSuffix(f, ".toml") && !strings.Contains(content(t, f), line) {
					t.Errorf("%s has lost %q:\n%s", f, line, content(t, f))
				}
			}
			if info, err := os.Stat(f); err != nil || info.Mode().Perm() != 0o640 {
				t.Errorf("mode %v, %v", info.Mode(), err)
			}
		}
		if p := do(t, s, a, l); p.Changes() {
			t.Error("the second time changes something")
		}
		undo(t, s, a, l)
		if d := cmp.Diff(before, tree(t, dir)); d != "" {
			t.Errorf("%s", d)
		}
	})
}

// Where somebody has changed a file since, only ours is taken out.
func TestUndoAfterOthers(t *testing.T) {
	eachPlace(t, func(t *testing.T, a *agents.Agent, l Level) {
		s, _ := world(t)
		files := had(t, s, a, l)
		do(t, s, a, l)
		for _, f := range files {
			text := content(t, f)
			if strings.HasSuffix(f, ".toml") {
				put(t, f, text+"\n[added]\nlater = 1\n")
				continue
			}
			put(t, f, strings.Replace(text, "{", `{"added": {"later": 1}, `, 1))
		}
		undo(t, s, a, l)
		for _, f := range files {
			text := content(t, f)
			if strings.Contains(text, "bawn") || !strings.Contains(text, "later") {
				t.Errorf("%s:\n%s", f, text)
			}
			if strings.HasSuffix(f, ".toml") && !strings.HasPrefix(text, "# mine\nmodel = \"o\" # this\n\n[features]\nweb = true\n\n[hooks.state.\"/x/hooks.json:stop:0:0\"]\ntrusted_hash = \"sha256:00\"\n\n[[hooks.Stop]]\nmatcher = \"x\"\n") {
				t.Errorf("%s:\n%s", f, text)
			}
		}
	})
}

// A file that is wholly ours is not put over somebody else's, nor taken away
// once somebody has changed it.
func TestFilesOfOthers(t *testing.T) {
	for _, name := range []string{"opencode", "pi", "cline"} {
		s, _ := world(t)
		a := agent(t, name)
		file := do(t, s, a, User).Edits[0].Path
		ours := content(t, file)
		put(t, file, ours+"// and mine\n")
		if _, err := s.Undo(a, User); !errors.Is(err, errChanged) {
			t.Errorf("%s: %v", name, err)
		}
		do(t, s, a, User) // the human has seen the difference
		if content(t, file) != ours {
			t.Errorf("%s: it is not mended", name)
		}
		put(t, file, "mine")
		if _, err := s.Plan(a, User); !errors.Is(err, errTheirs) {
			t.Errorf("%s: %v", name, err)
		}
		undo(t, s, a, User)
		if content(t, file) != "mine" {
			t.Errorf("%s: it is gone", name)
		}
		put(t, file, ours) // control
		undo(t, s, a, User)
		if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Codex keeps the trust in all its hooks in one file: undoing one level leaves
// the other's.
func TestTrustOfTwoLevels(t *testing.T) {
	s, dir := world(t)
	a := agent(t, "codex")
	before := tree(t, dir)
	do(t, s, a, Project)
	do(t, s, a, User)
	undo(t, s, a, Project)
	config := content(t, s.Home+"/.codex/config.toml")
	if strings.Contains(config, s.Project) || !strings.Contains(config, s.Home+"/.codex/hooks.json:pre_tool_use:0:0") {
		t.Errorf("%s", config)
	}
	if p, err := s.Plan(a, User); err != nil || p.Changes() {
		t.Errorf("the other level is not in place: %v", err)
	}
	undo(t, s, a, User)
	if d := cmp.Diff(before, tree(t, dir)); d != "" {
		t.Errorf("%s", d)
	}
}

// Without the record only ours is taken out, and the file stays.
func TestUndoWithoutRecord(t *testing.T) {
	s, _ := world(t)
	a := agent(t, "claude")
	file := do(t, s, a, Project).Edits[0].Path
	if err := os.Remove(s.recordPath()); err != nil {
		t.Fatal(err)
	}
	undo(t, s, a, Project)
	if got := content(t, file); meaningText(t, got) != "{}" {
		t.Errorf("%s", got)
	}
	put(t, s.recordPath(), "{")
	if _, err := s.Plan(a, Project); err == nil || !strings.Contains(err.Error(), "move it away") {
		t.Errorf("a broken record: %v", err)
	}
	put(t, s.recordPath(), `{"version": 2}`)
	if _, err := s.Undo(a, Project); err == nil || !strings.Contains(err.Error(), "newer bawn") {
		t.Errorf("a newer record: %v", err)
	}
}

// What was written by a bawn elsewhere is replaced, and still undone to the
// byte.
func TestMovedBawn(t *testing.T) {
	eachPlace(t, func(t *testing.T, a *agents.Agent, l Level) {
		s, dir := world(t)
		had(t, s, a, l)
		before := tree(t, dir)
		do(t, s, a, l)
		s.Bawn = "/usr/bin/bawn"
		p := do(t, s, a, l)
		for _, e := range p.Edits {
			if bytes.Contains(e.New, []byte("some place")) || !p.Changes() {
				t.Errorf("%s", e.New)
			}
		}
		undo(t, s, a, l)
		if d := cmp.Diff(before, tree(t, dir)); d != "" {
			t.Errorf("%s", d)
		}
	})
}

// Who wrote that hooks are off meant it.
func TestOff(t *testing.T) {
	s, _ := world(t)
	put(t, s.Project+"/.claude/settings.json", `{"disableAllHooks": true}`)
	put(t, s.Home+"/.codex/config.toml", "features.hooks = false\n")
	for name, want := range map[string]int{"claude": 1, "codex": 1, "gemini": 0} {
		if got := s.Off(agent(t, name)); len(got) != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	for name, text := range map[string]string{"gemini": `{"hooksConfig": {"enabled": false}}`, "qwen": `{"disableAllHooks": true}`, "codex": "[features]\nhooks = false\n"} {
		a := agent(t, name)
		put(t, s.Root+a.Hooks.Managed, text)
		if _, err := s.Plan(a, Managed); err == nil || !strings.Contains(err.Error(), "no hook runs") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNoHooks(t *testing.T) {
	s, _ := world(t)
	var no *NoHooksError
	for name, l := range map[string]Level{"amp": Project, "copilot": Managed} {
		if _, err := s.Plan(agent(t, name), l); !errors.As(err, &no) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s.Getenv = func(string) string { return "here" }
	if _, err := s.Plan(agent(t, "codex"), User); err == nil || !strings.Contains(err.Error(), "look at the variables") {
		t.Errorf("a directory that depends on where one is: %v", err)
	}
}
