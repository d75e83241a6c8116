package bawn

import (
	"context"
	"time"
)

// An Event is one record of the audit log. The names of C10's fields are
// Coder's (id, agentId, resourceType, …); the rest is ours.
type Event struct {
	// UUID of version 7 (RFC 9562), which sorts by time.
	ID string `json:"id"`
	// When it was recorded; UTC where Bawn set it.
	Time    time.Time `json:"timestamp"`
	Session string    `json:"session"`          // the session's ID
	Parent  string    `json:"parent,omitempty"` // the session that started it
	Agent   string    `json:"agentId"`          // the agent, as it calls itself
	// "filesystem", "network", "command" or "tool"; "session"; "approval" for questions
	// to a human and their answers; "relay" for who came to the relay and what they did
	// there; "audit" for the log's notes about itself.
	Kind string `json:"resourceType"`
	// "read", "write", "create", "delete", "exec", "connect", "sign", "call"; "note";
	// "start", "end" and "fallback" of a session (without a sandbox, because none could
	// enforce it: details has what); "pair", "login", "logout", "revoke", "refuse",
	// "attach", "kill" at the relay; "seal" and "repair" of the log.
	Operation  string   `json:"operation"`
	Resource   string   `json:"resource"`           // what: a path, HOST:PORT, a command's program
	Args       []string `json:"args,omitempty"`     // a command's arguments, or a request's method
	Dir        string   `json:"dir,omitempty"`      // the working directory
	Requested  Verdict  `json:"requested"`          // the policy's verdict: "deny", "ask" or "allow"
	Resolved   Verdict  `json:"resolved"`           // what became of it
	Source     string   `json:"source"`             // who decided: "rule", "user", "auto" or "learned"
	Rule       string   `json:"rule,omitempty"`     // by which rule
	Reason     string   `json:"reason,omitempty"`   // why, in words
	Ticket     string   `json:"ticket,omitempty"`   // the ticket under which it ran
	Provider   string   `json:"provider,omitempty"` // what enforces the isolation
	Mode       Mode     `json:"mode"`               // the session's mode
	Exit       *int     `json:"exit,omitempty"`     // the exit code, where it has ended with one
	DurationMS int64    `json:"durationMs"`         // how long it took, in milliseconds
	Bytes      int64    `json:"bytes,omitempty"`    // bytes of a connection, both ways together
	// Fields of some events only, as flat text: the effective isolation at a session's
	// start, the limits that are enforced in part.
	Details map[string]string `json:"details,omitempty"`
}

// A Decider turns an action into a decision. A decision that comes with an
// error denies, whatever it says.
type Decider interface {
	Decide(ctx context.Context, a Action) (Decision, error)
}

// An Approver puts one question to a human and waits for the answer, at most
// until ctx ends. An error denies.
type Approver interface {
	Approve(ctx context.Context, a Action, d Decision) (Answer, error)
}

// A Recorder writes an event before the action happens. An error stops the
// action: an action that can't be recorded does not happen.
type Recorder interface {
	Record(ctx context.Context, e Event) error
}

// A SecretSource lends a secret for one binding.
type SecretSource interface {
	Lend(ctx context.Context, session string, b Binding) (Secret, error)
}
