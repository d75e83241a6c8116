package main

import (
	"encoding/json"
	"maps"
	"net/http"
	"strconv"
	"strings"
)

// responsesRequest is what is used of a request for a response.
type responsesRequest struct {
	Model  string `json:"model"`
	Stream bool   `json:"stream"`
	Input  items  `json:"input"`
	Tools  []struct {
		Type       string `json:"type"`
		Name       string `json:"name"`
		Parameters schema `json:"parameters"`
		Tools      []struct {
			Name       string `json:"name"`
			Parameters schema `json:"parameters"`
		} `json:"tools"` // of a namespace
	} `json:"tools"`
}

// items are the conversation so far; a text is a conversation's beginning.
type items []struct {
	Type   string          `json:"type"`
	Output json.RawMessage `json:"output"`
}

// UnmarshalJSON takes a text or a list.
func (i *items) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '"' {
		return nil
	}
	type plain items
	return json.Unmarshal(text, (*plain)(i))
}

// done counts the calls made so far and returns the result of the last one.
func (i items) done() (step int, result string) {
	for _, item := range i {
		switch {
		case item.Type == "function_call":
			step++
		case strings.HasSuffix(item.Type, "_output"):
			result = string(item.Output)
		}
	}
	return step, result
}

func (r *responsesRequest) tools() (tools []tool) {
	for _, t := range r.Tools {
		switch t.Type {
		case "function":
			tools = append(tools, tool{Name: t.Name, Schema: t.Parameters})
		case "namespace":
			for _, inner := range t.Tools {
				tools = append(tools, tool{Name: inner.Name, Group: t.Name, Schema: inner.Parameters})
			}
		}
	}
	return tools
}

// responses answers a request for a response.
func (s *server) responses(w http.ResponseWriter, _ *http.Request, req responsesRequest) {
	step, result := req.Input.done()
	t := s.answer("responses", step, result, req.tools())
	item, events := responsesTurn(t, step)
	response := map[string]any{"id": "resp_" + strconv.Itoa(step), "object": "response", "created_at": 1, "model": req.Model, "status": "completed", "output": []any{item},
		"usage": map[string]any{"input_tokens": 10, "output_tokens": 5, "total_tokens": 15, "input_tokens_details": map[string]int{"cached_tokens": 0}, "output_tokens_details": map[string]int{"reasoning_tokens": 0}}}
	if !req.Stream {
		reply(w, response)
		return
	}
	begun := maps.Clone(response)
	begun["status"], begun["output"], begun["usage"] = "in_progress", []any{}, nil
	events = append([]map[string]any{{"type": "response.created", "response": begun}}, events...)
	events = append(events, map[string]any{"type": "response.completed", "response": response})
	for i, e := range events {
		e["sequence_number"] = i
	}
	typed(w, events)
}

// responsesTurn is a turn as an item, and the events that tell of it.
func responsesTurn(t turn, step int) (item map[string]any, events []map[string]any) {
	if t.calls() {
		return responsesCall(t, step)
	}
	id := "msg_" + strconv.Itoa(step)
	begun := map[string]any{"id": id, "status": "in_progress", "type": "message", "role": "assistant", "content": []any{}}
	part := map[string]any{"type": "output_text", "text": t.text, "annotations": []any{}}
	item = ended(begun, "content", []any{part})
	where := map[string]any{"item_id": id, "output_index": 0, "content_index": 0}
	return item, []map[string]any{
		{"type": "response.output_item.added", "output_index": 0, "item": begun},
		with(where, "response.content_part.added", "part", map[string]any{"type": "output_text", "text": "", "annotations": []any{}}),
		with(where, "response.output_text.delta", "delta", t.text),
		with(where, "response.output_text.done", "text", t.text),
		with(where, "response.content_part.done", "part", part),
		{"type": "response.output_item.done", "output_index": 0, "item": item},
	}
}

// responsesCall is the same of a call.
func responsesCall(t turn, step int) (item map[string]any, events []map[string]any) {
	n := strconv.Itoa(step)
	begun := map[string]any{"id": "fc_" + n, "status": "in_progress", "type": "function_call", "call_id": "call_" + n, "name": t.tool.Name, "arguments": ""}
	if t.tool.Group != "" {
		begun["namespace"] = t.tool.Group
	}
	item = ended(begun, "arguments", t.input())
	where := map[string]any{"item_id": begun["id"], "output_index": 0}
	return item, []map[string]any{
		{"type": "response.output_item.added", "output_index": 0, "item": begun},
		with(where, "response.function_call_arguments.delta", "delta", t.input()),
		with(where, "response.function_call_arguments.done", "arguments", t.input()),
		{"type": "response.output_item.done", "output_index": 0, "item": item},
	}
}

// ended is an item that is whole.
func ended(begun map[string]any, name string, value any) map[string]any {
	item := maps.Clone(begun)
	item["status"], item[name] = "completed", value
	return item
}

// with is an event about a place.
func with(where map[string]any, kind, name string, value any) map[string]any {
	e := maps.Clone(where)
	e["type"], e[name] = kind, value
	return e
}
