package main

import (
	"encoding/json"
	"net/http"
	"strings"
)

// geminiRequest is what is used of a request to generate content.
type geminiRequest struct {
	Contents []struct {
		Role  string       `json:"role"`
		Parts []geminiPart `json:"parts"`
	} `json:"contents"`
	Tools []struct {
		FunctionDeclarations []struct {
			Name       string  `json:"name"`
			Parameters *schema `json:"parameters"`
			JSONSchema *schema `json:"parametersJsonSchema"`
		} `json:"functionDeclarations"`
	} `json:"tools"`
	GenerationConfig struct {
		ResponseMIMEType string `json:"responseMimeType"`
	} `json:"generationConfig"`
}

type geminiPart struct {
	FunctionCall     json.RawMessage `json:"functionCall"`
	FunctionResponse *struct {
		Response json.RawMessage `json:"response"`
	} `json:"functionResponse"`
}

// gemini answers models/NAME:streamGenerateContent and its like.
func (s *server) gemini(w http.ResponseWriter, r *http.Request, req geminiRequest) {
	_, call, _ := strings.Cut(r.PathValue("call"), ":")
	if call == "countTokens" {
		reply(w, map[string]int{"totalTokens": 10})
		return
	}
	step, result := req.done()
	t := turn{text: `{"reasoning": "the script says so", "next_speaker": "user", "model_choice": "flash"}`}
	if req.GenerationConfig.ResponseMIMEType != "application/json" {
		t = s.answer("gemini", step, result, req.tools())
	}
	part := map[string]any{"text": t.text}
	if t.calls() {
		part = map[string]any{"functionCall": map[string]any{"name": t.tool.Name, "args": t.args}}
	}
	answer := map[string]any{
		"candidates": []any{map[string]any{
			"index": 0, "finishReason": "STOP", "content": map[string]any{"role": "model", "parts": []any{part}},
		}},
		"usageMetadata": map[string]int{"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
	}
	if call == "streamGenerateContent" {
		events(w, answer)
	} else {
		reply(w, answer)
	}
}

// done counts the calls made so far and returns the result of the last one.
func (r *geminiRequest) done() (step int, result string) {
	for _, c := range r.Contents {
		called := false
		for _, p := range c.Parts {
			called = called || p.FunctionCall != nil
			if p.FunctionResponse != nil {
				result = string(p.FunctionResponse.Response)
			}
		}
		if called && c.Role == "model" {
			step++
		}
	}
	return step, result
}

func (r *geminiRequest) tools() []tool {
	var tools []tool
	for _, group := range r.Tools {
		for _, f := range group.FunctionDeclarations {
			switch {
			case f.JSONSchema != nil:
				tools = append(tools, tool{Name: f.Name, Schema: *f.JSONSchema})
			case f.Parameters != nil:
				tools = append(tools, tool{Name: f.Name, Schema: *f.Parameters})
			}
		}
	}
	return tools
}
