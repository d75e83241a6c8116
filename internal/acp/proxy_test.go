package acp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/testenv"
)

const workspace = "/home/ada/app"

// A rig is a proxy with both its ends in the test's hands.
type rig struct {
	t              *testing.T
	editor, agent  *end
	mu             sync.Mutex
	checked        []bawn.Action
	verdict        map[string]bawn.Verdict // by resource; others ask
	ran, terminals [][]string
	notes          []string
	done           chan error
	proxy          *Proxy
	permitted      []bawn.Action
}

// An end is one side of the conversation.
type end struct {
	t   *testing.T
	in  *bufio.Scanner
	out io.WriteCloser
}

func newRig(t *testing.T, verdict map[string]bawn.Verdict) *rig {
	t.Helper()
	r := &rig{t: t, verdict: verdict, done: make(chan error, 1)}
	editorIn, toProxy1 := io.Pipe()
	fromProxy1, editorOut := io.Pipe()
	agentIn, toProxy2 := io.Pipe()
	fromProxy2, agentOut := io.Pipe()
	r.editor, r.agent = newEnd(t, fromProxy1, toProxy1), newEnd(t, fromProxy2, toProxy2)
	p := New(Options{Workspace: workspace, Check: r.check, Terminal: r.terminal, Permitted: r.permit, Run: r.run, Note: r.note}, editorIn, editorOut, agentIn, agentOut)
	r.proxy = p
	go func() { r.done <- p.Serve(context.Background(), func() { agentOut.Close() }) }()
	t.Cleanup(func() {
		toProxy1.Close()
		toProxy2.Close()
		fromProxy1.Close()
		fromProxy2.Close()
		testenv.Receive(t, "the end of the proxy", r.done)
	})
	return r
}

func newEnd(t *testing.T, in io.Reader, out io.WriteCloser) *end {
	s := bufio.NewScanner(in)
	s.Buffer(nil, MaxMessage+1024)
	return &end{t, s, out}
}

// check is a policy of the test's: what is not named asks.
func (r *rig) check(ctx context.Context, a bawn.Action, vague bool, human bawn.Approver) bawn.Decision {
	r.mu.Lock()
	r.checked = append(r.checked, a)
	v, ok := r.verdict[a.Resource]
	r.mu.Unlock()
	if !ok || vague && v == bawn.Allow {
		v = bawn.Ask
	}
	d := bawn.Decision{Verdict: v, Reason: "because", Rule: "test"}
	if v != bawn.Ask {
		return d
	}
	answer, err := human.Approve(ctx, a, d)
	if err != nil {
		return bawn.Denied("nobody answered: "+err.Error(), "guard")
	}
	return bawn.Decision{Verdict: answer.Verdict, Reason: answer.Denial(), Rule: "human"}
}

func (r *rig) terminal(dir string, env, argv []string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.terminals = append(r.terminals, append([]string{dir}, argv...))
	return append([]string{"/bawn", "run", "--"}, argv...)
}

func (r *rig) run(_ context.Context, input string, limit int, argv ...string) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ran = append(r.ran, append(argv, input))
	if argv[len(argv)-1] == "/home/ada/app/absent" {
		return "", nil
	}
	if argv[len(argv)-1] == "/home/ada/app/broken" {
		return "", errors.New("input/output error")
	}
	return found + "one\ntwo\nthree\n", nil
}

func (r *rig) note(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notes = append(r.notes, text)
}

func (e *end) say(format string, a ...any) {
	e.t.Helper()
	if _, err := fmt.Fprintf(e.out, format+"\n", a...); err != nil {
		e.t.Fatal(err)
	}
}

func (e *end) hear() map[string]any {
	e.t.Helper()
	heard := make(chan map[string]any, 1)
	go func() {
		var m map[string]any
		if e.in.Scan() {
			if err := json.Unmarshal(e.in.Bytes(), &m); err != nil {
				m = map[string]any{"unreadable": e.in.Text()}
			}
		}
		heard <- m
	}()
	return testenv.Receive(e.t, "what is said", heard)
}

// at follows keys into what JSON holds.
func at(m any, keys ...string) any {
	for _, k := range keys {
		o, _ := m.(map[string]any)
		m = o[k]
	}
	return m
}

const offered = `[{"optionId":"always","name":"Always","kind":"allow_always"},{"optionId":"once","name":"Once","kind":"allow_once"},{"optionId":"no","name":"No","kind":"reject_once"}]`

func (r *rig) wants(call string) {
	r.agent.say(`{"jsonrpc":"2.0","id":"p1","method":"session/request_permission","params":{"sessionId":"s","toolCall":%s,"options":%s}}`, call, offered)
}

func execute(command string) string {
	return fmt.Sprintf(`{"toolCallId":"c1","title":"run it","kind":"execute","rawInput":{"command":%q}}`, command)
}

// What the policy allows or denies is answered without the human.
func TestPolicyAnswers(t *testing.T) {
	for command, want := range map[string]string{"git status": "once", "rm -rf /": "no"} {
		r := newRig(t, map[string]bawn.Verdict{"git status": bawn.Allow, "rm -rf /": bawn.Deny})
		r.wants(execute(command))
		if got := r.agent.hear(); at(got, "result", "outcome", "optionId") != want || got["id"] != "p1" {
			t.Errorf("%s: %v", command, got)
		}
		// nothing was said to the editor: the next thing it hears is this
		r.agent.say(`{"jsonrpc":"2.0","method":"session/update","params":{"x":1}}`)
		if got := r.editor.hear(); got["method"] != "session/update" {
			t.Errorf("%s: the editor was asked: %v", command, got)
		}
	}
}

// Where the policy asks, the human at the editor decides, is told why, and is
// offered nothing that holds longer than once.
func TestHumanAnswers(t *testing.T) {
	for option, want := range map[string]string{"once": "once", "no": "no", "always": "no", "other": "no"} {
		r := newRig(t, nil)
		r.wants(execute("make deploy"))
		q := r.editor.hear()
		options, _ := json.Marshal(at(q, "params", "options"))
		if strings.Contains(string(options), "always") || !strings.Contains(fmt.Sprint(at(q, "params", "toolCall", "title")), "bawn: because") {
			t.Errorf("the editor was asked %v", q)
		}
		r.editor.say(`{"jsonrpc":"2.0","id":%v,"result":{"outcome":{"outcome":"selected","optionId":%q}}}`, q["id"], option)
		got := r.agent.hear()
		if at(got, "result", "outcome", "optionId") != want {
			t.Errorf("%s: %v", option, got)
		}
		if want == "no" && at(got, "result", "_meta", "by") != "bawn" {
			t.Errorf("%s: no reason in %v", option, got)
		}
	}
}

func TestCancelledTurn(t *testing.T) {
	r := newRig(t, nil)
	r.wants(execute("make deploy"))
	q := r.editor.hear()
	r.editor.say(`{"jsonrpc":"2.0","id":%v,"result":{"outcome":{"outcome":"cancelled"}}}`, q["id"])
	if got := r.agent.hear(); at(got, "result", "outcome", "outcome") != "cancelled" {
		t.Errorf("%v", got)
	}
}

// An agent that does not say what it will do is never allowed by a rule alone.
func TestVagueCallsAsk(t *testing.T) {
	for _, call := range []string{
		`{"toolCallId":"c","title":"git status","kind":"execute"}`,
		`{"toolCallId":"c","title":"x","kind":"execute","rawInput":{"command":{"a":1}}}`,
		`{"toolCallId":"c","title":"x","kind":"edit"}`,
		`{"toolCallId":"c","title":"x","kind":"switch_mode"}`,
		`{"toolCallId":"c","title":"x"}`,
	} {
		r := newRig(t, map[string]bawn.Verdict{"git status": bawn.Allow, "x": bawn.Allow, "acp/other": bawn.Allow, "acp/edit": bawn.Allow, "acp/switch_mode": bawn.Allow})
		r.wants(call)
		if q := r.editor.hear(); q["method"] != "session/request_permission" {
			t.Errorf("%s: %v", call, q)
		}
	}
}

// Members that two readers could take for different ones gain nothing.
func TestTwoReadings(t *testing.T) {
	for _, call := range []string{
		`{"toolCallId":"c","title":"x","kind":"execute","rawInput":{"command":"rm -rf /","Command":"git status"}}`,
		`{"toolCallId":"c","title":"x","kind":"execute","rawInput":{"command":"rm -rf /","command":"git status"}}`,
	} {
		r := newRig(t, map[string]bawn.Verdict{"git status": bawn.Allow, "rm -rf /": bawn.Deny})
		r.wants(call)
		if got := r.agent.hear(); got["error"] == nil && at(got, "result", "outcome", "optionId") != "no" {
			t.Errorf("%s: %v", call, got)
		}
	}
}

// All that a call is about is decided: one path that is denied denies it.
func TestEveryPathCounts(t *testing.T) {
	r := newRig(t, map[string]bawn.Verdict{"/home/ada/app/a": bawn.Allow, "/home/ada/app/.git/hooks/x": bawn.Deny})
	r.wants(`{"toolCallId":"c","title":"edit a","kind":"edit","locations":[{"path":"/home/ada/app/a"}],"content":[{"type":"diff","path":"/home/ada/app/.git/hooks/x"}],"rawInput":{"file_path":"/home/ada/app/a"}}`)
	if got := r.agent.hear(); at(got, "result", "outcome", "optionId") != "no" {
		t.Errorf("%v", got)
	}
}

// Files are read and written by a program in a sandbox.
func TestFiles(t *testing.T) {
	r := newRig(t, map[string]bawn.Verdict{"/home/ada/app/a": bawn.Allow, "/home/me/.ssh/id": bawn.Deny, "/home/ada/app/absent": bawn.Allow, "/home/ada/app/broken": bawn.Allow})
	for _, step := range []struct{ say, want string }{
		{`"fs/read_text_file","params":{"sessionId":"s","path":"/home/ada/app/a"}`, "one\ntwo\nthree\n"},
		{`"fs/read_text_file","params":{"sessionId":"s","path":"/home/ada/app/a","line":2,"limit":1}`, "two\n"},
		{`"fs/read_text_file","params":{"sessionId":"s","path":"/home/ada/app/a","line":9}`, ""},
	} {
		r.agent.say(`{"jsonrpc":"2.0","id":1,"method":%s}`, step.say)
		if got := at(r.agent.hear(), "result", "content"); got != step.want {
			t.Errorf("%s: %v", step.say, got)
		}
	}
	for _, say := range []string{
		`"fs/read_text_file","params":{"sessionId":"s","path":"/home/me/.ssh/id"}`, `"fs/write_text_file","params":{"sessionId":"s","path":"/home/me/.ssh/id","content":"x"}`,
		`"fs/read_text_file","params":{"sessionId":"s","path":"a"}`, `"fs/read_text_file","params":{"sessionId":"s","path":"/home/ada/app/broken"}`, `"fs/read_text_file","params":7`,
	} {
		r.agent.say(`{"jsonrpc":"2.0","id":1,"method":%s}`, say)
		if got := r.agent.hear(); at(got, "error", "message") == nil {
			t.Errorf("%s: %v", say, got)
		}
	}
	r.agent.say(`{"jsonrpc":"2.0","id":1,"method":"fs/read_text_file","params":{"sessionId":"s","path":"/home/ada/app/absent"}}`)
	if got := at(r.agent.hear(), "error", "code"); got != float64(codeAbsent) { // or agents make no new file
		t.Errorf("a file that is not there: %v", got)
	}
	r.agent.say(`{"jsonrpc":"2.0","id":1,"method":"fs/write_text_file","params":{"sessionId":"s","path":"/home/ada/app/a","content":"new"}}`)
	if got := r.agent.hear(); got["error"] != nil {
		t.Errorf("%v", got)
	}
	want := []string{"/bin/sh", "-c", write, "sh", "/home/ada/app/a", "new"}
	if d := cmp.Diff(want, r.ran[len(r.ran)-1]); d != "" || len(r.ran) != 6 {
		t.Errorf("%d programs ran; the last differs: %s", len(r.ran), d)
	}
}

// A terminal's command is judged with its variables, and what the editor starts
// is a sandbox with exactly that in it.
func TestTerminals(t *testing.T) {
	r := newRig(t, map[string]bawn.Verdict{"/bin/sh -c ls": bawn.Allow, "env -- A=1 go test ./...": bawn.Allow, "env -- A=1 /bin/sh -c ls": bawn.Deny})
	for say, want := range map[string]string{
		`{"sessionId":"s","command":"ls"}`: "run -- /bin/sh -c ls",
		`{"sessionId":"s","command":"go","args":["test","./..."],"env":[{"name":"A","value":"1"}],"cwd":"/home/ada/app/x"}`: "run -- env -- A=1 go test ./...",
	} {
		r.agent.say(`{"jsonrpc":"2.0","id":1,"method":"terminal/create","params":%s}`, say)
		q := r.editor.hear()
		if got := fmt.Sprint(at(q, "params", "args")); got != "["+want+"]" || at(q, "params", "command") != "/bawn" || at(q, "params", "env") != nil || at(q, "params", "cwd") != workspace {
			t.Errorf("%s: %v", say, q)
		}
		r.editor.say(`{"jsonrpc":"2.0","id":%v,"result":{"terminalId":"t1"}}`, q["id"])
		if got := r.agent.hear(); at(got, "result", "terminalId") != "t1" {
			t.Errorf("%s: %v", say, got)
		}
	}
	for at, own := range map[string]bool{`"sessionId":"s","terminalId":"t1"`: true, `"sessionId":"s","terminalId":"t2"`: false, `"sessionId":"other","terminalId":"t1"`: false} {
		r.agent.say(`{"jsonrpc":"2.0","id":1,"method":"terminal/output","params":{%s}}`, at)
		if own {
			r.editor.say(`{"jsonrpc":"2.0","id":%v,"result":{"output":"x"}}`, r.editor.hear()["id"])
		}
		if got := r.agent.hear(); (got["error"] == nil) != own {
			t.Errorf("%s: %v", at, got)
		}
	}
	for _, say := range []string{
		`{"sessionId":"s","command":"ls","env":[{"name":"A","value":"1"}]}`, `{"sessionId":"s","command":"ls","cwd":"/etc"}`, `{"sessionId":"s","command":"ls","cwd":"/home/ada/app/../etc"}`,
		`{"sessionId":"s","command":""}`, `{"sessionId":"s","command":"a\u0000b"}`, `{"sessionId":"s","command":"ls","env":[{"name":"A=B","value":"1"}]}`,
	} {
		r.agent.say(`{"jsonrpc":"2.0","id":1,"method":"terminal/create","params":%s}`, say)
		if got := r.agent.hear(); at(got, "error", "message") == nil {
			t.Errorf("%s: %v", say, got)
		}
	}
}

// What is not known does not reach the editor, and nobody answers for another.
func TestUnknownIsRefused(t *testing.T) {
	r := newRig(t, nil)
	for _, say := range []string{`{"jsonrpc":"2.0","id":1,"method":"_editor/run_task","params":{}}`, `{"jsonrpc":"2.0","id":{"a":1},"method":"session/update"}`, `no JSON`, `{"jsonrpc":"1.0","id":1,"method":"x"}`} {
		r.agent.say("%s", say)
		if say[0] == '{' && strings.Contains(say, `"id":{`) {
			continue // it can't be answered
		}
		if got := r.agent.hear(); at(got, "error", "code") == nil {
			t.Errorf("%s: %v", say, got)
		}
	}
	r.agent.say(`{"jsonrpc":"2.0","method":"_editor/notice"}`)
	r.agent.say(`{"jsonrpc":"2.0","id":7,"result":{}}`) // nobody asked
	r.editor.say(`{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{}}`)
	r.agent.hear()
	r.agent.say(`{"jsonrpc":"2.0","id":1,"result":{"stopReason":"end_turn"}}`)
	if got := r.editor.hear(); at(got, "result", "stopReason") != "end_turn" {
		t.Errorf("the editor heard %v", got)
	}
}

// The editor's side: capabilities say what is served here, and a session
// outside of the workspace is refused before the agent hears of it.
func TestEditorIsAdapted(t *testing.T) {
	r := newRig(t, nil)
	r.editor.say(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"terminal":true},"clientInfo":{"name":"e"}}}`)
	got := r.agent.hear()
	if at(got, "params", "clientCapabilities", "fs", "writeTextFile") != true || at(got, "params", "clientCapabilities", "terminal") != true || at(got, "params", "clientInfo", "name") != "e" {
		t.Errorf("%v", got)
	}
	for _, cwd := range []string{"/elsewhere", "/home/ada/app/../elsewhere", "", "/home/ada/apps"} {
		r.editor.say(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":%q}}`, cwd)
		if got := r.editor.hear(); !strings.Contains(fmt.Sprint(at(got, "error", "message")), "outside of the workspace") {
			t.Errorf("%q: %v", cwd, got)
		}
	}
	r.editor.say(`{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/home/ada/app/sub"}}`)
	if got := r.agent.hear(); got["method"] != "session/new" {
		t.Errorf("%v", got)
	}
}

// An editor that goes away leaves no question open, and the agent is told.
func TestEditorGone(t *testing.T) {
	r := newRig(t, nil)
	r.wants(execute("make deploy"))
	r.editor.hear()
	r.editor.out.Close()
	for got := r.agent.hear(); got != nil; got = r.agent.hear() { // up to the end
		if at(got, "result", "outcome", "optionId") != "no" {
			t.Errorf("%v", got)
		}
	}
}

// An agent that asks too much at once is refused, and served again later.
func TestFlood(t *testing.T) {
	r := newRig(t, nil)
	for i := range maxOpen {
		r.agent.say(`{"jsonrpc":"2.0","id":%d,"method":"session/request_permission","params":{"sessionId":"s","toolCall":%s,"options":%s}}`, i, strings.Replace(execute("x"), "c1", fmt.Sprint("d", i), 1), offered)
		r.editor.hear()
	}
	r.wants(execute("y"))
	if got := r.agent.hear(); at(got, "error", "message") == nil {
		t.Errorf("%v", got)
	}
}

func FuzzMessages(f *testing.F) {
	for _, s := range []string{`{"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":{"toolCall":` + execute("ls") + `,"options":` + offered + `}}`, `{"jsonrpc":"2.0","id":"x","result":{}}`, `[]`, `{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":""}}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		m, err := read([]byte(line))
		if err != nil {
			return
		}
		if m.request() == m.response() && m.Method == "" {
			t.Fatalf("%q is neither a request nor a response", line)
		}
		var q permission
		var call toolCall
		if json.Unmarshal(m.Params, &q) != nil || json.Unmarshal(q.ToolCall, &call) != nil {
			return
		}
		claims := call.claims(workspace)
		if len(claims) == 0 {
			t.Fatalf("%q amounts to nothing", line)
		}
		for _, c := range claims {
			if !c.Valid() {
				t.Fatalf("%q: %+v is no action", line, c)
			}
		}
		if id := choose(passing(q.Options), allowAlways); id != "" {
			t.Fatalf("%q: the human is offered %q", line, id)
		}
	})
}
