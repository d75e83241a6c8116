package main

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// anthropicRequest is what is used of a request for a message.
type anthropicRequest struct {
	Model    string `json:"model"`
	Stream   bool   `json:"stream"`
	Messages []struct {
		Role    string  `json:"role"`
		Content content `json:"content"`
	} `json:"messages"`
	Tools []struct {
		Name   string  `json:"name"`
		Schema *schema `json:"input_schema"` // none: a tool of the server's own
	} `json:"tools"`
}

// content is a list of blocks; a text is a list of one.
type content []block

type block struct {
	Type    string  `json:"type"`
	Text    string  `json:"text"`
	Content content `json:"content"` // of a tool's result
}

// UnmarshalJSON takes a text or a list.
func (c *content) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '"' {
		*c = content{{Type: "text"}}
		return json.Unmarshal(text, &(*c)[0].Text)
	}
	return json.Unmarshal(text, (*[]block)(c))
}

// anthropic answers a request for a message.
func (s *server) anthropic(w http.ResponseWriter, _ *http.Request, req anthropicRequest) {
	step, result := req.done()
	var tools []tool
	for _, t := range req.Tools {
		if t.Schema != nil {
			tools = append(tools, tool{Name: t.Name, Schema: *t.Schema})
		}
	}
	t := s.answer("anthropic", step, result, tools)
	block, delta, reason := anthropicTurn(t, step)
	usage := map[string]int{"input_tokens": 10, "output_tokens": 5}
	message := map[string]any{"id": "msg_" + strconv.Itoa(step), "type": "message", "role": "assistant", "model": req.Model,
		"content": []any{block}, "stop_reason": reason, "stop_sequence": nil, "usage": usage}
	if !req.Stream {
		reply(w, message)
		return
	}
	message["content"], message["stop_reason"] = []any{}, nil
	if t.calls() {
		block["input"] = map[string]any{}
	} else {
		block["text"] = ""
	}
	typed(w, []map[string]any{
		{"type": "message_start", "message": message},
		{"type": "content_block_start", "index": 0, "content_block": block},
		{"type": "content_block_delta", "index": 0, "delta": delta},
		{"type": "content_block_stop", "index": 0},
		{"type": "message_delta", "delta": map[string]any{"stop_reason": reason, "stop_sequence": nil}, "usage": usage},
		{"type": "message_stop"},
	})
}

// anthropicTurn is a turn as a block, as what is added to an empty one, and why
// it ends.
func anthropicTurn(t turn, step int) (block, delta map[string]any, reason string) {
	if !t.calls() {
		return map[string]any{"type": "text", "text": t.text}, map[string]any{"type": "text_delta", "text": t.text}, "end_turn"
	}
	block = map[string]any{"type": "tool_use", "id": "toolu_" + strconv.Itoa(step), "name": t.tool.Name, "input": t.args}
	return block, map[string]any{"type": "input_json_delta", "partial_json": t.input()}, "tool_use"
}

// done counts the calls made so far and returns the result of the last one.
func (r *anthropicRequest) done() (step int, result string) {
	for _, m := range r.Messages {
		for _, b := range m.Content {
			switch b.Type {
			case "tool_use":
				step++
			case "tool_result":
				result = ""
				for _, part := range b.Content {
					result += part.Text
				}
			}
		}
	}
	return step, result
}
