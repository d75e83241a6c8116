package bawn

import (
	"context"
	"time"
)

// An Event is one record of the audit log. The names of C10's fields are
// Coder's (id, agentId, resourceType, …); the rest is ours.
type Event struct {
	ID         string    `json:"id"`
	Time       time.Time `json:"timestamp"`
	Session    string    `json:"session"`
	Parent     string    `json:"parent,omitempty"`
	Agent      string    `json:"agentId"`
	Kind       string    `json:"resourceType"` // a Kind, or "session"
	Operation  string    `json:"operation"`    // an Operation, or "start", "end"
	Resource   string    `json:"resource"`
	Args       []string  `json:"args,omitempty"`
	Dir        string    `json:"dir,omitempty"`
	Requested  Verdict   `json:"requested"` // what the policy said
	Resolved   Verdict   `json:"resolved"`  // what became of it
	Source     string    `json:"source"`    // rule, user, auto or learned
	Rule       string    `json:"rule,omitempty"`
	Reason     string    `json:"reason,omitempty"`
	Ticket     string    `json:"ticket,omitempty"`
	Provider   string    `json:"provider,omitempty"`
	Mode       Mode      `json:"mode"`
	Exit       *int      `json:"exit,omitempty"`
	DurationMS int64     `json:"durationMs"`
	Bytes      int64     `json:"bytes,omitempty"`
	// Details hold what only some events have, as flat text: the effective
	// isolation at a session's start, the limits that are enforced in part.
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
// action: what can't be recorded does not happen.
type Recorder interface {
	Record(ctx context.Context, e Event) error
}

// A SecretSource lends a secret for one binding.
type SecretSource interface {
	Lend(ctx context.Context, session string, b Binding) (Secret, error)
}
