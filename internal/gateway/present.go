package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/bawn-dev/bawn/internal/redact"
)

// Bounds of what a server says of one thing that it has, in bytes.
const (
	maxAbout  = 4 << 10
	maxSchema = 64 << 10
)

// shown is what clients are shown of a server, as text by front name: what has
// not changed is not announced.
type shown struct {
	tools, prompts, resources, templates map[string]string
	names                                map[string]string // of prompts, as on the server
	own                                  map[string]*tool  // as the server lists them now, or as they were agreed to, by its names
}

// A tool is one of a server's, as clients call it.
type tool struct {
	name     string // the server's
	readOnly bool   // so the server says
	must     string // why a human is asked each time; "" leaves it to the rules
	digest   string // of a tool that is not as it was agreed to
}

// resource is what rules name: SERVER/TOOL. A tool that is not as it was agreed
// to has part of its digest behind it, so that an answer holds for this one
// and no other.
func (t *tool) resource(server string) string {
	if t.must == "" {
		return server + "/" + t.name
	}
	digest := t.digest[strings.LastIndexByte(t.digest, ':')+1:]
	return server + "/" + t.name + "@" + digest[:min(len(digest), 16)]
}

// newTool is why a tool of a server without a review asks.
const newTool = "nobody has agreed to this tool yet"

// show offers tools that a human has agreed to.
func (b *backend) show() {
	now := map[string]string{}
	b.shown.own = map[string]*tool{}
	for _, raw := range b.Known {
		t := &mcp.Tool{}
		if json.Unmarshal(raw, t) == nil { // else it is offered once the server lists it
			b.tool(now, t, Finding{})
		}
	}
	b.shown.tools = now
}

// present offers what a server has, after a review.
func (b *backend) present(o offer) {
	b.presenting.Lock()
	defer b.presenting.Unlock()
	found := b.review(o)
	now := map[string]string{}
	b.shown.own = map[string]*tool{}
	for _, t := range o.tools {
		f := found[t.Name]
		if f.Refused {
			b.g.report(b, "refused", fmt.Sprintf("tool %q: %s", t.Name, f.Why))
			continue
		}
		b.tool(now, t, f)
	}
	b.removeGone(b.shown.tools, now, b.g.front.RemoveTools)
	b.shown.tools = now
	b.shown.prompts = b.prompts(o.prompts)
	b.shown.resources = b.resources(o.resources)
	b.shown.templates = b.templates(o.templates)
}

func (b *backend) review(o offer) map[string]Finding {
	found := map[string]Finding{}
	if b.Review != nil {
		maps.Copy(found, b.Review(o.raw))
	}
	seen := map[string]bool{}
	for i, t := range o.tools {
		if b.Review == nil {
			found[t.Name] = Finding{Why: newTool}
		}
		if err := sameTool(o.raw, i, t); err != nil {
			found[t.Name] = Finding{Refused: true, Why: err.Error()}
		}
		if seen[t.Name] {
			found[t.Name] = Finding{Refused: true, Why: "it is listed twice"}
		}
		seen[t.Name] = true
	}
	return found
}

// members are those of a tool.
var members = []string{"name", "title", "description", "inputSchema", "outputSchema", "annotations", "icons", "_meta", "execution"}

// sameTool refuses a tool that a review may have read differently: readers
// differ on a name that occurs twice, or in capitals.
func sameTool(raw []json.RawMessage, i int, t *mcp.Tool) error {
	if i >= len(raw) {
		return errors.New("it is listed in a form that can't be compared")
	}
	v, err := decode(raw[i])
	if err != nil {
		return err
	}
	all, ok := v.(map[string]any)
	if !ok || all["name"] != t.Name || t.Description != "" && all["description"] != t.Description {
		return errors.New("it is listed in a form that can't be compared")
	}
	for k := range all {
		if j := slices.IndexFunc(members, func(m string) bool { return strings.EqualFold(m, k) }); j >= 0 && members[j] != k {
			return fmt.Errorf("its member %q is almost %q", line(k), members[j])
		}
	}
	return nil
}

// tool offers one tool, unless it is shown as it is already.
func (b *backend) tool(now map[string]string, t *mcp.Tool, f Finding) {
	front, err := b.frontTool(t)
	if err != nil {
		b.g.report(b, "refused", fmt.Sprintf("tool %q: %v", t.Name, err))
		return
	}
	mine := &tool{name: t.Name, readOnly: t.Annotations != nil && t.Annotations.ReadOnlyHint, must: f.Why, digest: f.Digest}
	text := printed(front) + mine.resource(b.Name)
	if now[front.Name] != "" {
		return // shown under this name already
	}
	if b.shown.tools[front.Name] != text {
		err = attempt(func() {
			b.g.front.AddTool(front, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return b.callTool(ctx, req, mine)
			})
		})
	}
	if err != nil {
		b.g.report(b, "refused", fmt.Sprintf("tool %q: %v", t.Name, err))
		return
	}
	now[front.Name] = text
	b.shown.own[t.Name] = mine
}

// offers reports whether clients are shown a tool of that name.
func (b *backend) offers(front string) bool {
	b.presenting.Lock()
	defer b.presenting.Unlock()
	return b.shown.tools[front] != ""
}

// now is a tool as its running server lists it; nil if it does not.
func (b *backend) now(name string) *tool {
	b.presenting.Lock()
	defer b.presenting.Unlock()
	return b.shown.own[name]
}

// is reports whether a statement about one of them holds for the other.
func (t *tool) is(other *tool) bool { return other != nil && *t == *other }

// frontTool is a tool as clients see it: without hidden characters, and without
// text that speaks for Bawn.
func (b *backend) frontTool(t *mcp.Tool) (*mcp.Tool, error) {
	in, err := schema(t.InputSchema)
	if err != nil {
		return nil, fmt.Errorf("its input schema: %w", err)
	}
	if in == nil {
		in = map[string]any{"type": "object"}
	}
	out, err := schema(t.OutputSchema)
	if err != nil {
		return nil, fmt.Errorf("its output schema: %w", err)
	}
	front := &mcp.Tool{Name: frontName(b.Name, t.Name), Title: b.title(t.Title), Description: b.about(t.Description), InputSchema: in}
	if out != nil {
		front.OutputSchema = out
	}
	if a := t.Annotations; a != nil {
		front.Annotations = &mcp.ToolAnnotations{
			ReadOnlyHint: a.ReadOnlyHint, DestructiveHint: a.DestructiveHint, IdempotentHint: a.IdempotentHint, OpenWorldHint: a.OpenWorldHint, Title: b.title(a.Title),
		}
	}
	return front, nil
}

// title is a name for people, with the server's in front.
func (b *backend) title(s string) string {
	if s == "" {
		return ""
	}
	return b.Name + ": " + line(s)
}

// about is what a server says of something, said to be the server's words.
func (b *backend) about(s string) string {
	if len(s) > maxAbout {
		s = strings.ToValidUTF8(s[:maxAbout], "") + " [cut by Bawn]"
	}
	return fmt.Sprintf("[from the MCP server %q] %s", b.Name, seen(s))
}

// schema returns a schema with all its text made visible, or nil for a tool without
// a schema.
func schema(s any) (any, error) {
	if s == nil {
		return nil, nil
	}
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	if len(text) > maxSchema {
		return nil, fmt.Errorf("it has %d bytes; want at most %d", len(text), maxSchema)
	}
	v, err := decode(text)
	if err != nil {
		return nil, err
	}
	return visible(v)
}

// visible makes the texts of a schema visible; what names something must be.
func visible(v any) (any, error) {
	switch v := v.(type) {
	case string:
		return seen(v), nil
	case []any:
		for i := range v {
			var err error
			if v[i], err = visible(v[i]); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for k := range v {
			if redact.Visible(k) != k {
				return nil, fmt.Errorf("the name %q has characters that are not seen", line(k))
			}
			var err error
			if v[k], err = visible(v[k]); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

// printed is v as text, to be compared.
func printed(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return "" // it is shown again
	}
	return string(text)
}

// removeGone removes what a server no longer has.
func (b *backend) removeGone(before, now map[string]string, remove func(names ...string)) {
	var gone []string
	for name := range before {
		if now[name] == "" {
			gone = append(gone, name)
		}
	}
	if len(gone) > 0 {
		remove(gone...)
	}
}

// attempt makes an error of a panic: the SDK's answer to what it can't offer.
func attempt(f func()) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New(line(fmt.Sprint(p)))
		}
	}()
	f()
	return nil
}

func (b *backend) prompts(list []*mcp.Prompt) map[string]string {
	now := map[string]string{}
	b.shown.names = map[string]string{}
	for _, p := range list {
		front := &mcp.Prompt{Name: frontName(b.Name, p.Name), Title: b.title(p.Title), Description: b.about(p.Description)}
		for _, a := range p.Arguments {
			front.Arguments = append(front.Arguments, &mcp.PromptArgument{Name: a.Name, Title: line(a.Title), Description: line(a.Description), Required: a.Required})
		}
		name := p.Name
		b.shown.names[front.Name] = name
		b.offer(b.shown.prompts, now, front.Name, printed(front), func() {
			b.g.front.AddPrompt(front, func(ctx context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
				return b.getPrompt(ctx, req, name)
			})
		})
	}
	b.removeGone(b.shown.prompts, now, b.g.front.RemovePrompts)
	return now
}

func (b *backend) resources(list []*mcp.Resource) map[string]string {
	now := map[string]string{}
	for _, r := range list {
		front := &mcp.Resource{
			URI: frontURI(b.Name, r.URI), Name: b.Name + ": " + line(r.Name), Title: b.title(r.Title), Description: b.about(r.Description), MIMEType: line(r.MIMEType), Size: r.Size,
		}
		b.offer(b.shown.resources, now, front.URI, printed(front), func() { b.g.front.AddResource(front, b.readResource) })
	}
	b.removeGone(b.shown.resources, now, b.g.front.RemoveResources)
	return now
}

func (b *backend) templates(list []*mcp.ResourceTemplate) map[string]string {
	now := map[string]string{}
	for _, r := range list {
		front := &mcp.ResourceTemplate{
			URITemplate: frontURI(b.Name, r.URITemplate), Name: b.Name + ": " + line(r.Name), Title: b.title(r.Title), Description: b.about(r.Description), MIMEType: line(r.MIMEType),
		}
		b.offer(b.shown.templates, now, front.URITemplate, printed(front), func() { b.g.front.AddResourceTemplate(front, b.readResource) })
	}
	b.removeGone(b.shown.templates, now, b.g.front.RemoveResourceTemplates)
	return now
}

// promptNamed is what the server calls a prompt that clients know by name.
func (b *backend) promptNamed(front string) (string, bool) {
	b.presenting.Lock()
	defer b.presenting.Unlock()
	name, ok := b.shown.names[front]
	return name, ok
}

// offer adds what is not shown yet as it is.
func (b *backend) offer(before, now map[string]string, name, text string, add func()) {
	if redact.Visible(name) != name {
		b.g.report(b, "refused", fmt.Sprintf("%q: its name has characters that are not seen", name))
		return
	}
	if before[name] != text {
		if err := attempt(add); err != nil {
			b.g.report(b, "refused", fmt.Sprintf("%q: %v", name, err))
			return
		}
	}
	now[name] = text
}
