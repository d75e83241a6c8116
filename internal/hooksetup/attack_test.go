package hooksetup

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// link makes a symbolic link.
func link(t *testing.T, to, name string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(to, name); err != nil {
		t.Fatal(err)
	}
}

// A project that is somebody else's has links where settings are to be: nothing
// outside of it is written, or read into it. A link within it is followed.
func TestLinksOutOfTheProject(t *testing.T) {
	for name, tt := range map[string]struct {
		link    func(t *testing.T, s Setup, outside string)
		refused string
	}{
		"the file": {func(t *testing.T, s Setup, out string) {
			link(t, out+"/victim", s.Project+"/.claude/settings.local.json")
		}, "out of"},
		"its directory":         {func(t *testing.T, s Setup, out string) { link(t, out, s.Project+"/.claude") }, "out of"},
		"a link that hides one": {func(t *testing.T, s Setup, out string) { link(t, "../../outside", s.Project+"/.claude") }, "out of"},
		"to nothing":            {func(t *testing.T, s Setup, out string) { link(t, out+"/new", s.Project+"/.claude/settings.local.json") }, "leads to nothing"},
		"a pipe": {func(t *testing.T, s Setup, _ string) {
			if err := os.MkdirAll(s.Project+"/.claude", 0o755); err != nil {
				t.Fatal(err)
			}
			if err := exec.Command("mkfifo", s.Project+"/.claude/settings.local.json").Run(); err != nil {
				t.Fatal(err)
			}
		}, "want a regular file"},
		"within the project": {func(t *testing.T, s Setup, _ string) {
			put(t, s.Project+"/kept/settings.json", "{}")
			link(t, "../kept/settings.json", s.Project+"/.claude/settings.local.json")
		}, ""},
	} {
		s, dir := world(t)
		out := dir + "/outside"
		put(t, out+"/victim", "{}")
		tt.link(t, s, out)
		p, err := s.Plan(agent(t, "claude"), Project)
		if err == nil {
			err = s.Apply(p)
		}
		if tt.refused == "" {
			if got := content(t, s.Project+"/kept/settings.json"); err != nil || !strings.Contains(got, "hook claude") {
				t.Errorf("%s: %v\n%s", name, err, got)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), tt.refused) {
			t.Errorf("%s: %v; want %q", name, err, tt.refused)
		}
		if files, _ := os.ReadDir(out); len(files) != 1 || content(t, out+"/victim") != "{}" {
			t.Errorf("%s: outside there is %v", name, files)
		}
	}
}

// Between the human's look and yes the project changes: nothing is written that
// was not seen, and nothing outside.
func TestChangedAfterTheLook(t *testing.T) {
	s, dir := world(t)
	a := agent(t, "claude")
	file := s.Project + "/.claude/settings.local.json"
	out := dir + "/outside"
	put(t, file, "{}")
	put(t, out+"/settings.local.json", "{}")
	p, err := s.Plan(a, Project)
	if err != nil {
		t.Fatal(err)
	}
	put(t, file, `{"model": "other"}`)
	if err := s.Apply(p); !errors.Is(err, ErrMeanwhile) {
		t.Errorf("a file that was changed: %v", err)
	}
	if content(t, file) != `{"model": "other"}` {
		t.Error("it was replaced")
	}
	put(t, file, "{}")
	if err := os.Rename(s.Project+"/.claude", s.Project+"/gone"); err != nil {
		t.Fatal(err)
	}
	link(t, out, s.Project+"/.claude") // with the same content there
	if err := s.Apply(p); err == nil {
		t.Error("a directory became a link, and was written through")
	}
	if content(t, out+"/settings.local.json") != "{}" {
		t.Error("a file outside was written")
	}
	if err := errors.Join(os.Remove(s.Project+"/.claude"), os.Rename(s.Project+"/gone", s.Project+"/.claude")); err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(p); err != nil { // control
		t.Error(err)
	}
}

// A file that came into being since, and one that is gone, were not seen either.
func TestAppearedAndGone(t *testing.T) {
	s, _ := world(t)
	a := agent(t, "opencode")
	p, err := s.Plan(a, Project)
	if err != nil {
		t.Fatal(err)
	}
	put(t, p.Edits[0].Path, "mine")
	if err := s.Apply(p); !errors.Is(err, ErrMeanwhile) {
		t.Errorf("%v", err)
	}
	if content(t, p.Edits[0].Path) != "mine" {
		t.Error("it was replaced")
	}
	if err := os.Remove(p.Edits[0].Path); err != nil {
		t.Fatal(err)
	}
	do(t, s, a, Project)
	p, err = s.Undo(a, Project)
	if err != nil {
		t.Fatal(err)
	}
	put(t, p.Edits[0].Path, "mine")
	if err := s.Apply(p); !errors.Is(err, ErrMeanwhile) || content(t, p.Edits[0].Path) != "mine" {
		t.Errorf("%v", err)
	}
}

// killedVariable names the directory in which a child of this test writes and
// takes back until it is killed.
const killedVariable = "HOOKSETUP_KILLED"

// Killed wherever: the file is the old one or the new one, whole; and undoing
// gives the old one.
func TestKilledInTheMiddle(t *testing.T) {
	a := agent(t, "claude")
	if dir := os.Getenv(killedVariable); dir != "" {
		s := Setup{Bawn: "/opt/bawn", Home: dir, Project: dir + "/p", Root: dir, State: dir + "/state", Getenv: func(string) string { return "" }}
		for {
			do(t, s, a, Project)
			undo(t, s, a, Project)
		}
	}
	s, dir := world(t)
	s.Bawn, s.Home, s.Project, s.Root, s.State = "/opt/bawn", dir, dir+"/p", dir, dir+"/state"
	file := s.Project + "/.claude/settings.local.json"
	old := "{\n  // mine\n}\n"
	put(t, file, old)
	p, err := s.Plan(a, Project)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for i := range 8 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilledInTheMiddle$")
		cmd.Env = append(os.Environ(), killedVariable+"="+dir)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(40+11*i) * time.Millisecond)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		seen[content(t, file)]++
	}
	if delete(seen, old); len(seen) > 1 || len(seen) == 1 && seen[string(p.Edits[0].New)] == 0 {
		t.Errorf("neither the old nor the new: %v", seen)
	}
	do(t, s, a, Project)
	undo(t, s, a, Project)
	if got := content(t, file); got != old {
		t.Errorf("undone, it is %q", got)
	}
}

// Whatever becomes of bawn, the shell's exit code denies, and the output says why
// if the agent shows it. Only an exit code 0 of bawn itself does not deny.
func TestCommandFailsClosed(t *testing.T) {
	for _, dir := range []string{"plain", "two words", `it's "odd" $(touch x)`, "ünï", "-dash", "a;b"} {
		at := filepath.Join(t.TempDir(), dir)
		if err := os.MkdirAll(at, 0o755); err != nil {
			t.Fatal(err)
		}
		for body, want := range map[string]int{"exit 0": 0, "exit 1": 2, "exit 2": 2, "exit 3": 2, "exit 127": 2, "kill -9 $$": 2, "kill -15 $$": 2, "": 2} {
			bawn := filepath.Join(at, "bawn")
			_ = os.Remove(bawn)
			if body != "" {
				if err := os.WriteFile(bawn, []byte("#!/bin/sh\n[ \"$*\" = 'hook claude' ] || exit 9\n"+body+"\n"), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			code, said := shell(t, command(bawn, "claude", true))
			if code != want || (code == 2) != (said != "" || body == "exit 2") {
				t.Errorf("%q %q: exit code %d; want %d; it said %q", dir, body, code, want, said)
			}
			if code, _ := shell(t, command(bawn, "claude", false)); body == "exit 1" && code != 1 { // control: what agents take for a yes
				t.Errorf("%q: without the end it is %d", dir, code)
			}
			if !isCommand(command(bawn, "claude", true), "claude") || !isCommand(command(bawn, "claude", false), "claude") {
				t.Errorf("%q is not known again", command(bawn, "claude", true))
			}
		}
	}
	for _, line := range []string{"lint", "bawn hook codex", "echo bawn hook claude", "bawn hook claude; lint", "lint || bawn hook claude", ""} {
		if isCommand(line, "claude") {
			t.Errorf("%q is taken for ours", line)
		}
	}
}

func shell(t *testing.T, line string) (int, string) {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", line)
	cmd.Dir = t.TempDir()
	var said strings.Builder
	cmd.Stderr = &said
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), said.String()
}

// Cline takes no exit code for a no: its hook always writes words.
func TestClineScriptFailsClosed(t *testing.T) {
	s, dir := world(t)
	s.Bawn = dir + "/a place/bawn"
	file := do(t, s, agent(t, "cline"), User).Edits[0].Path
	for body, want := range map[string]string{
		"": `"cancel":true`, "exit 1": `"cancel":true`, "kill -9 $$": `"cancel":true`, "exit 0": `"cancel":true`, "echo '{\"cancel\":true}'; exit 1": `"cancel":true`,
		"echo '{\"cancel\":false}'; exit 1": `"cancel":true`, "echo '{\"cancel\":false}'": `"cancel":false`,
	} {
		_ = os.Remove(s.Bawn)
		if body != "" {
			put(t, s.Bawn, "#!/bin/sh\n"+body+"\n")
			if err := os.Chmod(s.Bawn, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		out, _ := exec.Command(file).Output()
		if !strings.Contains(string(out), want) || strings.Count(string(out), "cancel") != 1 {
			t.Errorf("%q: %s; want %s", body, out, want)
		}
	}
}

// answers are what a bawn may write and how it may end, with what becomes of a
// call of the command "touch x".
var answers = map[string]struct{ body, want string }{
	"allow":   {`echo '{"decision":"allow"}'`, `ran {"command":"touch x"}`},
	"other":   {`echo '{"decision":"allow","input":{"command":"other"}}'`, `ran {"command":"other"}`},
	"deny":    {`echo '{"decision":"deny","reason":"because"}'`, "denied because"},
	"ask":     {`echo '{"decision":"ask"}'`, "denied bawn hook ended with 0 and said nothing"},
	"nothing": {"", "denied bawn hook ended with 0 and said nothing"},
	"words":   {"echo allow", "denied bawn hook ended with 0 and said nothing"},
	"code":    {`echo '{"decision":"allow"}'; echo broken >&2; exit 1`, "denied broken"},
	"killed":  {`echo '{"decision":"allow"}'; kill -9 $$`, "denied bawn hook ended with null and said nothing"},
	"flood":   {"yes", "denied bawn said more than an answer"},
	"null":    {"echo null", "denied bawn hook ended with 0 and said nothing"},
}

// The code that OpenCode and pi load takes everything but an "allow" for a no.
func TestPluginsFailClosed(t *testing.T) {
	testenv.Need(t, "node")
	for name, p := range map[string]struct {
		text text
		call string
	}{
		"opencode": {plugin, `const h = await m.Bawn({directory: "/p"}); await h["tool.execute.before"]({tool: "bash", sessionID: "s", callID: "c"}, {args});`},
		"pi":       {extension, `const on = {}; m.default({on: (e, f) => (on[e] = f)}); const r = await on.tool_call({toolName: "bash", toolCallId: "c", input: args}, {cwd: "/p", hasUI: false, sessionManager: {getSessionId: () => "s"}}); if (r?.block) throw new Error(r.reason);`},
	} {
		dir := t.TempDir()
		put(t, dir+"/drive.mjs", `for (const file of process.argv.slice(2)) {
  const m = await import(file);
  const args = {command: "touch x"};
  try { `+p.call+` console.log("ran", JSON.stringify(args)); } catch (e) { console.log("denied", e.message.split("\n")[0]); }
}`)
		args, want := []string{dir + "/drive.mjs"}, ""
		for answer, a := range answers {
			place := dir + "/" + answer + " \"'\\$`x`\"/bawn"
			put(t, place, "#!/bin/sh\n"+a.body+"\n")
			code, err := p.text.is(place, name)
			if err := errors.Join(err, os.Chmod(place, 0o755)); err != nil {
				t.Fatal(err)
			}
			put(t, dir+"/"+answer+".mjs", string(code))
			args, want = append(args, dir+"/"+answer+".mjs"), want+a.want+"\n"
		}
		code, _ := p.text.is(dir+"/gone/bawn", name)
		put(t, dir+"/gone.mjs", string(code))
		out, err := exec.Command("node", append(args, dir+"/gone.mjs")...).Output()
		if got, ok := strings.CutPrefix(string(out), want); err != nil || !ok || !strings.HasPrefix(got, "denied bawn can't be started: ") {
			t.Errorf("%s: %v: %s\nwant %s", name, err, out, want)
		}
	}
}

// An agent is found in PATH and where installers put it; in the project it is
// whatever the project says.
func TestFind(t *testing.T) {
	s, dir := world(t)
	a := agent(t, "claude")
	program := func(file string) {
		put(t, file, "#!/bin/sh\n")
		if err := os.Chmod(file, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := s.Find(a); ok {
		t.Error("found where there is none")
	}
	program(s.Project + "/node_modules/.bin/claude")
	link(t, s.Project+"/node_modules/.bin/claude", dir+"/links/claude")
	s.Getenv = func(name string) string {
		return map[string]string{"PATH": s.Project + "/node_modules/.bin:" + dir + "/links:.:rel"}[name]
	}
	if f, ok := s.Find(a); ok {
		t.Errorf("%+v lies in the project", f)
	}
	program(s.Home + "/.local/share/claude/versions/2.1.3")
	link(t, s.Home+"/.local/share/claude/versions/2.1.3", s.Home+"/.local/bin/claude")
	if f, ok := s.Find(a); !ok || f.Version != "2.1.3" || f.Path != s.Home+"/.local/bin/claude" {
		t.Errorf("%+v", f)
	}
	program(dir + "/npm/node_modules/@anthropic-ai/claude-code/bin/cli")
	put(t, dir+"/npm/node_modules/@anthropic-ai/claude-code/package.json", `{"name": "@anthropic-ai/claude-code", "version": "9.9.9"}`)
	link(t, "../@anthropic-ai/claude-code/bin/cli", dir+"/npm/node_modules/.bin/claude")
	s.Getenv = func(string) string { return dir + "/npm/node_modules/.bin" }
	if f, ok := s.Find(a); !ok || f.Version != "9.9.9" {
		t.Errorf("%+v", f)
	}
}

// Who owns a file owns it afterwards.
func TestOwnerStays(t *testing.T) {
	testenv.Need(t, "root")
	s, _ := world(t)
	file := s.Project + "/.claude/settings.local.json"
	put(t, file, "{}")
	if err := os.Chown(file, 12345, 12346); err != nil {
		t.Fatal(err)
	}
	do(t, s, agent(t, "claude"), Project)
	out, err := exec.Command("stat", "-c", "%u %g %a", file).Output()
	if err != nil || strings.TrimSpace(string(out)) != "12345 12346 640" {
		t.Errorf("%s, %v", out, err)
	}
	if _, err := os.Lstat(filepath.Dir(file)); errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// What everybody's agents run is root's alone, with all that leads to it.
func TestRootAlone(t *testing.T) {
	testenv.Need(t, "root")
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	bawn := dir + "/bin/bawn"
	put(t, bawn, "")
	link(t, bawn, dir+"/links/bawn")
	for name, do := range map[string][2]func() error{
		"the program is another's":     {func() error { return os.Chown(bawn, 12345, 0) }, func() error { return os.Chown(bawn, 0, 0) }},
		"the program can be written":   {func() error { return os.Chmod(bawn, 0o775) }, func() error { return os.Chmod(bawn, 0o755) }},
		"a directory can be written":   {func() error { return os.Chmod(dir+"/bin", 0o777) }, func() error { return os.Chmod(dir+"/bin", 0o755) }},
		"a directory is another's":     {func() error { return os.Chown(dir+"/bin", 12345, 0) }, func() error { return os.Chown(dir+"/bin", 0, 0) }},
		"the link's directory is":      {func() error { return os.Chown(dir+"/links", 12345, 0) }, func() error { return os.Chown(dir+"/links", 0, 0) }},
		"the link itself is another's": {func() error { return os.Lchown(dir+"/links/bawn", 12345, 0) }, func() error { return os.Lchown(dir+"/links/bawn", 0, 0) }},
	} {
		if err := do[0](); err != nil {
			t.Fatal(err)
		}
		if err := RootAlone(dir + "/links/bawn"); err == nil {
			t.Errorf("%s: no error", name)
		}
		if err := do[1](); err != nil {
			t.Fatal(err)
		}
		if err := RootAlone(dir + "/links/bawn"); err != nil { // control
			t.Errorf("%s no more: %v", name, err)
		}
	}
	if err := RootAlone(dir + "/none"); err == nil {
		t.Error("no program, no error")
	}
}
