package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/bawn-dev/bawn"
)

// maxArgs bounds the arguments of a call, in bytes.
const maxArgs = 8 << 20

// callTool serves a call of one of the server's tools.
func (b *backend) callTool(ctx context.Context, req *mcp.CallToolRequest, t *tool) (*mcp.CallToolResult, error) {
	about := said("tool", req.Params.Name, req.Params.Arguments)
	if req.Params.RequestState != "" {
		c, err := b.g.resume(ctx, req.Params.RequestState, about, req.Params.InputResponses)
		if err != nil {
			return b.failure(err), nil
		}
		return b.toolResult(c.wait(ctx)), nil
	}
	args, err := arguments(req.Params.Arguments)
	if err != nil {
		return b.failure(err), nil
	}
	if t, err = b.live(ctx, req, t); err != nil {
		return b.failure(err), nil
	}
	for range maxChanges {
		if r := b.denied(ctx, req, t, args); r != nil {
			return r, nil
		}
		r, q, err := b.put(ctx, req, about, t, args)
		if !errors.Is(err, errOther) {
			return b.toolResult(r, q, err), nil
		}
		if t, err = b.live(ctx, req, t); err != nil {
			return b.failure(err), nil
		}
	}
	return b.failure(fmt.Errorf("the server %q changes this tool again and again", b.Name)), nil
}

// live is a tool as its server lists it, which is started for that: the earlier
// listing may be out of date.
func (b *backend) live(ctx context.Context, req *mcp.CallToolRequest, t *tool) (*tool, error) {
	stop := b.waitingFor(ctx, req.Session, req.Params.GetProgressToken(), "Bawn starts the server")
	defer stop()
	if _, err := b.get(ctx, req.Session); err != nil {
		return nil, err
	}
	now := b.now(t.name)
	if now == nil {
		return nil, fmt.Errorf("the server %q does not have this tool any more", b.Name)
	}
	return now, nil
}

// maxChanges is how often a tool may have become another one between the
// decision about a call and the call.
const maxChanges = 3

// errOther says that a tool is not the one that was decided about.
var errOther = errors.New("the server's tool is another one now")

// denied decides about a call, and returns the refusal.
func (b *backend) denied(ctx context.Context, req *mcp.CallToolRequest, t *tool, args map[string]any) *mcp.CallToolResult {
	stop := b.waitingFor(ctx, req.Session, req.Params.GetProgressToken(), "Bawn waits for a human to decide about the call (bawn approvals)")
	defer stop()
	if d, what := b.decide(ctx, t, args); d.Verdict != bawn.Allow {
		return deniedResult(d, what)
	}
	return nil
}

// put puts a call to the server, which is started for it, if the tool is still
// the one that was decided about.
func (b *backend) put(ctx context.Context, req *mcp.CallToolRequest, about string, t *tool, args map[string]any) (mcp.Result, *question, error) {
	w := &work{method: "tools/call", params: map[string]any{"name": t.name, "arguments": args}, read: readToolResult}
	w.fits = func() bool { return t.is(b.now(t.name)) }
	c, err := b.begin(ctx, req.Session, about, req.Params.GetProgressToken(), w)
	if err != nil {
		return nil, nil, err
	}
	return c.run(ctx)
}

// arguments reads those of a call. The judged arguments are those that are
// sent: they are written anew, so that no two readers see different ones.
func arguments(text []byte) (map[string]any, error) {
	if len(text) == 0 || string(text) == "null" {
		return map[string]any{}, nil
	}
	if len(text) > maxArgs {
		return nil, fmt.Errorf("the arguments have %d bytes; want at most %d", len(text), maxArgs)
	}
	v, err := decode(text)
	if err != nil {
		return nil, err
	}
	args, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("the arguments are no object of names and values")
	}
	return args, nil
}

// said is what a client asked for, so that it can only go on with the same.
func said(kind, name string, args []byte) string {
	sum := sha256.Sum256(args)
	return kind + "\x00" + name + "\x00" + hex.EncodeToString(sum[:])
}

// toolResult is what a client gets of a call.
func (b *backend) toolResult(r mcp.Result, q *question, err error) *mcp.CallToolResult {
	if err != nil {
		return b.failure(err)
	}
	if q != nil {
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{questionKey: q.request}, RequestState: q.state}
	}
	got, ok := r.(*mcp.CallToolResult)
	if !ok || got == nil {
		return b.failure(errors.New("the server answered with nothing"))
	}
	return b.marked(got)
}

// failure is a result that says what went wrong.
func (b *backend) failure(err error) *mcp.CallToolResult {
	return textResult(mcp.Meta{"bawn.dev/failed": b.Name}, speaks+err.Error())
}

func deniedResult(d bawn.Decision, what string) *mcp.CallToolResult {
	return textResult(mcp.Meta{"bawn.dev/denied": map[string]any{"by": "bawn", "rule": d.Rule, "reason": d.Reason, "resource": what, "remedy": remedy(d, what)}}, denial(d, what))
}

func textResult(meta mcp.Meta, text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Meta: meta, IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// tellEvery is how often a client is told that a human is being asked, or that a
// server starts: clients give up on calls of which they hear nothing.
const tellEvery = 5 * time.Second

// waitingFor keeps telling a client, if it wants to be told, until stop.
func (b *backend) waitingFor(ctx context.Context, front *mcp.ServerSession, token any, what string) (stop func()) {
	if token == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	b.g.work.Go(func() {
		tick := time.NewTicker(tellEvery)
		defer tick.Stop()
		for n := 1; ; n++ {
			select {
			case <-tick.C:
				_ = front.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: float64(n), Message: what}) // a client that is gone needs no result
			case <-ctx.Done():
				return
			}
		}
	})
	return cancel
}

// getPrompt serves a prompt of the server's.
func (b *backend) getPrompt(ctx context.Context, req *mcp.GetPromptRequest, name string) (*mcp.GetPromptResult, error) {
	params := map[string]any{"name": name}
	if len(req.Params.Arguments) > 0 {
		params["arguments"] = req.Params.Arguments
	}
	about := said("prompt", req.Params.Name, []byte(printed(req.Params.Arguments)))
	r, q, err := b.ask(ctx, req.Session, about, req.Params.RequestState, req.Params.InputResponses, "@prompt", shownArgs(map[string]any{"prompt": name, "arguments": req.Params.Arguments}), &work{method: "prompts/get", params: params, read: readAs[mcp.GetPromptResult]})
	if err != nil {
		return nil, refusal(err.Error())
	}
	if q != nil {
		return &mcp.GetPromptResult{InputRequests: mcp.InputRequestMap{questionKey: q.request}, RequestState: q.state}, nil
	}
	got, _ := r.(*mcp.GetPromptResult)
	return b.markedPrompt(got)
}

// readResource serves a resource of the server's.
func (b *backend) readResource(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	server, uri, ok := backURI(req.Params.URI)
	if !ok || server != b.Name {
		return nil, mcp.ResourceNotFoundError(req.Params.URI)
	}
	about := said("resource", req.Params.URI, nil)
	r, q, err := b.ask(ctx, req.Session, about, req.Params.RequestState, req.Params.InputResponses, "@resource", uri, &work{method: "resources/read", params: map[string]any{"uri": uri}, read: readAs[mcp.ReadResourceResult]})
	if err != nil {
		return nil, refusal(err.Error())
	}
	if q != nil {
		return &mcp.ReadResourceResult{InputRequests: mcp.InputRequestMap{questionKey: q.request}, RequestState: q.state}, nil
	}
	got, _ := r.(*mcp.ReadResourceResult)
	return b.markedResource(got)
}

// ask decides and runs, or resumes, a request that is not a tool call.
func (b *backend) ask(ctx context.Context, front *mcp.ServerSession, about, state string, answers mcp.InputResponseMap, kind, what string, w *work) (mcp.Result, *question, error) {
	if state != "" {
		c, err := b.g.resume(ctx, state, about, answers)
		if err != nil {
			return nil, nil, err
		}
		return ofServer(c.wait(ctx))
	}
	a := b.action(b.Name+"/"+kind, what)
	if d := b.g.judge(ctx, a, ""); d.Verdict != bawn.Allow {
		return nil, nil, errors.New(denial(d, a.Resource))
	}
	c, err := b.begin(ctx, front, about, nil, w)
	if err != nil {
		return nil, nil, err
	}
	return ofServer(c.run(ctx))
}

// speaks begins what Bawn tells a model.
const speaks = "Bawn: "

// ofServer says that an error is what became of a call.
func ofServer(r mcp.Result, q *question, err error) (mcp.Result, *question, error) {
	if err != nil {
		err = fmt.Errorf("%s%w", speaks, err)
	}
	return r, q, err
}
