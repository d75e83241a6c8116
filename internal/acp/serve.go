package acp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/fspath"
	"github.com/bawn-dev/bawn/internal/hook"
	"github.com/bawn-dev/bawn/internal/redact"
)

// adapt changes what the editor says where the agent's sandbox makes it untrue.
func (p *Proxy) adapt(m *message) (json.RawMessage, *Failure) {
	switch m.Method {
	case "initialize":
		return p.capabilities(m.Params)
	case "session/new", "session/load", "session/resume":
		return m.Params, p.within(m.Params)
	}
	return m.Params, nil
}

// capabilities says that files are served: here, not by the editor.
func (p *Proxy) capabilities(params json.RawMessage) (json.RawMessage, *Failure) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(params, &all); err != nil {
		return nil, &Failure{Code: codeParams, Message: "bawn: initialize: " + err.Error()}
	}
	caps := map[string]json.RawMessage{}
	if c, ok := all["clientCapabilities"]; ok {
		if err := json.Unmarshal(c, &caps); err != nil {
			return nil, &Failure{Code: codeParams, Message: "bawn: clientCapabilities: " + err.Error()}
		}
	}
	caps["fs"] = json.RawMessage(fmt.Sprintf(`{"readTextFile":%t,"writeTextFile":true}`, !p.opts.OwnReads))
	text, err := json.Marshal(caps)
	if err == nil {
		all["clientCapabilities"] = text
		text, err = json.Marshal(all)
	}
	if err != nil {
		return nil, &Failure{Code: codeInternal, Message: err.Error()}
	}
	return text, nil
}

// within refuses a session outside of the workspace, where the agent could see
// but not work.
func (p *Proxy) within(params json.RawMessage) *Failure {
	var s struct {
		Cwd string `json:"cwd"`
	}
	if err := json.Unmarshal(params, &s); err != nil {
		return &Failure{Code: codeParams, Message: "bawn: " + err.Error()}
	}
	if !fspath.Below(filepath.Clean(s.Cwd), p.opts.Workspace) {
		return &Failure{Code: codeParams, Message: fmt.Sprintf("bawn: the session's directory %q is outside of the workspace %q; start \"bawn acp\" in that project, or with --cwd", s.Cwd, p.opts.Workspace)}
	}
	return nil
}

// serve does what the agent asks of its client, or refuses.
func (p *Proxy) serve(ctx context.Context, m *message) (any, error) {
	switch m.Method {
	case "session/request_permission":
		return serve(ctx, m, p.permission)
	case "fs/read_text_file":
		return serve(ctx, m, p.readFile)
	case "fs/write_text_file":
		return serve(ctx, m, p.writeFile)
	case "terminal/create":
		return serve(ctx, m, p.terminal)
	case "terminal/output", "terminal/wait_for_exit", "terminal/kill", "terminal/release":
		return serve(ctx, m, func(ctx context.Context, r *ownTerminal) (any, error) { return p.ofTerminal(ctx, m, r) })
	}
	p.note(fmt.Sprintf("the agent asked for %.60q, which is not known and was refused", m.Method))
	return nil, &Failure{Code: codeMethod, Message: fmt.Sprintf("bawn: %.60q is not known here; do without", m.Method)}
}

func serve[T any](ctx context.Context, m *message, f func(context.Context, *T) (any, error)) (any, error) {
	var params T
	err := hook.Strict(m.Params) // what is judged is what the agent and the editor read
	if err == nil {
		err = json.Unmarshal(m.Params, &params)
	}
	if err != nil {
		return nil, &Failure{Code: codeParams, Message: "bawn: " + err.Error()}
	}
	return f(ctx, &params)
}

// permission decides what the agent asks a human for. The human is asked where
// the policy says so, once for all that the call amounts to.
func (p *Proxy) permission(ctx context.Context, q *permission) (any, error) {
	var call toolCall
	err := exact(q.ToolCall) // the editor is shown what is judged
	if err == nil {
		err = json.Unmarshal(q.ToolCall, &call)
	}
	if err != nil {
		return nil, &Failure{Code: codeParams, Message: "bawn: toolCall: " + err.Error()}
	}
	if id := idOf(q.ToolCall); strings.HasPrefix(id, ownCall) {
		return nil, &Failure{Code: codeParams, Message: fmt.Sprintf("bawn: toolCall: the ID %.40q is one of Bawn's own; want another", id)}
	}
	claims := call.claims(p.opts.Workspace)
	h := &human{proxy: p, params: permission{q.SessionID, shown(q.ToolCall, claims, p.opts.Workspace), passing(q.Options)}}
	for _, c := range claims {
		d := p.opts.Check(ctx, c.Action, c.vague, h)
		if d.Verdict != bawn.Allow {
			return h.rejection(q.Options, d), nil
		}
	}
	chosen := h.chosen
	if chosen != "" {
		for _, c := range claims {
			if !c.vague {
				p.opts.Permitted(c.Action)
			}
		}
	} else {
		chosen = choose(q.Options, allowOnce, allowAlways)
	}
	if chosen == "" {
		return outcome{Outcome: selected{Outcome: "cancelled"}}, nil
	}
	return outcome{Outcome: selected{"selected", chosen}}, nil
}

// A human is the user of the editor, who is asked at most once for one call.
type human struct {
	proxy     *Proxy
	params    permission
	answered  bool
	answer    bawn.Answer
	err       error
	chosen    string // the option, by its ID
	cancelled bool
}

// Approve asks at the editor. An error denies.
func (h *human) Approve(ctx context.Context, _ bawn.Action, d bawn.Decision) (bawn.Answer, error) {
	if !h.answered {
		h.answered = true
		h.answer, h.err = h.ask(ctx, d)
	}
	return h.answer, h.err
}

func (h *human) ask(ctx context.Context, d bawn.Decision) (bawn.Answer, error) {
	if len(h.params.Options) == 0 {
		return bawn.Answer{}, errors.New("the agent offers no answer that holds once")
	}
	params := h.params
	params.ToolCall = explained(params.ToolCall, d.Reason)
	thaw, err := h.proxy.freeze(params.ToolCall)
	if err != nil {
		return bawn.Answer{}, err
	}
	defer thaw()
	text, err := h.proxy.ask(ctx, "session/request_permission", params)
	if err != nil {
		return bawn.Answer{}, err
	}
	var o outcome
	if err := json.Unmarshal(text, &o); err != nil {
		return bawn.Answer{}, fmt.Errorf("the editor's answer: %w", err)
	}
	a := bawn.Answer{Verdict: bawn.Deny, Scope: bawn.Once, By: "editor"}
	switch {
	case o.Outcome.Outcome == "cancelled":
		h.cancelled = true
		return bawn.Answer{}, errors.New("the turn was cancelled")
	case o.Outcome.Outcome != "selected":
		return bawn.Answer{}, fmt.Errorf("the editor's answer is %.40q; want \"selected\" or \"cancelled\"", o.Outcome.Outcome)
	}
	for _, option := range h.params.Options {
		if option.OptionID == o.Outcome.OptionID {
			h.chosen = option.OptionID
			if option.Kind == allowOnce {
				a.Verdict = bawn.Allow
			}
			return a, nil
		}
	}
	return bawn.Answer{}, errors.New("the editor chose what was not offered")
}

// shown is a call as the human reads it: with the text that is judged instead of
// the agent's description, and without what the agent shows beside a command.
func shown(call json.RawMessage, claims []claim, workspace string) json.RawMessage {
	var all map[string]json.RawMessage
	if json.Unmarshal(call, &all) != nil {
		return call
	}
	var words []string
	for _, c := range claims {
		if c.vague {
			return call
		}
		if c.Kind == bawn.Command {
			delete(all, "content")
		}
		word := titleOf(c.Action)
		if c.Kind == bawn.Command && c.Dir != workspace {
			word += " (in " + redact.Visible(c.Dir) + ")"
		}
		words = append(words, word)
	}
	text, err := json.Marshal(strings.Join(words, ", "))
	if err != nil {
		return call
	}
	all["title"] = text
	if text, err = json.Marshal(all); err != nil {
		return call
	}
	return text
}

// titleOf is an action on one line on which nothing is hidden.
func titleOf(a bawn.Action) string {
	if a.Kind == bawn.Command {
		return redact.Visible(a.Resource)
	}
	return redact.Visible(strings.TrimSpace(a.Operation.String() + " " + a.Resource + " " + strings.Join(a.Args, " ")))
}

// freeze keeps a call as it is shown while its human reads it, until thaw. An
// editor may show a second question about the same call in place of the first.
func (p *Proxy) freeze(call json.RawMessage) (thaw func(), err error) {
	id := idOf(call)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.frozen[id] {
		return nil, fmt.Errorf("the human is being asked about another call of the ID %.40q; want an ID for each", id)
	}
	p.frozen[id] = true
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.frozen, id)
	}, nil
}

// callMembers are those of a tool call that an editor reads, by these very names;
// Go's reader would take others for them.
var callMembers = []string{"sessionUpdate", "toolCallId", "title", "kind", "status", "content", "locations", "rawInput", "rawOutput"}

// exact returns an error for a tool call that an editor could read otherwise
// than Go's reader does.
func exact(call json.RawMessage) error {
	all, err := hook.Distinct(call, callMembers...)
	if err != nil {
		return err
	}
	for _, name := range []string{"content", "locations"} {
		var list []json.RawMessage
		_ = json.Unmarshal(all[name], &list) // of a message it is no list
		for _, part := range list {
			if _, err := hook.Distinct(part, "type", "path"); err != nil {
				return err
			}
		}
	}
	return nil
}

// idOf is the ID of a tool call.
func idOf(call json.RawMessage) string {
	var c struct {
		ToolCallID string `json:"toolCallId"`
	}
	_ = json.Unmarshal(call, &c) // without one it is nobody's
	return c.ToolCallID
}

// updates reports whether a message of the agent's may go to the editor: it
// changes no call that a human is being asked about, and none of Bawn's own.
func (p *Proxy) updates(m *message) bool {
	params, err := hook.Distinct(m.Params, "update")
	if err != nil {
		return false
	}
	update, is := params["update"]
	if is && exact(update) != nil {
		return false
	}
	id := idOf(update)
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.frozen[id] && !strings.HasPrefix(id, ownCall)
}

// ownCall is what the IDs of Bawn's own calls begin with.
const ownCall = "bawn-"

// newCall is the ID of one.
func newCall() string { return ownCall + rand.Text() }

// explained adds to a call's title why it is asked.
func explained(call json.RawMessage, reason string) json.RawMessage {
	var all map[string]json.RawMessage
	var title string
	if json.Unmarshal(call, &all) != nil || reason == "" {
		return call
	}
	_ = json.Unmarshal(all["title"], &title) // an agent need not give one
	text, err := json.Marshal(strings.TrimSpace(title + " (bawn: " + reason + ")"))
	if err != nil {
		return call
	}
	all["title"] = text
	if text, err = json.Marshal(all); err != nil {
		return call
	}
	return text
}

// rejection answers a permission with no.
func (h *human) rejection(options []option, d bawn.Decision) outcome {
	o := outcome{Outcome: selected{Outcome: "cancelled"}, Meta: &refusal{"bawn", d.Rule, d.Reason}}
	id := h.chosen
	if id == "" {
		id = choose(options, rejectOnce, rejectLong)
	}
	if !h.cancelled && id != "" {
		o.Outcome = selected{"selected", id}
	}
	return o
}

// denied is what an agent hears of a request that a rule refuses.
func denied(d bawn.Decision) *Failure {
	data, err := json.Marshal(refusal{"bawn", d.Rule, d.Reason})
	if err != nil {
		data = nil
	}
	return &Failure{Code: codeDenied, Message: "bawn: denied: " + d.Reason, Data: data}
}

// MaxFile is the largest file that is read or written for an agent, in bytes.
const MaxFile = 16 << 20

// A fileRequest is fs/read_text_file or fs/write_text_file.
type fileRequest struct {
	SessionID string `json:"sessionId"`
	Path      string `json:"path"`
	Content   string `json:"content"`
	Line      *int   `json:"line"` // from 1
	Limit     *int   `json:"limit"`
}

// file decides about a file tool of the agent's.
func (p *Proxy) file(ctx context.Context, r *fileRequest, op bawn.Operation) error {
	if !filepath.IsAbs(r.Path) || strings.ContainsRune(r.Path, 0) {
		return &Failure{Code: codeParams, Message: "bawn: the path is not absolute"}
	}
	kind := "read"
	if op == bawn.Write {
		kind = "edit"
	}
	call, err := json.Marshal(map[string]any{
		"toolCallId": newCall(), "title": redact.Visible(kind + " " + r.Path), "kind": kind, "locations": []map[string]string{{"path": r.Path}},
	})
	if err != nil {
		return err
	}
	d := p.opts.Check(ctx, bawn.Action{Kind: bawn.Filesystem, Operation: op, Resource: r.Path, Dir: p.opts.Workspace}, false, p.own(r.SessionID, call))
	if d.Verdict != bawn.Allow {
		return denied(d)
	}
	return nil
}

// own asks the human of the editor what no agent has asked for.
func (p *Proxy) own(session string, call json.RawMessage) *human {
	return &human{proxy: p, params: permission{session, call, []option{{"allow", "Allow once", allowOnce}, {"reject", "Reject", rejectOnce}}}}
}

// look is a shell script that prints a dot and the content of the file $1, and
// prints nothing if the file does not exist. The protocol has an answer for a
// missing file: agents then create it.
const (
	look  = `[ -e "$1" ] || exit 0; printf .; exec cat -- "$1"`
	found = "."
)

func (p *Proxy) readFile(ctx context.Context, r *fileRequest) (any, error) {
	if err := p.file(ctx, r, bawn.Read); err != nil {
		return nil, err
	}
	text, err := p.opts.Run(ctx, "", MaxFile, "/bin/sh", "-c", look, "sh", r.Path)
	if err != nil {
		return nil, err
	}
	text, there := strings.CutPrefix(text, found)
	if !there {
		return nil, &Failure{Code: codeAbsent, Message: "Resource not found: " + r.Path}
	}
	return map[string]string{"content": part(text, r.Line, r.Limit)}, nil
}

// part cuts lines out of a text.
func part(text string, line, limit *int) string {
	if line != nil {
		for n := *line; n > 1 && text != ""; n-- {
			_, text, _ = strings.Cut(text, "\n")
		}
	}
	if limit == nil {
		return text
	}
	end := 0
	for n := *limit; n > 0 && end < len(text); n-- {
		at := strings.IndexByte(text[end:], '\n')
		if at < 0 {
			return text
		}
		end += at + 1
	}
	return text[:end]
}

// write is a shell's: the path is its $1.
const write = `cat >"$1"`

func (p *Proxy) writeFile(ctx context.Context, r *fileRequest) (any, error) {
	if len(r.Content) > MaxFile {
		return nil, &Failure{Code: codeParams, Message: "bawn: the file is larger than " + strconv.Itoa(MaxFile>>20) + " MiB"}
	}
	if err := p.file(ctx, r, bawn.Write); err != nil {
		return nil, err
	}
	if _, err := p.opts.Run(ctx, r.Content, 1<<10, "/bin/sh", "-c", write, "sh", r.Path); err != nil {
		return nil, err
	}
	return struct{}{}, nil
}

// A terminalRequest is terminal/create.
type terminalRequest struct {
	SessionID string   `json:"sessionId"`
	Command   string   `json:"command"`
	Args      []string `json:"args"`
	Env       []struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	} `json:"env"`
	Cwd             string `json:"cwd,omitempty"`
	OutputByteLimit *int64 `json:"outputByteLimit,omitempty"`
}

// started is what the editor is asked to start.
type started struct {
	SessionID       string   `json:"sessionId"`
	Command         string   `json:"command"`
	Args            []string `json:"args"`
	Cwd             string   `json:"cwd"`
	OutputByteLimit *int64   `json:"outputByteLimit,omitempty"`
}

// terminal has the editor start a command, in a sandbox. Without arguments it
// is a line for a shell. What is judged is what runs, with its variables. The
// directory is the guest's word and may be a link of its making, also a moment
// later: it is entered inside the sandbox, never outside.
func (p *Proxy) terminal(ctx context.Context, r *terminalRequest) (any, error) {
	dir := p.opts.Workspace
	if r.Cwd != "" {
		if dir = filepath.Clean(r.Cwd); !fspath.Below(dir, p.opts.Workspace) {
			return nil, &Failure{Code: codeParams, Message: "bawn: the terminal's directory is outside of the workspace"}
		}
	}
	argv, err := words(r)
	if err != nil {
		return nil, &Failure{Code: codeParams, Message: "bawn: " + err.Error()}
	}
	title := strings.Join(argv, " ")
	call, err := json.Marshal(map[string]any{"toolCallId": newCall(), "title": redact.Visible(title), "kind": "execute", "rawInput": map[string]any{"command": argv}})
	if err != nil {
		return nil, err
	}
	a := bawn.Action{Kind: bawn.Command, Operation: bawn.Exec, Resource: title, Args: argv, Dir: dir}
	d := p.opts.Check(ctx, a, false, p.own(r.SessionID, call))
	if d.Verdict != bawn.Allow {
		return nil, denied(d)
	}
	line := p.opts.Terminal(dir, d.Env, argv)
	text, err := p.ask(ctx, "terminal/create", started{r.SessionID, line[0], line[1:], p.opts.Workspace, r.OutputByteLimit})
	var made ownTerminal
	if err == nil && json.Unmarshal(text, &made) == nil {
		p.mu.Lock()
		p.terminals[ownTerminal{r.SessionID, made.TerminalID}] = true
		p.mu.Unlock()
	}
	return text, err
}

// An ownTerminal names a terminal of the agent's.
type ownTerminal struct {
	SessionID  string `json:"sessionId"`
	TerminalID string `json:"terminalId"`
}

// ofTerminal passes on what is about a terminal that the agent has made itself:
// the editor may have others, the human's among them.
func (p *Proxy) ofTerminal(ctx context.Context, m *message, r *ownTerminal) (any, error) {
	p.mu.Lock()
	own := p.terminals[*r]
	if m.Method == "terminal/release" {
		delete(p.terminals, *r)
	}
	p.mu.Unlock()
	if !own {
		return nil, &Failure{Code: codeParams, Message: fmt.Sprintf("bawn: %.60q is no terminal of this agent's", r.TerminalID)}
	}
	return p.ask(ctx, m.Method, *r)
}

// words are a terminal's command as it is executed.
func words(r *terminalRequest) (argv []string, err error) {
	if len(r.Env) > 0 {
		argv = append(argv, "env", "--")
	}
	for _, v := range r.Env {
		if v.Name == "" || strings.ContainsAny(v.Name, "=\x00") {
			return nil, fmt.Errorf("%.40q is no name of a variable", v.Name)
		}
		argv = append(argv, v.Name+"="+v.Value)
	}
	if len(r.Args) == 0 {
		argv = append(argv, "/bin/sh", "-c", r.Command)
	} else {
		argv = append(append(argv, r.Command), r.Args...)
	}
	if r.Command == "" || strings.ContainsRune(strings.Join(argv, ""), 0) {
		return nil, errors.New("the command is empty, or holds a NUL")
	}
	return argv, nil
}
