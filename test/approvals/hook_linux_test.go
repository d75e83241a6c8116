package approvals_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/hook"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// told is what an agent says to its hook before it uses a tool.
func (r *account) told(tool, input string) string {
	return fmt.Sprintf(`{"hook_event_name":"PreToolUse","session_id":"s","cwd":%q,"tool_name":%q,"tool_input":%s}`, r.Work, tool, input)
}

// A hooked is a call of a hook that goes on.
type hooked struct {
	t    *testing.T
	done chan struct{}
	out  bytes.Buffer
	took time.Duration
	code int
}

// hook calls one for Claude Code, which waits for as long as timeout says.
func (r *account) hook(timeout string, message io.Reader) *hooked {
	r.t.Helper()
	return r.hookOf("claude", timeout, message)
}

func (r *account) hookOf(agent, timeout string, message io.Reader) *hooked {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	cmd := r.Command(ctx, "bawn", "hook", agent, "--timeout", timeout)
	h := &hooked{t: r.t, done: make(chan struct{})}
	cmd.Stdin, cmd.Stdout = message, &h.out
	began := time.Now()
	check(r.t, cmd.Start())
	go func() {
		defer close(h.done)
		defer cancel()
		_ = cmd.Wait() // its code says more
		h.took, h.code = time.Since(began), cmd.ProcessState.ExitCode()
	}()
	r.t.Cleanup(func() { cancel(); <-h.done })
	return h
}

// answers waits for the answer and wants it to be one of the two.
func (h *hooked) answers(allow bool) string {
	h.t.Helper()
	<-h.done
	if h.code < 0 {
		h.t.Errorf("it hangs: killed after %v", h.took)
	}
	text := h.out.String()
	if got := strings.Contains(text, `"permissionDecision":"allow"`); got != allow || !got && h.code == 0 && !strings.Contains(text, `"permissionDecision":"deny"`) {
		h.t.Errorf("after %v: %d %s", h.took, h.code, text)
	}
	return text
}

// TestHookAsks has an unsandboxed agent's hook put a question to the human, who answers
// elsewhere, does not answer, or whose relay dies.
func TestHookAsks(t *testing.T) {
	r := newAccount(t)
	kill := r.relay()
	file := filepath.Join(r.Home, "a.go")
	write := r.told("Write", fmt.Sprintf(`{"file_path":%q,"content":"x"}`, file))

	h := r.hook("60s", strings.NewReader(write))
	r.answer("bawn", "approve", r.pending(file).ID)
	h.answers(true)

	h = r.hook("60s", strings.NewReader(write))
	r.answer("bawn", "deny", r.pending(file).ID, "--why", "use another file")
	if text := h.answers(false); !strings.Contains(text, "use another file") {
		t.Errorf("the model is not told why: %s", text)
	}

	h = r.hook("8s", strings.NewReader(write))
	r.pending(file)
	kill()
	h.answers(false)
}

// TestHooksAskAsOne has several hooks of one session of an agent's ask the same
// at once, each a process of its own: it is one question. Of another session of
// the agent's it is another.
func TestHooksAskAsOne(t *testing.T) {
	r := newAccount(t)
	r.relay()
	file := filepath.Join(r.Home, "a.go")
	write := r.told("Write", fmt.Sprintf(`{"file_path":%q,"content":"x"}`, file))
	one, two := r.hook("60s", strings.NewReader(write)), r.hook("60s", strings.NewReader(write))
	both := r.asked(file, 2)
	other := r.hook("60s", strings.NewReader(strings.Replace(write, `"session_id":"s"`, `"session_id":"t"`, 1)))
	alone := r.pending(file)
	r.answer("bawn", "approve", both.ID, "--session")
	one.answers(true)
	two.answers(true)
	r.answer("bawn", "deny", alone.ID)
	other.answers(false)
}

// TestHookIsInTime keeps a hook waiting for its message, and for its human.
func TestHookIsInTime(t *testing.T) {
	r := newAccount(t)
	silent, w, err := os.Pipe()
	check(t, err)
	defer w.Close()
	defer silent.Close()
	h := r.hook("2s", silent)
	if h.answers(false); h.took < 500*time.Millisecond {
		t.Errorf("no message: it took %v", h.took)
	}
	h = r.hook("2s", strings.NewReader(r.told("mcp__x__y", "{}")))
	if h.answers(false); h.took < 500*time.Millisecond {
		t.Errorf("no human: it took %v", h.took)
	}
	r.hook("60s", strings.NewReader(r.told("Bash", `{"command":"ls"}`))).answers(true) // the control
}

// sh runs a line as an agent would.
func (r *account) sh(line string) string {
	r.t.Helper()
	cmd := r.Command(r.t.Context(), "bawn", "-c", line)
	cmd.Path = "/bin/sh"
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Errorf("%s: %v", line, err)
	}
	return string(out)
}

// TestHookMoves runs what a hook puts in the place of an agent's command, as the
// agent would: it is what was judged, where it was judged, in a sandbox.
func TestHookMoves(t *testing.T) {
	testenv.Need(t, "make")
	r := newAccount(t)
	outside := filepath.Join(r.Home, "outside")
	recipe := "all:\n\t@pwd; echo \"[$$SECRET_TOKEN]\"; touch made; touch " + outside + " || true\n"
	check(t, os.WriteFile(filepath.Join(r.Work, "Makefile"), []byte(recipe), 0o644))
	text := r.hook("60s", strings.NewReader(r.told("Bash", `{"command":"make  && echo \"it's  done\""}`))).answers(true)
	var answer struct {
		HookSpecificOutput struct{ UpdatedInput struct{ Command string } }
	}
	check(t, json.Unmarshal([]byte(text), &answer))
	r.Env = append(r.Env, "SECRET_TOKEN=hush")
	out := r.sh(answer.HookSpecificOutput.UpdatedInput.Command)
	if !strings.Contains(out, r.Work+"\n") || !strings.Contains(out, "it's  done\n") || strings.Contains(out, "hush") {
		t.Errorf("%s: got %s", answer.HookSpecificOutput.UpdatedInput.Command, out)
	}
	if _, err := os.Stat(filepath.Join(r.Work, "made")); err != nil {
		t.Errorf("the workspace was not written: %v", err)
	}
	if _, err := os.Stat(outside); err == nil {
		t.Error("it has written outside of the workspace")
	}
	if out := r.sh("make"); !strings.Contains(out, "hush") { // the control
		t.Errorf("control: got %s", out)
	}
	if _, err := os.Stat(outside); err != nil {
		t.Errorf("control: %v", err)
	}
}

// elsewhere makes another project, and what leads there from this one.
func (r *account) elsewhere() (other string) {
	r.t.Helper()
	other = filepath.Join(filepath.Dir(r.Work), "other")
	for _, dir := range []string{other, filepath.Join(r.Work, "sub"), filepath.Join(r.Work, ".git")} {
		check(r.t, os.MkdirAll(dir, 0o755))
	}
	check(r.t, os.Symlink(other, filepath.Join(r.Work, "link")))
	return other
}

// TestHookKeepsToItsWorkspace has a model name the place where its command is to
// run, in each of the ways that there are.
func TestHookKeepsToItsWorkspace(t *testing.T) {
	r := newAccount(t)
	other := r.elsewhere()
	const text = "echo evil >f"
	own := func(workspace, dir string) string {
		m := hook.Move{Program: filepath.Join(r.Bin, "bawn"), Agent: "claude", Session: launch.HookSession("claude", "s"), Workspace: workspace, Dir: dir, Shell: "/bin/bash", Text: text}
		return r.told("Bash", fmt.Sprintf(`{"command":%q}`, m.String()))
	}
	opencode := func(dir string) string {
		return fmt.Sprintf(`{"v":"1","event":"tool.execute.before","tool":"bash","cwd":%q,"input":{"command":%q,"workdir":%q}}`, r.Work, text, dir)
	}
	gemini := func(dir string) string {
		return fmt.Sprintf(`{"hook_event_name":"BeforeTool","cwd":%q,"tool_name":"run_shell_command","tool_input":{"command":%q,"dir_path":%q}}`, r.Work, text, dir)
	}
	write := r.told("Write", `{"file_path":"f"}`)
	for name, test := range map[string]struct {
		agent, message string
		allow          bool
	}{
		"its own line, for another workspace": {"claude", own(other, other), false},
		"its own line, for another's":         {"claude", own(other, r.Work), false},
		"its own line, in another directory":  {"claude", own(r.Work, other), false},
		"its own line, in a link":             {"claude", own(r.Work, filepath.Join(r.Work, "link")), false},
		"control: its own line":               {"claude", own(r.Work, filepath.Join(r.Work, "sub")), true},
		"another directory":                   {"opencode", opencode(other), false},
		"a relative one":                      {"gemini", gemini("../other"), false},
		"the one above":                       {"gemini", gemini(".."), false},
		"a link":                              {"opencode", opencode("link"), false},
		"control: one below":                  {"opencode", opencode("sub"), true},
		"control: a relative one below":       {"gemini", gemini("./sub/.."), true},
		"the agent's own has become a link":   {"claude", strings.ReplaceAll(write, `"`+r.Work+`"`, `"`+r.Work+`/link"`), false},
		"its command, too":                    {"opencode", strings.ReplaceAll(opencode(""), r.Work, r.Work+"/link"), false},
		"control: the agent is started there": {"opencode", strings.ReplaceAll(opencode(""), r.Work, other), true},
		"control: a link of the human's own":  {"opencode", strings.ReplaceAll(opencode(""), r.Work, filepath.Join(r.Home, "mine")), true},
	} {
		if strings.Contains(name, "human's") {
			check(t, os.Symlink(r.Work, filepath.Join(r.Home, "mine")))
		}
		h := r.hookOf(test.agent, "60s", strings.NewReader(test.message))
		<-h.done
		out := h.out.String()
		if allow := !strings.Contains(out, `"deny"`); allow != test.allow || !allow && !strings.Contains(out, "out of the workspace") && !strings.Contains(out, "outside of the workspace") {
			t.Errorf("%s: %s", name, out)
		}
	}
	if _, out, _ := r.run("bawn", "audit", "query", "--json"); !strings.Contains(out, `"builtin:elsewhere"`) {
		t.Errorf("the log does not say it: %s", out)
	}
}

// TestHookIsNotMovedAway exchanges the directory of a command for a link, after
// it was judged: what may be written stays what it was.
func TestHookIsNotMovedAway(t *testing.T) {
	r := newAccount(t)
	other, sub := r.elsewhere(), filepath.Join(r.Work, "sub")
	h := r.hookOf("pi", "60s", strings.NewReader(fmt.Sprintf(`{"v":"1","event":"tool_call","tool":"bash","cwd":%q,"input":{"command":"pwd; touch made || true","workdir":"sub"}}`, r.Work)))
	<-h.done
	var answer struct{ Input struct{ Command string } }
	check(t, json.Unmarshal(h.out.Bytes(), &answer))
	line := answer.Input.Command
	if out := r.sh(line); !strings.HasPrefix(out, sub+"\n") {
		t.Errorf("%s: got %s", line, out)
	}
	if _, err := os.Stat(filepath.Join(sub, "made")); err != nil {
		t.Errorf("control: %v", err)
	}
	check(t, os.Rename(sub, sub+"-was"))
	check(t, os.Symlink(other, sub))
	out := r.sh("(" + line + ") 2>&1; true") // the session sees nothing there
	if _, err := os.Stat(filepath.Join(other, "made")); err == nil {
		t.Errorf("%s: another project was written: %s", line, out)
	}
	r.sh("cd " + sub + " && touch made") // the control
	if _, err := os.Stat(filepath.Join(other, "made")); err != nil {
		t.Errorf("control: %v", err)
	}
}

// TestHookInside has an agent's hook ask the session socket: the host
// decides, asks its human and records; what the sandbox does not let it write
// can't be had by asking.
func TestHookInside(t *testing.T) {
	r := newAccount(t)
	r.relay()
	for name, message := range map[string]string{
		"tool": r.told("mcp__x__y", "{}"), "in": r.told("Write", fmt.Sprintf(`{"file_path":%q}`, filepath.Join(r.Work, "a"))), "out": r.told("Write", `{"file_path":"/opt/bawn-test"}`),
		"look": r.told("Bash", `{"command":"ls   -l"}`), "twice": `{"cwd":"/","cwd":"/"}`,
	} {
		check(t, os.WriteFile(filepath.Join(r.Work, name+".json"), []byte(message), 0o644))
	}
	code, out, errs := r.run("bawn", "run", "-q", "--", "sh", "-c", "for m in in look out twice; do echo $m; bawn hook claude <$m.json; echo =$?; done")
	for _, want := range []string{
		"in\n" + `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"`,
		`"updatedInput":{"command":"ls -l"}`,
		"out\n" + `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny"`,
		"may not write there", "twice\n" + `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny"`, "=2\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%d: %s%s\nwant %q", code, out, errs, want)
		}
	}

	done := make(chan string)
	go func() {
		_, out, _ := r.run("bawn", "run", "-q", "--agent", "tester", "--", "sh", "-c", "bawn hook claude <tool.json")
		done <- out
	}()
	r.answer("bawn", "approve", r.pending("x/y").ID)
	if out := <-done; !strings.Contains(out, `"permissionDecision":"allow"`) {
		t.Errorf("approved: got %s", out)
	}
	if _, out, _ := r.run("bawn", "audit", "query", "--json"); !strings.Contains(out, `"agentId":"tester","resourceType":"tool","operation":"call","resource":"x/y"`) {
		t.Errorf("the log of the session does not say it: %s", out)
	}
}

// TestHookWithoutReader: where nobody reads the answer the exit code says no, also
// to what would be allowed: an agent would take silence for "go on". With a reader
// the same is answered.
func TestHookWithoutReader(t *testing.T) {
	r := newAccount(t)
	message := filepath.Join(r.Work, "message")
	for _, c := range []struct {
		tool, input, first, to string
		code                   int
	}{
		{"Bash", `{"command":"ls"}`, "", " | cat", 0},
		{"Bash", `{"command":"ls"}`, "", ">&-", 2},
		{"Bash", `{"command":"ls"}`, "", ">/dev/null", 2},
		{"Read", fmt.Sprintf(`{"file_path":%q}`, filepath.Join(r.Home, ".ssh/id")), "", ">&-", 2},
		{"Read", fmt.Sprintf(`{"file_path":%q}`, filepath.Join(r.Home, ".ssh/id")), "until [ -e closed ]; do sleep 0.01; done; ", "| (exec <&-; touch closed)", 2},
	} {
		check(t, os.WriteFile(message, []byte(r.told(c.tool, c.input)), 0o600))
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		cmd := exec.CommandContext(ctx, "/bin/bash", "-c", "{ "+c.first+r.Bin+"/bawn hook claude <"+message+"; } "+c.to+"; exit ${PIPESTATUS[0]}")
		cmd.Dir, cmd.Env = r.Work, r.Env
		out, _ := cmd.CombinedOutput() // its code says it
		cancel()
		if cmd.ProcessState.ExitCode() != c.code {
			t.Errorf("%s %s %s ends with %d, want %d: %s", c.tool, c.input, c.to, cmd.ProcessState.ExitCode(), c.code, out)
		}
	}
}
