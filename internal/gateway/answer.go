package gateway

import (
	"bytes"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// encoded is a value as JSON, with HTML's characters as they are.
func encoded(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// readAs reads an answer in the SDK's way.
func readAs[T any, P interface {
	*T
	mcp.Result
}](text json.RawMessage) (mcp.Result, error) {
	r := P(new(T))
	if err := json.Unmarshal(text, r); err != nil {
		return nil, err
	}
	return r, nil
}

// readToolResult reads the answer to a tool call. Most are plain texts, which it reads
// itself; the SDK reads the others.
func readToolResult(text json.RawMessage) (mcp.Result, error) {
	if r := plainResult(text); r != nil {
		return r, nil
	}
	return readAs[mcp.CallToolResult](text)
}

// plainResult reads a result of texts; nil where it is something else.
func plainResult(text json.RawMessage) *mcp.CallToolResult {
	var all map[string]json.RawMessage
	if json.Unmarshal(text, &all) != nil {
		return nil
	}
	out := &mcp.CallToolResult{}
	for name, value := range all {
		switch name {
		case "_meta": // nothing of it goes on
		case "content":
			if out.Content = plainContent(value); out.Content == nil {
				return nil
			}
		case "resultType":
			if string(value) != `"complete"` {
				return nil
			}
		case "isError":
			out.IsError = string(value) == "true"
			if !out.IsError && string(value) != "false" {
				return nil
			}
		default:
			return nil
		}
	}
	return out
}

// plainContent reads a list of texts; nil where it is something else.
func plainContent(text json.RawMessage) []mcp.Content {
	var all []map[string]json.RawMessage
	if json.Unmarshal(text, &all) != nil || all == nil {
		return nil
	}
	out := make([]mcp.Content, 0, len(all))
	for _, c := range all {
		if len(c) != 2 || string(c["type"]) != `"text"` || len(c["text"]) == 0 {
			return nil
		}
		var t string
		if c["text"][0] != '"' || json.Unmarshal(c["text"], &t) != nil {
			return nil
		}
		out = append(out, &mcp.TextContent{Text: t})
	}
	return out
}
