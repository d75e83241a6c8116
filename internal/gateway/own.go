package gateway

import (
	"context"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// addOwn offers the tool that lists the servers. Without it a model would not learn that a
// server does not run.
func (g *Gateway) addOwn() {
	yes := true
	t := &mcp.Tool{
		Name: Own + between + "servers", Description: "Says which MCP servers stand behind Bawn, and whether they run. For when a tool that you expect is missing or fails.",
		InputSchema: map[string]any{"type": "object"}, Annotations: &mcp.ToolAnnotations{ReadOnlyHint: yes},
	}
	g.front.AddTool(t, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: g.servers()}}}, nil
	})
}

// servers is a line for each.
func (g *Gateway) servers() string {
	var out strings.Builder
	for _, b := range g.backends {
		fmt.Fprintf(&out, "%s: %s", b.Name, b.state())
		if b.About != "" {
			fmt.Fprintf(&out, " (%s)", line(b.About))
		}
		out.WriteByte('\n')
	}
	if len(g.backends) == 0 {
		return "no server is installed; your human installs one with \"bawn plugin add\"\n"
	}
	return out.String()
}
