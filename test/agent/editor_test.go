package agent_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// An editor speaks the Agent Client Protocol without any check of its own. It opens a
// session, sends a prompt, and writes files and starts programs as the agent asks. It says
// yes to every question, unless refuses matches it.
type editor struct {
	y       *account
	refuses []string // of what the human says no to, a part

	mu       sync.Mutex
	in       io.Writer
	number   int
	answers  map[int]chan said
	asked    []string // of the human
	served   []string // methods that the agent has called
	trace    []string
	commands map[string]*exec.Cmd
	outputs  map[string]*bytes.Buffer
}

// said is any message of the protocol.
type said struct {
	ID     json.RawMessage
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  *struct{ Message string }
}

// params are those of the requests that are served.
type params struct {
	Path, Content, Command, Cwd, TerminalID string
	Args                                    []string
	Env                                     []struct{ Name, Value string }
	ToolCall                                json.RawMessage
	Options                                 []struct{ OptionID, Kind string }
}

// work has the agent do the task and ends it. It returns how the turn ended.
func (e *editor) work(t *testing.T, argv ...string) {
	t.Helper()
	e.answers, e.commands, e.outputs = map[int]chan said{}, map[string]*exec.Cmd{}, map[string]*bytes.Buffer{}
	cmd := e.y.cmd(t.Context(), argv...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	in, err := cmd.StdinPipe()
	check(t, err)
	out, err := cmd.StdoutPipe()
	check(t, err)
	check(t, cmd.Start())
	timer := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	e.in = in
	var reader sync.WaitGroup
	reader.Go(func() { e.read(out) })
	stop, err := e.turn()
	check(t, in.Close())
	reader.Wait()
	_ = cmd.Wait() // most are ended by a signal
	t.Logf("ended: %q, %v; asked %q; served %q\n%s", stop, err, e.asked, e.served, &errs)
	if err != nil {
		t.Errorf("%v\n%s", err, strings.Join(e.trace, "\n"))
	}
	for _, r := range e.y.told(t) {
		if r.Result != "" {
			t.Logf("step %d gave %.300s", r.Step-1, r.Result)
		}
	}

}

// turn is a conversation.
func (e *editor) turn() (string, error) {
	caps := map[string]any{"fs": map[string]bool{"writeTextFile": true}, "terminal": true}
	if _, err := e.call("initialize", map[string]any{"protocolVersion": 1, "clientCapabilities": caps, "clientInfo": map[string]string{"name": "tests", "version": "1"}}); err != nil {
		return "", err
	}
	session, err := e.call("session/new", map[string]any{"cwd": e.y.work, "mcpServers": []string{}})
	if err != nil {
		return "", err
	}
	var s struct{ SessionID, StopReason string }
	if err := json.Unmarshal(session, &s); err != nil {
		return "", err
	}
	end, err := e.call("session/prompt", map[string]any{"sessionId": s.SessionID, "prompt": []map[string]string{{"type": "text", "text": "please do the task"}}})
	if err == nil {
		err = json.Unmarshal(end, &s)
	}
	return s.StopReason, err
}

// call asks the agent.
func (e *editor) call(method string, params any) (json.RawMessage, error) {
	answer := make(chan said, 1)
	e.mu.Lock()
	e.number++
	id := e.number
	gone := e.answers == nil
	if !gone {
		e.answers[id] = answer
	}
	e.mu.Unlock()
	if gone {
		return nil, fmt.Errorf("%s: the agent has ended", method)
	}
	e.send(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	m, ok := <-answer
	switch {
	case !ok:
		return nil, fmt.Errorf("%s: the agent is gone", method)
	case m.Error != nil:
		return nil, fmt.Errorf("%s: %s", method, m.Error.Message)
	}
	return m.Result, nil
}

func (e *editor) send(m any) {
	text, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	_, _ = e.in.Write(append(text, '\n')) // an agent that is gone is seen by its answers
}

// read serves the agent until it has no more to say.
func (e *editor) read(out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 8<<20)
	for lines.Scan() {
		e.trace = append(e.trace, lines.Text()[:min(len(lines.Text()), 600)])
		var m said
		var id int
		switch {
		case json.Unmarshal(lines.Bytes(), &m) != nil, m.Method != "" && len(m.ID) == 0: // news
		case m.Method != "":
			go e.serve(&m)
		case json.Unmarshal(m.ID, &id) == nil:
			e.mu.Lock()
			if c := e.answers[id]; c != nil {
				c <- m
			}
			delete(e.answers, id)
			e.mu.Unlock()
		}
	}
	e.mu.Lock()
	for _, c := range e.answers {
		close(c)
	}
	e.answers = nil
	e.mu.Unlock()
}

// serve does what the agent asks for.
func (e *editor) serve(m *said) {
	var p params
	result, err := any(struct{}{}), json.Unmarshal(m.Params, &p)
	if err == nil {
		e.mu.Lock()
		if e.served = append(e.served, m.Method); len(e.served) > 0 {
			slices.Sort(e.served)
			e.served = slices.Compact(e.served)
		}
		e.mu.Unlock()
		result, err = e.do(m.Method, &p)
	}
	answer := map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": result}
	if err != nil {
		delete(answer, "result")
		answer["error"] = map[string]any{"code": code(err), "message": err.Error()}
	}
	e.send(answer)
}

// code is the protocol's for an error.
func code(err error) int {
	if errors.Is(err, fs.ErrNotExist) {
		return -32002
	}
	return -32603
}

func (e *editor) do(method string, p *params) (any, error) {
	switch method {
	case "session/request_permission":
		return e.permit(p), nil
	case "fs/write_text_file":
		return struct{}{}, os.WriteFile(p.Path, []byte(p.Content), 0o600)
	case "fs/read_text_file":
		text, err := os.ReadFile(p.Path)
		return map[string]string{"content": string(text)}, err
	case "terminal/create":
		return e.start(p)
	case "terminal/output", "terminal/wait_for_exit":
		return e.terminal(method, p)
	case "terminal/kill", "terminal/release":
		return struct{}{}, nil
	}
	return nil, fmt.Errorf("%s is not known", method)
}

// permit answers as the human does.
func (e *editor) permit(p *params) any {
	kind := "allow_once"
	e.mu.Lock()
	e.asked = append(e.asked, string(p.ToolCall))
	e.mu.Unlock()
	if slices.ContainsFunc(e.refuses, func(part string) bool { return strings.Contains(string(p.ToolCall), part) }) {
		kind = "reject_once"
	}
	for _, o := range p.Options {
		if o.Kind == kind {
			return map[string]any{"outcome": map[string]string{"outcome": "selected", "optionId": o.OptionID}}
		}
	}
	return map[string]any{"outcome": map[string]string{"outcome": "cancelled"}}
}

// about counts the questions that hold a text.
func (e *editor) about(text string) (n int) {
	for _, q := range e.asked {
		if strings.Contains(q, text) {
			n++
		}
	}
	return n
}

// start starts a terminal, as an editor does: outside of every sandbox.
func (e *editor) start(p *params) (any, error) {
	cmd := exec.Command(p.Command, p.Args...)
	if len(p.Args) == 0 {
		cmd = exec.Command("/bin/sh", "-c", p.Command)
	}
	cmd.Dir, cmd.Env = e.y.work, []string{"HOME=" + e.y.home, "PATH=" + os.Getenv("PATH")}
	if p.Cwd != "" {
		cmd.Dir = p.Cwd
	}
	for _, v := range p.Env {
		cmd.Env = append(cmd.Env, v.Name+"="+v.Value)
	}
	out := &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	id := fmt.Sprintf("terminal-%d", len(e.commands))
	e.commands[id], e.outputs[id] = cmd, out
	return map[string]string{"terminalId": id}, nil
}

// terminal waits for a terminal.
func (e *editor) terminal(method string, p *params) (any, error) {
	e.mu.Lock()
	cmd, out := e.commands[p.TerminalID], e.outputs[p.TerminalID]
	e.mu.Unlock()
	if cmd == nil {
		return nil, fmt.Errorf("%q is no terminal", p.TerminalID)
	}
	_ = cmd.Wait() // its code is told; a second time it has none to add
	status := map[string]int{"exitCode": cmd.ProcessState.ExitCode()}
	if method == "terminal/wait_for_exit" {
		return status, nil
	}
	return map[string]any{"output": out.String(), "truncated": false, "exitStatus": status}, nil
}
