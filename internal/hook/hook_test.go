package hook

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/testenv/golden"
)

// told is a call in words: what is judged, and what may be changed.
func told(c Call, err error) string {
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "event=%s phase=%d tool=%s cwd=%s session=%s id=%s mode=%s command=%q interactive=%v why=%q\n", c.Event, c.Phase, c.Tool, c.Cwd, c.Session, c.ID, c.Mode, c.Command, c.Interactive, c.Why)
	for _, a := range c.Actions {
		fmt.Fprintf(&b, "action %s %s %q args=%q dir=%s\n", a.Kind, a.Operation, a.Resource, a.Args, a.Dir)
	}
	return b.String()
}

// TestConversations compares what is understood of each agent's messages, and
// what it is answered, with testdata/*.golden. The messages are those that the
// agents were seen to send, one a line.
func TestConversations(t *testing.T) {
	files, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(files) < len(Agents()) {
		t.Fatalf("%d conversations, %v; want one for each of %q", len(files), err, Agents())
	}
	for _, file := range files {
		agent := strings.TrimSuffix(filepath.Base(file), ".jsonl")
		t.Run(agent, func(t *testing.T) {
			input, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, strings.TrimSuffix(file, "jsonl")+"golden", string(converse(agent, input)))
		})
	}
}

// converse writes down what becomes of each message.
func converse(agent string, input []byte) []byte {
	var b bytes.Buffer
	for line := range bytes.Lines(input) {
		line = bytes.TrimSpace(line)
		c, err := Read(agent, line)
		fmt.Fprintf(&b, "< %s\n%s", line, told(c, err))
		if err != nil {
			say(&b, "broken", Broken(agent, err))
			continue
		}
		outcomes := []Outcome{{Reason: "no"}, {Verdict: bawn.Allow, Reason: "yes"}, {Verdict: bawn.Ask, Reason: "who knows"}}
		if c.Command != "" {
			outcomes = append(outcomes, Outcome{Verdict: bawn.Allow, Reason: "yes", Rewritten: "'x' && y"})
		}
		for _, o := range outcomes {
			say(&b, cmp.Or(map[bool]string{true: "moved"}[o.Rewritten != ""], o.Verdict.String()), Answer(c, o))
		}
	}
	return b.Bytes()
}

func say(b *bytes.Buffer, what string, o Output) {
	fmt.Fprintf(b, "> %-6s %d %s%s\n", what, o.Code, bytes.TrimSpace(o.Stdout), bytes.TrimSpace(bytes.ReplaceAll(o.Stderr, []byte("\n"), []byte(" | "))))
}

// denies reports whether an agent takes an output for a denial, as it was seen
// to behave: by what is written where the code is 0, and by code 2 alone.
func denies(agent string, o Output) bool {
	if o.Code != 0 {
		return o.Code == 2 && agent != "cline"
	}
	for _, no := range []string{`"permissionDecision":"deny"`, `"decision":"deny"`, `"decision":"block"`, `"behavior":"deny"`, `"cancel":true`, `"permission":"deny"`} {
		if bytes.Contains(o.Stdout, []byte(no)) && json.Valid(o.Stdout) {
			return true
		}
	}
	return false
}

// TestBroken hands every agent's hook what can't be read, and wants an answer
// that this agent takes for a no.
func TestBroken(t *testing.T) {
	good := `{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"},"cwd":"/p","v":"1","event":"tool_call","tool":"bash","input":{"command":"ls"}}`
	for name, in := range map[string]string{
		"nothing": "", "no JSON": "{", "two messages": good + good, "a list": "[]", "null": "null", "text": `"x"`, "a number": "7",
		"not UTF-8": "{\"cwd\":\"\xff\"}", "too long": `{"x":"` + strings.Repeat("a", MaxInput) + `"}`,
		"too deep":        strings.Repeat(`{"a":`, 200) + "1" + strings.Repeat("}", 200),
		"a member twice":  strings.Replace(good, `{`, `{"cwd":"/q",`, 1),
		"twice, below":    strings.ReplaceAll(good, `"command":"ls"`, `"command":"ls","command":"rm -rf /"`),
		"twice, escaped":  strings.ReplaceAll(good, `"command":"ls"`, `"command":"ls","comm\u0061nd":"rm -rf /"`),
		"two commands":    strings.ReplaceAll(good, `"command":"ls"`, `"command":"ls","cmd":"rm -rf /"`),
		"half a pair":     strings.ReplaceAll(good, `"ls"`, `"ls \ud800"`),
		"a NUL":           strings.ReplaceAll(good, `"ls"`, `"ls \u0000 rm"`),
		"no command":      strings.ReplaceAll(good, `"ls"`, `""`),
		"another type":    strings.ReplaceAll(good, `"ls"`, `{"a":1}`),
		"no input":        strings.ReplaceAll(good, `{"command":"ls"}`, `7`),
		"no tool":         strings.NewReplacer(`"Bash"`, `""`, `"bash"`, `""`).Replace(good),
		"relative":        strings.ReplaceAll(good, `"/p"`, `"p"`),
		"no directory":    strings.ReplaceAll(good, `"/p"`, `""`),
		"unknown event":   strings.NewReplacer("PreToolUse", "PreToolUse2", "tool_call", "tool_call2").Replace(good),
		"unknown version": strings.NewReplacer(`"v":"1"`, `"v":"2"`, "PreToolUse", "X").Replace(good),
	} {
		for _, agent := range append(Agents(), "nobody", "") {
			_, err := Read(agent, []byte(in))
			if err == nil {
				t.Errorf("%s: %s: it was read", name, agent)
				continue
			}
			if out := Broken(agent, err); !denies(agent, out) || len(out.Stderr) == 0 {
				t.Errorf("%s: %s: got %d %s, which allows", name, agent, out.Code, out.Stdout)
			}
		}
	}
	for _, agent := range []string{"claude", "codex", "qwen", "opencode", "pi"} { // the control: it can be read
		if _, err := Read(agent, []byte(good)); err != nil {
			t.Errorf("control: %s: %v", agent, err)
		}
	}
}

// TestUnsayable asks for outcomes that an agent has no words for: they deny.
func TestUnsayable(t *testing.T) {
	before := `{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"},"cwd":"/p"}`
	approve := strings.Replace(before, "PreToolUse", "PermissionRequest", 1)
	for name, test := range map[string]struct {
		agent, in string
		o         Outcome
		denied    bool
	}{
		"zero":                            {"claude", before, Outcome{}, true},
		"no verdict":                      {"claude", before, Outcome{Verdict: 7}, true},
		"Codex runs what is asked about":  {"codex", before, Outcome{Verdict: bawn.Ask}, true},
		"Claude can ask":                  {"claude", before, Outcome{Verdict: bawn.Ask}, false},
		"not where nobody is to be asked": {"claude", strings.Replace(before, "{", `{"permission_mode":"dontAsk",`, 1), Outcome{Verdict: bawn.Ask}, true},
		"Qwen ignores another command":    {"qwen", before, Outcome{Verdict: bawn.Allow, Rewritten: "x"}, true},
		"Codex, where it asks":            {"codex", approve, Outcome{Verdict: bawn.Allow, Rewritten: "x"}, true},
		"Claude takes one there":          {"claude", approve, Outcome{Verdict: bawn.Allow, Rewritten: "x"}, false},
		"control":                         {"codex", before, Outcome{Verdict: bawn.Allow, Rewritten: "x"}, false},
	} {
		c, err := Read(test.agent, []byte(test.in))
		if err != nil {
			t.Fatal(err)
		}
		if out := Answer(c, test.o); denies(test.agent, out) != test.denied {
			t.Errorf("%s: got %d %s", name, out.Code, out.Stdout)
		}
	}
	if out := Answer(Call{}, Outcome{Verdict: bawn.Allow}); out.Code != denyCode {
		t.Errorf("the zero call: got %d", out.Code)
	}
}

// TestMoved writes moves and reads them back, and takes nothing else for one.
func TestMoved(t *testing.T) {
	m := Move{Program: "/opt/my bawn/bawn", Agent: "claude", Session: "s", Workspace: "/p", Dir: "/p/it's", Covered: true, PinGit: true, Env: []string{"A=b c", "X="}, Shell: "/bin/bash", Text: "echo \"it's\"\nls ~ $HOME `id` \\ ! # *"}
	for _, m := range []Move{
		m,
		{Program: "/b", Agent: "a", Workspace: "/", Dir: "/", Shell: "/s", Text: ":"},
		{Program: "/b", Agent: "a", Session: "--covered", Workspace: "/p", Dir: "/p", Shell: "/s", Text: "ls"},
		{Program: "/b", Agent: "a", Workspace: "/p", Dir: "/p", Shell: "/s", Text: "cd -- /q || exit\nls"},
		{Program: "/b", Agent: "a", Workspace: "/p", Dir: "/p/a || exit\nid", Shell: "/s", Text: "ls"},
	} {
		got, ok := Moved(m.String())
		if d := gocmp.Diff(m, got, cmpopts.EquateEmpty()); !ok || d != "" {
			t.Errorf("%s: %v\n%s", m, ok, d)
		}
	}
	plain := Move{Program: "/b/bawn", Agent: "claude", Workspace: "/p", Dir: "/p", Shell: "/bin/bash", Text: "ls"}.String()
	if _, ok := Moved(plain); !ok {
		t.Fatalf("control: %s", plain)
	}
	for _, line := range []string{
		"", "ls", plain + " ", plain + ";id", plain + " x", strings.Replace(plain, " ls", "  ls", 1), strings.Replace(plain, "--quiet", "--rw / --quiet", 1),
		strings.Replace(plain, "ls", "l's'", 1), strings.Replace(plain, "ls", "$(id)", 1), strings.Replace(plain, "ls", "ls>x", 1), strings.Replace(plain, "/b/bawn", `/b/ba\wn`, 1),
		strings.Replace(plain, "-- ", "--provider host -- ", 1), strings.Replace(plain, "--quiet ", "", 1), plain + "\n", strings.Replace(plain, "-- ", "--pin-git --covered -- ", 1), strings.Replace(plain, "-- ", "--for-session '' -- ", 1), "a='b' " + plain,
		strings.Replace(plain, " ls", " 'cd -- /p || exit\nls'", 1), // Dir is the workspace: it is not written so
	} {
		if m, ok := Moved(line); ok {
			t.Errorf("%q was taken for %+v", line, m)
		}
	}
	if s := (Move{Text: "a\x00b"}).String(); s != "" {
		t.Errorf("a NUL: got %q", s)
	}
}

// TestSupports names what docs/reference/agents.md and "bawn init" promise.
func TestSupports(t *testing.T) {
	for _, agent := range Agents() {
		a := Supports(agent)
		if !a.Veto || a.Patience <= 0 {
			t.Errorf("%s: %+v", agent, a)
		}
	}
	if a := Supports("nobody"); a != (Abilities{}) {
		t.Errorf("nobody: %+v", a)
	}
}
