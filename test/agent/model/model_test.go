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

// ask sends a request to a model with a script of one command.
func ask(t *testing.T, path, body string) (answer, log string) {
	t.Helper()
	var out bytes.Buffer
	s := &server{script: script{Commands: []string{"echo hi"}, Text: "the end"}, log: json.NewEncoder(&out)}
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
		chat   = "/v1/chat/completions"
		gemini = "/v1beta/models/m:streamGenerateContent"
		tools  = `"tools": [{"function": {"name": "read"}}, {"function": {"name": "run_shell_command", "parameters": {"properties": {"command": {}, "is_background": {"type": "boolean"}, "mode": {"enum": ["a"]}, "note": {"type": ["string", "null"]}}, "required": ["command", "is_background", "mode", "note"]}}}]`
		decl   = `"tools": [{"functionDeclarations": [{"name": "run_shell_command", "parametersJsonSchema": {"properties": {"command": {"type": "STRING"}, "count": {"type": "INTEGER"}}, "required": ["command", "count"]}}]}]`
	)
	for _, tt := range []struct{ name, path, body, want, log string }{
		{"first step", chat, `{"stream": true, "messages": [{"role": "user", "content": "x"}], ` + tools + `}`,
			`"arguments":"{\"command\":\"echo hi\",\"is_background\":false,\"mode\":\"a\",\"note\":\"scripted\"}"`, `"tool":"run_shell_command"`},
		{"as a whole", chat, `{"messages": [], ` + tools + `}`, `"object":"chat.completion"`, `"step":0`},
		{"after the last", chat, `{"stream": true, "messages": [{"role": "assistant", "tool_calls": [{}]}, {"role": "tool", "content": "hi"}], ` + tools + `}`,
			`"content":"the end"`, `"result":"\"hi\""`},
		{"streams end", chat, `{"stream": true}`, "data: [DONE]\n\n", `"text":"ok"`},
		{"no shell", chat, `{"tools": [{"function": {"name": "read"}}]}`, `you offer no shell`, `"step":0`},
		{"gemini: first step", gemini, `{"contents": [{"role": "user"}], ` + decl + `}`, `"functionCall":{"args":{"command":"echo hi","count":1}`, `"api":"gemini"`},
		{"gemini: after the last", gemini, `{"contents": [{"role": "model", "parts": [{"functionCall": {}}]}, {"role": "user", "parts": [{"functionResponse": {"response": {"output": "hi"}}}]}], ` + decl + `}`,
			`"text":"the end"`, `"result":"{\"output\": \"hi\"}"`},
		{"gemini: tokens", "/v1beta/models/m:countTokens", `{}`, `"totalTokens":10`, ""},
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
