package main

import (
	"context"

	"github.com/bawn-dev/bawn/internal/intent"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/mcpserver"
)

// serveTools serves Bawn's own tools, each call decided at the session socket.
func serveTools(ctx context.Context, s launch.ToolsSetting) error {
	return mcpserver.Serve(ctx, mcpserver.Options{
		Workspace: s.Workspace, Environ: s.Environ, Shell: s.Shell, Handed: s.Handed, Version: launch.Version, Request: s.Request,
		Judge: func(ctx context.Context, c mcpserver.Call) (mcpserver.Verdict, error) {
			v, err := s.Judge(ctx, question(c))
			return mcpserver.Verdict{
				Allowed: v.Verdict == "allow", Rule: v.Rule, Reason: v.Reason, Remedy: v.Remedy, Canonical: v.Canonical, Env: v.Env,
			}, err
		},
	}, s.In, s.Out)
}

// question is a call in the words of the session socket.
func question(c mcpserver.Call) intent.Judge {
	j := intent.Judge{Agent: "bawn", Tool: c.Tool, Mayask: c.MayAsk}
	for _, a := range c.Actions {
		j.Dir = a.Dir
		j.Actions = append(j.Actions, intent.Act{Kind: a.Kind.String(), Operation: a.Operation.String(), Resource: a.Resource, Args: a.Args})
	}
	return j
}
