package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// chatRequest is what is used of a request for a chat completion.
type chatRequest struct {
	Model    string        `json:"model"`
	Stream   bool          `json:"stream"`
	Messages []chatMessage `json:"messages"`
	Tools    []struct {
		Function struct {
			Name       string `json:"name"`
			Parameters schema `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`
}

type chatMessage struct {
	Role      string            `json:"role"`
	Content   json.RawMessage   `json:"content"`
	ToolCalls []json.RawMessage `json:"tool_calls"`
}

// chat answers a chat completion.
func (s *server) chat(w http.ResponseWriter, _ *http.Request, req chatRequest) {
	step, result := 0, ""
	for _, m := range req.Messages {
		switch {
		case m.Role == "assistant" && len(m.ToolCalls) > 0:
			step++
		case m.Role == "tool":
			result = string(m.Content)
		}
	}
	var tools []tool
	for _, t := range req.Tools {
		tools = append(tools, tool{Name: t.Function.Name, Schema: t.Function.Parameters})
	}
	t := s.answer("openai", step, result, tools)
	message, finish := chatTurn(t, step)
	whole := map[string]any{"id": "chat-" + strconv.Itoa(step), "created": 1, "model": req.Model,
		"usage": map[string]int{"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}}
	if !req.Stream {
		whole["object"] = "chat.completion"
		whole["choices"] = []any{map[string]any{"index": 0, "message": message, "finish_reason": finish}}
		reply(w, whole)
		return
	}
	whole["object"] = "chat.completion.chunk"
	whole["choices"] = []any{map[string]any{"index": 0, "delta": message, "finish_reason": finish}}
	events(w, whole, "[DONE]")
}

// chatTurn is a turn as a message, and why it ends.
func chatTurn(t turn, step int) (message map[string]any, finish string) {
	message = map[string]any{"role": "assistant", "content": t.text}
	if !t.calls() {
		return message, "stop"
	}
	message["tool_calls"] = []any{map[string]any{
		"index": 0, "id": "call_" + strconv.Itoa(step), "type": "function",
		"function": map[string]any{"name": t.tool.Name, "arguments": t.input()},
	}}
	return message, "tool_calls"
}

// reply sends one JSON object.
func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the agent is gone: its own test fails
}

// events sends server-sent events: objects as JSON, texts as they are.
func events(w http.ResponseWriter, list ...any) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, v := range list {
		data, ok := v.(string)
		if !ok {
			text, _ := json.Marshal(v) // maps of what JSON has
			data = string(text)
		}
		_, _ = w.Write([]byte("data: " + data + "\n\n"))
	}
}

// typed sends server-sent events whose names are their types.
func typed(w http.ResponseWriter, list []map[string]any) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, v := range list {
		text, _ := json.Marshal(v) // maps of what JSON has
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", v["type"], text)
	}
}
