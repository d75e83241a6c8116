package gateway

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/bawn-dev/bawn/internal/redact"
)

// Untrusted is the member of a result's _meta that says whose words it holds:
// data of a stranger's, never instructions.
const Untrusted = "bawn.dev/untrusted"

// clean removes credentials from a server's text, and writes invisible characters as
// \u202e and the like; line ends stay.
func (g *Gateway) clean(s string) string {
	return seen(redact.String(s))
}

// seen writes invisible characters as escapes; line ends and tabs stay.
func seen(s string) string {
	if !strings.ContainsFunc(s, hidden) && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		i := strings.IndexAny(s, "\n\t")
		if i < 0 {
			i = len(s)
		}
		b.WriteString(redact.Visible(s[:i]))
		if i == len(s) {
			break
		}
		b.WriteByte(s[i])
		s = s[i+1:]
	}
	return b.String()
}

func hidden(r rune) bool { return r != '\n' && r != '\t' && redact.Invisible(r) }

// cut bounds a text, and says so.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + fmt.Sprintf("\n[cut by Bawn: %d of %d bytes]", most, len(s))
}

// A budget is how much of a result is left.
type budget struct {
	g    *Gateway
	left int
	cut  bool
}

func (b *backend) budget() *budget { return &budget{g: b.g, left: int(b.Limits.Result)} }

// text takes from the budget what a text needs, or as much as there is.
func (m *budget) text(s string) string {
	whole := len(s)
	if whole > m.left {
		s, m.cut = strings.ToValidUTF8(s[:max(m.left, 0)], ""), true
	}
	m.left -= len(s)
	s = m.g.clean(s)
	if m.cut && whole > len(s) {
		s += fmt.Sprintf("\n[cut by Bawn: this had %d bytes, and the whole result may have no more than the plugin's limit]", whole)
	}
	return s
}

// fits takes n bytes from the budget, all or none.
func (m *budget) fits(n int) bool {
	if n > m.left {
		m.cut = true
		return false
	}
	m.left -= n
	return true
}

// marked is a server's result as a client gets it.
func (b *backend) marked(r *mcp.CallToolResult) *mcp.CallToolResult {
	m := b.budget()
	out := &mcp.CallToolResult{Meta: mcp.Meta{Untrusted: b.Name}, IsError: r.IsError, Content: []mcp.Content{}}
	for _, c := range r.Content {
		out.Content = append(out.Content, b.content(m, c))
	}
	if r.StructuredContent != nil {
		b.structure(m, out, r.StructuredContent)
	}
	return out
}

// structure adds the structured part, whole or not at all: a part could mean something
// else.
func (b *backend) structure(m *budget, out *mcp.CallToolResult, v any) {
	text, err := json.Marshal(v)
	if err != nil || !m.fits(len(text)) {
		out.IsError = true
		out.Content = append(out.Content, &mcp.TextContent{Text: fmt.Sprintf("Bawn: the structured part of this result has %d bytes and is left out; the limit of the whole result is %d. Ask for less at a time.", len(text), b.Limits.Result)})
		return
	}
	out.StructuredContent = m.g.cleanAll(v)
}

// cleanAll cleans every text of a value of JSON, the names as well.
func (g *Gateway) cleanAll(v any) any {
	switch v := v.(type) {
	case string:
		return g.clean(v)
	case []any:
		for i := range v {
			v[i] = g.cleanAll(v[i])
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			out[g.clean(k)] = g.cleanAll(x)
		}
		return out
	}
	return v
}

// content is one part of a result.
func (b *backend) content(m *budget, c mcp.Content) mcp.Content {
	switch c := c.(type) {
	case *mcp.TextContent:
		return &mcp.TextContent{Text: m.text(c.Text), Annotations: audience(c.Annotations)}
	case *mcp.ImageContent:
		if m.fits(len(c.Data)) {
			return &mcp.ImageContent{Data: c.Data, MIMEType: line(c.MIMEType), Annotations: audience(c.Annotations)}
		}
		return tooLarge("an image", len(c.Data))
	case *mcp.AudioContent:
		if m.fits(len(c.Data)) {
			return &mcp.AudioContent{Data: c.Data, MIMEType: line(c.MIMEType), Annotations: audience(c.Annotations)}
		}
		return tooLarge("a sound", len(c.Data))
	case *mcp.EmbeddedResource:
		if c.Resource != nil {
			return &mcp.EmbeddedResource{Resource: b.resource(m, c.Resource), Annotations: audience(c.Annotations)}
		}
	case *mcp.ResourceLink:
		return &mcp.ResourceLink{
			URI: frontURI(b.Name, line(c.URI)), Name: m.text(c.Name), Title: m.text(c.Title), Description: m.text(c.Description), MIMEType: line(c.MIMEType), Size: c.Size,
		}
	}
	return &mcp.TextContent{Text: "Bawn: a part of the result is of a kind that is not handed on"}
}

func tooLarge(what string, n int) mcp.Content {
	return &mcp.TextContent{Text: fmt.Sprintf("Bawn: %s of %d bytes is left out: the whole result may have no more than the plugin's limit", what, n)}
}

// audience keeps of annotations whom something is for.
func audience(a *mcp.Annotations) *mcp.Annotations {
	if a == nil {
		return nil
	}
	return &mcp.Annotations{Audience: a.Audience, Priority: a.Priority}
}

// resource is what a resource holds.
func (b *backend) resource(m *budget, r *mcp.ResourceContents) *mcp.ResourceContents {
	out := &mcp.ResourceContents{URI: frontURI(b.Name, line(r.URI)), MIMEType: line(r.MIMEType), Meta: mcp.Meta{Untrusted: b.Name}}
	switch {
	case r.Blob == nil:
		out.Text = m.text(r.Text)
	case m.fits(len(r.Blob)):
		out.Blob = r.Blob
	default:
		out.Text = fmt.Sprintf("Bawn: %d bytes are left out: the whole result may have no more than the plugin's limit", len(r.Blob))
	}
	return out
}

func (b *backend) markedResource(r *mcp.ReadResourceResult) (*mcp.ReadResourceResult, error) {
	if r == nil {
		return nil, refusal("Bawn: the server answered with nothing")
	}
	m := b.budget()
	out := &mcp.ReadResourceResult{Meta: mcp.Meta{Untrusted: b.Name}, Contents: []*mcp.ResourceContents{}}
	for _, c := range r.Contents {
		if c != nil {
			out.Contents = append(out.Contents, b.resource(m, c))
		}
	}
	return out, nil
}

func (b *backend) markedPrompt(r *mcp.GetPromptResult) (*mcp.GetPromptResult, error) {
	if r == nil {
		return nil, refusal("Bawn: the server answered with nothing")
	}
	m := b.budget()
	out := &mcp.GetPromptResult{Meta: mcp.Meta{Untrusted: b.Name}, Description: m.text(r.Description), Messages: []*mcp.PromptMessage{}}
	for _, p := range r.Messages {
		if p != nil && p.Content != nil {
			out.Messages = append(out.Messages, &mcp.PromptMessage{Role: p.Role, Content: b.content(m, p.Content)})
		}
	}
	return out, nil
}

// decode reads one value of JSON, with numbers as they are written. A name that
// is there twice is refused: readers differ on which of the two counts.
func decode(text []byte) (any, error) {
	if err := once(text); err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("it is no JSON: %v", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is something behind the end of it")
	}
	return v, nil
}

// once refuses an object that has a name twice.
func once(text []byte) error {
	type level struct {
		names map[string]bool // nil: a list
		name  bool            // a name comes next
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var open []level
	for {
		t, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("it is no JSON: %v", err)
		}
		top := len(open) - 1
		if top >= 0 && open[top].name {
			if name, ok := t.(string); ok {
				if open[top].names[name] {
					return fmt.Errorf("the name %q is there twice", line(name))
				}
				open[top].names[name], open[top].name = true, false
				continue
			}
		}
		switch t {
		case json.Delim('{'):
			open = append(open, level{names: map[string]bool{}, name: true})
			continue
		case json.Delim('['):
			open = append(open, level{})
			continue
		case json.Delim('}'), json.Delim(']'):
			open = open[:top]
			top--
		}
		if top >= 0 && open[top].names != nil {
			open[top].name = true
		}
	}
}

// maxShown is how much of a call's arguments a human is shown and the log
// keeps, in bytes. Longer text ends in its digest.
const maxShown = 8 << 10

// shownArgs writes arguments for a human and the log.
func shownArgs(args any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(args); err != nil {
		return "BUG(bawn): " + err.Error()
	}
	text := strings.TrimSuffix(b.String(), "\n")
	if len(text) <= maxShown {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return strings.ToValidUTF8(text[:maxShown], "") + fmt.Sprintf(" [cut: %d bytes in all, SHA-256 %s]", len(text), hex.EncodeToString(sum[:]))
}
