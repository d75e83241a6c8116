package acp

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/bawn-dev/bawn"
)

// sessionOf is the conversation that a request is about.
func sessionOf(params json.RawMessage) string {
	var of struct {
		SessionID string `json:"sessionId"`
	}
	_ = json.Unmarshal(params, &of) // the editor is trusted; without an ID nobody is asked there
	return of.SessionID
}

// Ask puts a question of the sandbox around the agent to the human at the
// editor, in the conversation that was prompted last. An error: nobody has
// answered, also where there is no conversation.
func (p *Proxy) Ask(ctx context.Context, a bawn.Action, reason string) (bawn.Answer, error) {
	p.mu.Lock()
	session := p.session
	p.mu.Unlock()
	if session == "" {
		return bawn.Answer{}, errors.New("no conversation has begun in which the editor could ask")
	}
	kind := "other"
	switch a.Kind {
	case bawn.Command:
		kind = "execute"
	case bawn.Network:
		kind = "fetch"
	}
	call, err := json.Marshal(map[string]any{
		"toolCallId": newCall(), "title": titleOf(a), "kind": kind, "rawInput": map[string]string{a.Kind.String(): a.Resource},
	})
	if err != nil {
		return bawn.Answer{}, err
	}
	h := p.own(session, call)
	answer, err := h.ask(ctx, bawn.Decision{Reason: reason})
	if h.cancelled {
		return bawn.Answer{Verdict: bawn.Deny, Scope: bawn.Once, By: "editor"}, nil
	}
	return answer, err
}
