package bawn

import (
	"fmt"
	"io"
	"strconv"
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

// A Scope says how long a human's answer holds. The zero Scope is once.
type Scope uint8

const (
	Once Scope = iota
	ForSession
	Always
)

// An Answer is what a human said. Its zero value denies, once.
type Answer struct {
	Verdict Verdict
	Scope   Scope
	By      string
	At      time.Time
	Why     string // in the human's words, or ""
}

// Denial is what a guest is told of a no: that it was the human's, and their
// words, quoted, where there are any.
func (a Answer) Denial() string {
	if a.Why == "" {
		return "the human said no"
	}
	return "denied by the human: " + strconv.Quote(a.Why)
}

// A Secret is a value in the vault. It prints as [redacted], or as an address,
// whatever the verb. The value stands behind a function, which fmt does not
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

// A Place says where in a request a secret is put. The zero Place is nowhere.
type Place uint8

const (
	_       Place = iota
	Header        // the value of the header Binding.Name
	Bearer        // Authorization: Bearer VALUE
	Basic         // the password of Authorization: Basic; Binding.Name is the user
	InQuery       // the query parameter Binding.Name
	Signed        // the request is signed with it: AWS Signature Version 4; Binding.Name is REGION/SERVICE, "*" or "" any
)

var placeNames = []string{"", "header", "bearer", "basic", "query", "aws"}

// String returns the place's name, or "invalid".
func (p Place) String() string { return name(placeNames, uint8(p)) }

// MarshalText writes the place's name.
func (p Place) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText accepts exactly the names of the places.
func (p *Place) UnmarshalText(text []byte) error {
	n, err := unmarshalName("place", placeNames, text)
	*p = Place(n)
	return err
}

// A Binding says where a secret may be put. The zero Binding names nowhere.
type Binding struct {
	Secret string // its name in the vault
	Host   string // only into requests to this host (a netrule host) …
	Place  Place  // … and there only here
	Name   string // of the header or the parameter, the user of Basic, or what is Signed
	File   string // the guest finds the placeholder in this masked file, or "" …
	Format string // … which is written so: npmrc, netrc, kubeconfig, gh, aws, raw
	Env    string // and in this variable, or ""
	// Placeholder is what the guest holds in place of the value: of the same
	// shape, and worth nothing.
	Placeholder string
}
