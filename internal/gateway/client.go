package gateway

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// client is the gateway's client of a server. It has the capabilities of the client for
// which the server is started. Requests of the server go there through asked.
func (b *backend) client(front *mcp.ServerSession) *mcp.Client {
	has := abilities(front)
	c := mcp.NewClient(&mcp.Implementation{Name: "bawn", Version: b.g.opts.Version}, &mcp.ClientOptions{
		ToolListChangedHandler:     func(context.Context, *mcp.ToolListChangedRequest) { b.changed() },
		PromptListChangedHandler:   func(context.Context, *mcp.PromptListChangedRequest) { b.changed() },
		ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) { b.changed() },
		ResourceUpdatedHandler:     b.updated,
		MultiRoundTrip:             &mcp.MultiRoundTripOptions{Disabled: true}, // call.rounds does it
		Capabilities:               &mcp.ClientCapabilities{Elicitation: has.Elicitation, Sampling: has.Sampling, RootsV2: has.RootsV2},
	})
	c.AddReceivingMiddleware(b.requests)
	return c
}

// requests handles what a server asks its client; the SDK handles the rest.
func (b *backend) requests(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		in, ok := req.GetParams().(mcp.InputRequest)
		if !ok {
			return next(ctx, method, req)
		}
		answer, err := b.asked(ctx, in)
		if err != nil {
			return nil, err
		}
		result, ok := answer.(mcp.Result)
		if !ok {
			return nil, errNoAnswer
		}
		return result, nil
	}
}

// abilities are those of a client; empty if unknown.
func abilities(front *mcp.ServerSession) *mcp.ClientCapabilities {
	if front != nil {
		if p := front.InitializeParams(); p != nil && p.Capabilities != nil {
			return p.Capabilities
		}
	}
	return &mcp.ClientCapabilities{}
}

// modern reports whether a client is asked by results that want input (2026-07-28), and
// repeats its call with the answers. Older clients are asked by requests.
func modern(front *mcp.ServerSession) bool {
	p := front.InitializeParams()
	return p == nil || p.ProtocolVersion >= "2026-07-28"
}
