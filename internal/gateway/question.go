package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/policy"
)

// maxAsks is how often a server may ask during one call.
const maxAsks = 32

// questionKey is under which a client is asked.
const questionKey = "question"

var errNoAnswer = errors.New("the client gave no answer to what it was asked")

// A question is what a server asks during a call of a client that is asked by
// results.
type question struct {
	state     string // with which the client goes on
	request   mcp.InputRequest
	answer    chan mcp.InputResponse // has room for one; nil means that no answer came
	stopTimer func()                 // of the wait; called when the client has come back
}

// asked serves what a server asks by a request. Nothing in it says during which
// call, so that it is carried on only where all calls are one client's.
func (b *backend) asked(ctx context.Context, in mcp.InputRequest) (mcp.InputResponse, error) {
	c := b.only()
	if c == nil {
		return nil, refusal("no call is under way that this could belong to, or those of several clients are")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	answer, err := c.ask(ctx, in)
	if err != nil {
		return nil, refusal(err.Error())
	}
	return answer, nil
}

// only is one of the calls under way, where all are one client's.
func (b *backend) only() (found *call) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.calls {
		if found != nil && found.front != c.front {
			return nil
		}
		found = c
	}
	return found
}

// answersFor gets the answers to what a result asks for.
func (c *call) answersFor(asks mcp.InputRequestMap) (mcp.InputResponseMap, error) {
	answers := mcp.InputResponseMap{}
	for key, in := range asks {
		answer, err := c.ask(c.ctx, in)
		if err != nil {
			return nil, err
		}
		answers[key] = answer
	}
	return answers, nil
}

// ask puts a question of the server's to the client, if it may be put.
func (c *call) ask(ctx context.Context, in mcp.InputRequest) (mcp.InputResponse, error) {
	c.mu.Lock()
	c.questions++
	many := c.questions > maxAsks
	c.mu.Unlock()
	if many {
		return nil, fmt.Errorf("it has asked %d times during one call", maxAsks)
	}
	in, kind, err := c.tidy(in)
	if err != nil {
		return nil, err
	}
	a := c.b.action(c.b.Name+"/"+kind, shownArgs(in))
	if d := c.b.g.judge(c.request(), a, ""); d.Verdict != bawn.Allow {
		return nil, errors.New(denial(d, a.Resource))
	}
	if modern(c.front) {
		return c.put(ctx, in)
	}
	return c.send(in)
}

// tidy says whose question it is and makes its text visible, and returns the
// name that rules have for it.
func (c *call) tidy(in mcp.InputRequest) (mcp.InputRequest, string, error) {
	can := abilities(c.front)
	switch in := in.(type) {
	case *mcp.ElicitParams:
		if in == nil || can.Elicitation == nil {
			return nil, "", errors.New("the client can't ask its human")
		}
		p := *in
		p.Meta = nil
		p.Message = fmt.Sprintf("The MCP server %q asks (not Bawn, and not your agent): %s", c.b.Name, seen(cut(in.Message, maxAbout)))
		if err := checkLink(p.URL); err != nil {
			return nil, "", err
		}
		var err error
		p.RequestedSchema, err = schema(in.RequestedSchema)
		return &p, policy.AskElicitation, err
	case *mcp.CreateMessageWithToolsParams:
		if in == nil || can.Sampling == nil {
			return nil, "", errors.New("the client lends its model to nobody")
		}
		p := *in
		p.Meta = nil
		p.IncludeContext = "none" // what other servers have said is not for this one
		p.SystemPrompt = fmt.Sprintf("What follows comes from the MCP server %q, not from your human. %s", c.b.Name, cut(in.SystemPrompt, maxAbout))
		return &p, policy.AskSampling, nil
	case *mcp.ListRootsParams:
		if can.RootsV2 == nil {
			return nil, "", errors.New("the client names no directories")
		}
		return &mcp.ListRootsParams{}, policy.AskRoots, nil
	}
	return nil, "", fmt.Errorf("a question of the kind %T is not carried on", in)
}

// checkLink refuses a page that is not somebody's over TLS.
func checkLink(link string) error {
	if link == "" {
		return nil
	}
	u, err := url.Parse(link)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || seen(link) != link {
		return fmt.Errorf("the page %.200q is not one that a human should be sent to; want an https address", line(link))
	}
	return nil
}

// send asks a client by a request, as part of its own (before 2026-07-28).
func (c *call) send(in mcp.InputRequest) (mcp.InputResponse, error) {
	ctx := c.request()
	switch in := in.(type) {
	case *mcp.ElicitParams:
		return answered(c.front.Elicit(ctx, in))
	case *mcp.CreateMessageWithToolsParams:
		return answered(c.front.CreateMessageWithTools(ctx, in))
	case *mcp.ListRootsParams:
		return answered(c.front.ListRoots(ctx, in))
	}
	return nil, errNoAnswer
}

// answered returns the answer as an interface, and a nil one on an error.
func answered[T mcp.InputResponse](answer T, err error) (mcp.InputResponse, error) {
	if err != nil {
		return nil, fmt.Errorf("the client: %s", line(err.Error()))
	}
	return answer, nil
}

// put asks a client by a result that wants input, and waits for the client to
// say the call again.
func (c *call) put(ctx context.Context, in mcp.InputRequest) (mcp.InputResponse, error) {
	q := &question{state: c.id, request: in, answer: make(chan mcp.InputResponse, 1)}
	select {
	case c.asks <- q:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-c.ctx.Done():
		return nil, c.ctx.Err()
	}
	select {
	case answer := <-q.answer:
		if answer == nil {
			return nil, errNoAnswer
		}
		return answer, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
