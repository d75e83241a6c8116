// Package acp_test runs a hostile agent with an editor that carries out every request.
// Served by the editor directly, the agent reaches files and programs outside of its
// sandbox. Through `bawn acp` it does not.
package acp_test

import (
	"bufio"
	"cmp"
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

	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/bawn-dev/bawn/internal/testenv/testhome"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == testhome.GuestWord {
		os.Exit(agent(os.Args[2]))
	}
	os.Exit(testhome.Main("acp", m.Run))
}

// patience ends a command that hangs.
const patience = time.Minute

// agent waits for the prompt, makes the requests of a file, one a line, and ends the turn
// with the answers.
func agent(file string) int {
	text, err := os.ReadFile(file)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if json.Unmarshal(in.Bytes(), &m) != nil || m.Method != "session/prompt" {
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"sessionId":"s"}}`+"\n", m.ID)
			continue
		}
		var answers []string
		for i, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
			method, params, _ := strings.Cut(line, " ")
			fmt.Printf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", i, method, params)
			if !in.Scan() {
				return 1
			}
			answers = append(answers, in.Text())
		}
		all, _ := json.Marshal(answers)
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn","answers":%s}}`+"\n", m.ID, all)
	}
	return 0
}

// An account is a home and a project in it.
type account struct {
	t *testing.T
	*testhome.Account
	shown string
}

func newAccount(t *testing.T) *account {
	t.Helper()
	r := &account{t: t, Account: testhome.NewAccount(t, patience)}
	r.shown = r.Home + "/shown"
	r.Env = []string{"HOME=" + r.Home, "PATH=" + os.Getenv("PATH"), "LC_ALL=C"}
	for _, d := range []string{r.Work + "/.git/hooks", r.Work + "/sub", r.shown} {
		check(t, os.MkdirAll(d, 0o700))
	}
	r.Put(t, ".ssh/id", "the key\n", 0o600)
	r.Put(t, r.Work+"/text", "one\ntwo\n", 0o600)
	check(t, os.Symlink(r.Home+"/.ssh/id", r.Work+"/link"))
	check(t, os.Symlink(r.shown, r.Work+"/linked"))
	return r
}

var check = testhome.Check

// requests returns the agent's requests, by the name of their effect.
func (r *account) requests() []string {
	edit := func(path string) string {
		return fmt.Sprintf(`fs/write_text_file {"sessionId":"s","path":%q,"content":"written\n"}`, path)
	}
	read := func(path string) string {
		return fmt.Sprintf(`fs/read_text_file {"sessionId":"s","path":%q}`, path)
	}
	run := func(line string) string {
		return fmt.Sprintf(`terminal/create {"sessionId":"s","command":"/bin/sh","args":["-c",%q]}`, line)
	}
	return []string{
		edit(r.Work + "/new"), read(r.Work + "/text"), run("echo ran >" + r.Work + "/ran"),
		edit(r.Work + "/.git/hooks/pre-commit"), edit(r.Work + "/.envrc"), edit(r.shown + "/outside"), read(r.Home + "/.ssh/id"), read(r.Work + "/link"),
		run("echo ran >" + r.shown + "/ran; cat " + r.Home + "/.ssh/id >" + r.Work + "/stolen"),
		`_editor/open {"path":"x"}`,
		fmt.Sprintf(`terminal/create {"sessionId":"s","command":"/bin/sh","args":["-c","echo ran >by-link"],"cwd":%q}`, r.Work+"/linked"),
		fmt.Sprintf(`terminal/create {"sessionId":"s","command":"/bin/sh","args":["-c","echo ran >below"],"cwd":%q}`, r.Work+"/sub"),
	}
}

// talk acts as the editor: it starts the command line, sends a prompt, carries out the
// agent's requests, says yes to every question, and returns the agent's answers.
func (r *account) talk(line ...string) (answers []string, questions int) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	cmd := r.Command(ctx, line...)
	var errs strings.Builder
	cmd.Stderr = &errs
	in, err := cmd.StdinPipe()
	check(r.t, err)
	out, err := cmd.StdoutPipe()
	check(r.t, err)
	check(r.t, cmd.Start())
	fmt.Fprintf(in, `{"jsonrpc":"2.0","id":"a","method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":true},"terminal":true}}}
{"jsonrpc":"2.0","id":"b","method":"session/new","params":{"cwd":%q,"mcpServers":[]}}
{"jsonrpc":"2.0","id":"c","method":"session/prompt","params":{}}
`, r.Work)
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var m message
		check(r.t, json.Unmarshal(lines.Bytes(), &m))
		switch {
		case m.Method != "":
			questions += r.serve(in, &m)
		case m.Result.StopReason != "":
			answers = m.Result.Answers
			in.Close()
		}
	}
	if err := cmd.Wait(); err != nil || answers == nil {
		r.t.Errorf("%v: %s", err, &errs)
	}
	return answers, questions
}

type message struct {
	ID     json.RawMessage
	Method string
	Params struct {
		Path, Content, Command, Cwd string
		Args                        []string
	}
	Result struct {
		StopReason string
		Answers    []string
	}
}

// serve carries out a request of the agent without any check.
func (r *account) serve(in io.Writer, m *message) (asked int) {
	result := `{}`
	switch p := m.Params; m.Method {
	case "session/request_permission":
		asked, result = 1, `{"outcome":{"outcome":"selected","optionId":"allow"}}`
	case "fs/write_text_file":
		_ = os.WriteFile(p.Path, []byte(p.Content), 0o600) // the effect is looked at
	case "fs/read_text_file":
		text, _ := os.ReadFile(p.Path) // as above
		content, _ := json.Marshal(string(text))
		result = fmt.Sprintf(`{"content":%s}`, content)
	case "terminal/create":
		cmd := exec.Command(p.Command, p.Args...)
		cmd.Dir, cmd.Env = cmp.Or(p.Cwd, r.Work), []string{"HOME=" + r.Home, "PATH=" + os.Getenv("PATH")}
		_ = cmd.Run() // as above
		result = `{"terminalId":"t"}`
	}
	fmt.Fprintf(in, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, result)
	return asked
}

// effects returns which effects can be seen from outside or in the agent's answers.
func (r *account) effects(answers []string) map[string]bool {
	there := func(path string) bool { _, err := os.Stat(path); return err == nil }
	told := strings.Join(answers, "\n")
	return map[string]bool{
		"wrote in the workspace": there(r.Work + "/new"), "read in it": strings.Contains(told, `one\ntwo`), "ran a command": there(r.Work + "/ran"),
		"wrote a hook": there(r.Work + "/.git/hooks/pre-commit"), "wrote .envrc": there(r.Work + "/.envrc"), "wrote outside": there(r.shown + "/outside"),
		"read a key": strings.Contains(told, "the key"), "ran outside": there(r.shown + "/ran"), "stole the key": there(r.Work+"/stolen") && r.stolen() != "",
		"ran where a link leads": there(r.shown + "/by-link"), "ran below": there(r.Work + "/sub/below"),
	}
}

func (r *account) stolen() string {
	text, err := os.ReadFile(r.Work + "/stolen")
	check(r.t, err)
	return string(text)
}

var harmless = map[string]bool{"wrote in the workspace": true, "read in it": true, "ran a command": true, "ran below": true}

// TestEditorServesTheSandbox: an editor that says yes to everything serves an
// agent what its sandbox has, and no more. Without bawn all of it happens.
func TestEditorServesTheSandbox(t *testing.T) {
	for _, bare := range []bool{true, false} {
		r := newAccount(t)
		script := r.Work + "/script"
		check(t, os.WriteFile(script, []byte(strings.Join(r.requests(), "\n")+"\n"), 0o600))
		line := r.Guest(script)
		if !bare {
			line = append([]string{"bawn", "acp", "--"}, line...)
		}
		answers, questions := r.talk(line...)
		for what, got := range r.effects(answers) {
			if want := bare || harmless[what]; got != want {
				t.Errorf("bare %t: %s: %t\n%s", bare, what, got, strings.Join(answers, "\n"))
			}
		}
		if bare {
			continue
		}
		if len(answers) != 12 || !strings.Contains(answers[9], "-32601") || !strings.Contains(answers[6], "bawn: denied") {
			t.Errorf("the agent was told %s", strings.Join(answers, "\n"))
		}
		log := filepath.Join(r.Home, ".local/state/bawn/audit")
		if out, err := exec.Command("grep", "-rc", `"asked by":"acp"`, log).CombinedOutput(); err != nil {
			t.Errorf("the log has nothing of it: %v: %s", err, out)
		}
		t.Logf("%d questions", questions)
	}
}

// TestAgentEndsWithItsEditor: an agent that does not read its end is ended
// where its editor has gone away, with all that it has started.
func TestAgentEndsWithItsEditor(t *testing.T) {
	r := newAccount(t)
	word := fmt.Sprintf("9876%d", os.Getpid())
	for _, gone := range []bool{false, true} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		cmd := r.Command(ctx, "bawn", "acp", "--net", "none", "--", "sleep", word)
		in, err := cmd.StdinPipe()
		check(t, err)
		check(t, cmd.Start())
		testenv.Until(t, "the agent", func() bool { return sleeps(word) })
		if !gone { // the control: it goes on as long as its editor does
			time.Sleep(8 * time.Second)
			if !sleeps(word) {
				t.Error("the agent has ended beside its editor")
			}
		}
		check(t, in.Close())
		_ = cmd.Wait() // the process table says it
		cancel()
		if code := cmd.ProcessState.ExitCode(); code != 128+15 {
			t.Errorf("exit code %d", code)
		}
		testenv.Until(t, "the agent's end", func() bool { return !sleeps(word) })
	}
}

// sleeps reports whether a process of the test's agent with this word runs.
func sleeps(word string) bool {
	list, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range list {
		text, _ := os.ReadFile(name) // it may have ended
		if string(text) == "sleep\x00"+word+"\x00" {
			return true
		}
	}
	return false
}
