package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// ask sends a request to a model with a script of two steps.
func ask(t *testing.T, path, body string) (answer, log string) {
	t.Helper()
	var out bytes.Buffer
	var commands []step
	if err := json.Unmarshal([]byte(`["echo hi", {"tool": "read", "args": {"path": "x"}}]`), &commands); err != nil {
		t.Fatal(err)
	}
	s := &server{script: script{Commands: commands, Text: "the end"}, log: json.NewEncoder(&out)}
	ts := httptest.NewServer(s.handler())
	defer ts.Close()
	resp, err := http.Post(ts.URL+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text), out.String()
}

func TestScriptIsFollowed(t *testing.T) {
	const (
		chat     = "/v1/chat/completions"
		messages = "/v1/messages"
		resps    = "/v1/responses"
		shells   = `"tools": [{"name": "server_tool"}, {"name": "Bash", "input_schema": {"properties": {"command": {}}}}, {"name": "read", "input_schema": {}}]`
		funcs    = `"tools": [{"type": "function", "name": "exec_command", "parameters": {"properties": {"cmd": {}}}}, {"type": "namespace", "name": "ns", "tools": [{"name": "srv__read", "parameters": {}}]}]`
		gemini   = "/v1beta/models/m:streamGenerateContent"
		tools    = `"tools": [{"function": {"name": "read"}}, {"function": {"name": "run_shell_command", "parameters": {"properties": {"command": {}, "is_background": {"type": "boolean"}, "mode": {"enum": ["a"]}, "note": {"type": ["string", "null"]}}, "required": ["command", "is_background", "mode", "note"]}}}]`
		decl     = `"tools": [{"functionDeclarations": [{"name": "run_shell_command", "parametersJsonSchema": {"properties": {"command": {"type": "STRING"}, "count": {"type": "INTEGER"}}, "required": ["command", "count"]}}]}]`
	)
	for _, tt := range []struct{ name, path, body, want, log string }{
		{"first step", chat, `{"stream": true, "messages": [{"role": "user", "content": "x"}], ` + tools + `}`,
			`"arguments":"{\"command\":\"echo hi\",\"is_background\":false,\"mode\":\"a\",\"note\":\"scripted\"}"`, `"tool":"run_shell_command"`},
		{"as a whole", chat, `{"messages": [], ` + tools + `}`, `"object":"chat.completion"`, `"step":0`},
		{"another tool", chat, `{"messages": [{"role": "assistant", "tool_calls": [{}]}], ` + tools + `}`, `"arguments":"{\"path\":\"x\"}","name":"read"`, `"tool":"read"`},
		{"after the last", chat, `{"stream": true, "messages": [{"role": "assistant", "tool_calls": [{}]}, {"role": "assistant", "tool_calls": [{}]}, {"role": "tool", "content": "hi"}], ` + tools + `}`,
			`"content":"the end"`, `"result":"\"hi\""`},
		{"streams end", chat, `{"stream": true}`, "data: [DONE]\n\n", `"text":"ok"`},
		{"no shell", chat, `{"tools": [{"function": {"name": "read"}}]}`, `you offer no shell`, `"step":0`},
		{"gemini: first step", gemini, `{"contents": [{"role": "user"}], ` + decl + `}`, `"functionCall":{"args":{"command":"echo hi","count":1}`, `"api":"gemini"`},
		{"gemini: after the last", gemini, `{"contents": [{"role": "model", "parts": [{"functionCall": {}}]}, {"role": "model", "parts": [{"functionCall": {}}]}, {"role": "user", "parts": [{"functionResponse": {"response": {"output": "hi"}}}]}], ` + decl + `}`,
			`"text":"the end"`, `"result":"{\"output\": \"hi\"}"`},
		{"gemini: tokens", "/v1beta/models/m:countTokens", `{}`, `"totalTokens":10`, ""},
		{"messages: first step", messages, `{"stream": true, "messages": [{"role": "user", "content": "x"}], ` + shells + `}`,
			`"delta":{"partial_json":"{\"command\":\"echo hi\"}","type":"input_json_delta"}`, `"api":"anthropic","step":0,"tool":"Bash"`},
		{"messages: as a whole", messages, `{"messages": [], ` + shells + `}`, `"stop_reason":"tool_use"`, `"step":0`},
		{"messages: another tool", messages, `{"messages": [{"role": "assistant", "content": [{"type": "tool_use"}]}, {"role": "user", "content": [{"type": "tool_result", "content": [{"type": "text", "text": "hi"}]}]}], ` + shells + `}`,
			`{"id":"toolu_1","input":{"path":"x"},"name":"read","type":"tool_use"}`, `"tool":"read","result":"hi"`},
		{"messages: streams end", messages, `{"stream": true, "messages": []}`, "event: message_stop\n", `"text":"ok"`},
		{"messages: tokens", messages + "/count_tokens", `{}`, `"input_tokens":10`, ""},
		{"responses: first step", resps, `{"stream": true, "input": "x", ` + funcs + `}`,
			`"arguments":"{\"cmd\":\"echo hi\"}"`, `"api":"responses","step":0,"tool":"exec_command"`},
		{"responses: as a whole", resps, `{"input": [], ` + funcs + `}`, `"status":"completed","type":"function_call"`, `"step":0`},
		{"responses: in a namespace", resps, `{"input": [{"type": "function_call"}, {"type": "function_call_output", "output": "hi"}], ` + funcs + `}`,
			`"name":"srv__read","namespace":"ns"`, `"result":"\"hi\""`},
		{"responses: streams end", resps, `{"stream": true}`, "event: response.completed\n", `"text":"ok"`},
		{"something else", "/v1/models", `{}`, "404", `"stray":"POST /v1/models"`},
		{"not JSON", chat, `{`, "unexpected EOF", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			answer, log := ask(t, tt.path, tt.body)
			if !strings.Contains(answer, tt.want) {
				t.Errorf("the answer is %s; want %s in it", answer, tt.want)
			}
			if !strings.Contains(log, tt.log) {
				t.Errorf("the log is %s; want %s in it", log, tt.log)
			}
		})
	}
}

// TestAsCommand has the shell do what an agent has no tool for.
func TestAsCommand(t *testing.T) {
	shell := tool{Name: "bash", Schema: schema{Properties: map[string]property{"command": {}}}}
	writer := tool{Name: "write", Schema: schema{Properties: map[string]property{"filePath": {}, "content": {}}, Required: []string{"content", "mode"}}}
	for _, tt := range []struct {
		name  string
		tools []tool
		do    step
		want  string
	}{
		{"a tool for it", []tool{shell, writer}, step{Write: "f", Text: "it's"}, `{"content":"it's","filePath":"f","mode":"scripted"}`},
		{"none", []tool{shell}, step{Write: "f", Text: "it's"}, `{"command":"printf %s 'it'\\''s' \u003e 'f'"}`},
		{"reads", []tool{shell, writer}, step{Read: "f"}, `{"command":"cat 'f'"}`},
		{"fetches", []tool{shell}, step{Fetch: "http://x/"}, `{"command":"curl -sS -m 10 'http://x/'"}`},
		{"takes something else", []tool{{Name: "write", Schema: schema{}}, shell}, step{Write: "f"}, `{"command":"printf %s '' \u003e 'f'"}`},
		{"no shell", []tool{writer}, step{Read: "f"}, `null`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := script{Commands: []step{tt.do}}
			if got := s.next(0, tt.tools); got.input() != tt.want {
				t.Errorf("the model calls %s with %s; want %s", got.tool.Name, got.input(), tt.want)
			}
		})
	}
}
