package bawn

import (
	"fmt"
	"io"
	"time"
)

// A Session is one guest.
type Session struct {
	ID        string
	Parent    string // the session it was started from, or ""
	Agent     string
	Mode      Mode
	Autonomy  Autonomy
	Isolation Isolation
	Provider  string
	Started   time.Time
}

// A Ticket is one approved action: the only thing an executor obeys. The zero
// Ticket permits nothing: it has no digest, no session and has expired.
type Ticket struct {
	ID      string
	Session string
	Digest  [32]byte // of the action's exact meaning
	Expires time.Time
}

// Permits reports whether the ticket covers the digest in the session at now.
// It does not say whether the ticket has been used before.
func (t Ticket) Permits(session string, digest [32]byte, now time.Time) bool {
	return t.ID != "" && t.Session != "" && t.Session == session &&
		t.Digest != [32]byte{} && t.Digest == digest && now.Before(t.Expires)
}

// A Scope says how long a human's answer holds. The zero Scope is once.
type Scope uint8

const (
	Once Scope = iota
	ForSession
	Always
)

// An Approval is one question to a human and at most one answer. Its zero
// value is unanswered.
type Approval struct {
	ID      string
	Action  Action
	Why     string
	Asked   time.Time
	Expires time.Time
	Answer  *Answer
}

// An Answer is what a human said. Its zero value denies, once.
type Answer struct {
	Verdict Verdict
	Scope   Scope
	By      string
	At      time.Time
}

// A Grant is what an answer "always" or "for this session" leaves behind.
type Grant struct {
	Rule    Rule
	Session string // "" for always
	By      string
	At      time.Time
}

// A Secret is a value in the vault. It prints as [redacted], or as an address,
// whatever the verb: the value stands behind a function, which fmt does not
// call where it can't call our methods (%p, unexported fields).
type Secret struct{ value func() []byte }

// NewSecret takes ownership of value.
func NewSecret(value []byte) Secret { return Secret{value: func() []byte { return value }} }

// Reveal returns the value itself, nil for the zero Secret. Each call needs
// review: it is the one way a secret leaves its box.
func (s Secret) Reveal() []byte {
	if s.value == nil {
		return nil
	}
	return s.value()
}

// Format writes "[redacted]" for every verb.
func (s Secret) Format(f fmt.State, _ rune) { io.WriteString(f, s.String()) }

// String returns "[redacted]".
func (s Secret) String() string { return "[redacted]" }

// MarshalText writes "[redacted]".
func (s Secret) MarshalText() ([]byte, error) { return []byte("[redacted]"), nil }

// A Binding says where a secret may be put. The zero Binding names nowhere.
type Binding struct {
	Secret string // its name in the vault
	Host   string // into requests to this host …
	Header string // … in this header
	File   string // as this masked file
	Env    string // as this variable, the last resort
}
