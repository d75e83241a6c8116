package gateway

import (
	"context"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/bawn-dev/bawn"
)

// progressed tells the client of a call how far the server is.
func (b *backend) progressed(p *mcp.ProgressNotificationParams) {
	id, _ := p.ProgressToken.(string)
	b.g.mu.Lock()
	c := b.g.active[id]
	b.g.mu.Unlock()
	if c == nil || c.b != b || c.token == nil {
		return // nobody's, or another server's
	}
	ctx := c.request()
	if ctx.Err() != nil {
		return
	}
	_ = c.front.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
		ProgressToken: c.token, Progress: p.Progress, Total: p.Total, Message: b.g.clean(cut(p.Message, maxLine)),
	}) // a client that is gone needs no events
}

// serverLevel is the level at which servers log; each client gets the part it asked for.
const serverLevel = "info"

// logged sends a server's log messages to the clients whose calls it serves.
func (b *backend) logged(said *mcp.LoggingMessageParams) {
	text := b.g.clean(cut(printed(said.Data), maxAbout))
	p := &mcp.LoggingMessageParams{Logger: b.Name + ": " + line(said.Logger), Level: said.Level, Data: text}
	for _, c := range b.clients() {
		_ = c.front.Log(c.request(), p) // as above
	}
}

// clients returns one call for each client with calls at the server.
func (b *backend) clients() (list []*call) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.calls {
		if !slices.ContainsFunc(list, func(other *call) bool { return other.front == c.front }) {
			list = append(list, c)
		}
	}
	return list
}

// updated tells the subscribers of a resource that it has changed.
func (b *backend) updated(ctx context.Context, n *mcp.ResourceUpdatedNotificationRequest) {
	_ = b.g.front.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: frontURI(b.Name, n.Params.URI)}) // nobody may listen
}

// rootsChanged tells running servers that a client's directories have changed.
func (g *Gateway) rootsChanged(context.Context, *mcp.RootsListChangedRequest) {
	// Servers ask for the directories when they need them: the call may be another
	// client's.
}

// subscribe has a server tell when a resource changes.
func (g *Gateway) subscribe(ctx context.Context, req *mcp.SubscribeRequest) error {
	return g.about(ctx, req.Session, req.Params.URI, func(ctx context.Context, s *mcp.ClientSession, uri string) error {
		return s.Subscribe(ctx, &mcp.SubscribeParams{URI: uri})
	})
}

func (g *Gateway) unsubscribe(ctx context.Context, req *mcp.UnsubscribeRequest) error {
	return g.about(ctx, req.Session, req.Params.URI, func(ctx context.Context, s *mcp.ClientSession, uri string) error {
		return s.Unsubscribe(ctx, &mcp.UnsubscribeParams{URI: uri})
	})
}

// about forwards an operation on a resource to its server.
func (g *Gateway) about(ctx context.Context, front *mcp.ServerSession, address string, do func(context.Context, *mcp.ClientSession, string) error) error {
	server, uri, ok := backURI(address)
	b := g.backend(server)
	if !ok || b == nil {
		return mcp.ResourceNotFoundError(address)
	}
	a := b.action(b.Name+"/@resource", uri)
	if d := g.judge(ctx, a, ""); d.Verdict != bawn.Allow {
		return refusal(denial(d, a.Resource))
	}
	ctx, cancel := context.WithTimeout(ctx, b.Limits.Start)
	defer cancel()
	r, err := b.get(ctx, front)
	if err == nil {
		err = do(ctx, r.session, uri)
	}
	if err != nil {
		return refusal("Bawn: " + line(err.Error()))
	}
	return nil
}

// complete has the server complete an argument of its prompt or template. It
// starts no server, and answers with an empty list rather than with an error.
func (g *Gateway) complete(ctx context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	empty := &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{}}}
	b, ref := g.meant(req.Params.Ref)
	if b == nil {
		return empty, nil
	}
	b.mu.Lock()
	r := b.run
	b.mu.Unlock()
	if r == nil {
		return empty, nil
	}
	if d := g.judge(ctx, b.action(b.Name+"/@prompt", shownArgs(ref)), ""); d.Verdict != bawn.Allow {
		return empty, nil
	}
	ctx, cancel := context.WithTimeout(ctx, b.Limits.Start)
	defer cancel()
	p := *req.Params
	p.Ref, p.Meta = ref, nil
	got, err := r.session.Complete(ctx, &p)
	if err != nil || got == nil {
		return empty, nil //nolint:nilerr // a completion is a convenience
	}
	for _, v := range got.Completion.Values[:min(len(got.Completion.Values), 100)] {
		empty.Completion.Values = append(empty.Completion.Values, line(v))
	}
	return empty, nil
}

// meant returns the server of a prompt or template, and the server's own name for it.
func (g *Gateway) meant(ref *mcp.CompleteReference) (*backend, *mcp.CompleteReference) {
	if ref == nil {
		return nil, nil
	}
	back := *ref
	if server, uri, ok := backURI(ref.URI); ok {
		back.URI = uri
		return g.backend(server), &back
	}
	for _, b := range g.backends {
		if name, ok := b.promptNamed(ref.Name); ok {
			back.Name = name
			return b, &back
		}
	}
	return nil, nil
}
