// Package approval holds the questions that only a human may answer, from the
// moment they are asked until they are answered or can no longer be answered.
//
// Every failure denies: an error of Ask, an answer that could not be recorded, and
// a question whose time is up.
package approval

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/bawn-dev/bawn"
)

// A Question is what a human is asked.
type Question struct {
	// ID is 26 characters (NewID), chosen by the asker. The same ID is the same
	// question, also after a restart of the relay.
	ID string `json:"id"`
	// Owner is the asker, as the relay has verified: a host of sessions, which
	// nobody else can impersonate ("" in a queue of a session's own). An ID is
	// bound to it, and only same questions of one owner are one.
	Owner string `json:"owner,omitempty"`
	// Top is the session whose host has passed the question on for a session below
	// it, at any depth. Each host sets it anew and ignores what the sessions below
	// say. It counts instead of Session and Parent where the question belongs.
	Top            string       `json:"top,omitempty"`
	Session        string       `json:"session"`
	Parent         string       `json:"parent,omitempty"`
	Agent          string       `json:"agent,omitempty"`
	Action         bawn.Action  `json:"action"`                  // exactly as it would be executed
	Canonical      string       `json:"canonical,omitempty"`     // the text that would run; "" where it is Action.Resource
	Reason         string       `json:"reason,omitempty"`        // of the policy
	Rule           string       `json:"rule,omitempty"`          // of the policy
	Contains       string       `json:"contains,omitempty"`      // what the sandbox would contain, one sentence
	Suggested      bawn.Verdict `json:"suggested,omitempty"`     // Ask is no suggestion
	SuggestedWhy   string       `json:"suggestedWhy,omitempty"`  // why that is suggested
	Always         []bawn.Rule  `json:"always,omitempty"`        // the narrowest rules that "always" would create
	Never          []bawn.Rule  `json:"never,omitempty"`         // the same for "never", a denial for good
	Covers         []string     `json:"covers,omitempty"`        // what else they would cover, examples
	NoAlways       string       `json:"noAlways,omitempty"`      // why there is no such rule
	Holds          string       `json:"holds,omitempty"`         // what a yes for the session counts for; "" is the action alone
	Single         bool         `json:"single,omitempty"`        // a yes counts once and is not remembered
	Justification  string       `json:"justification,omitempty"` // the agent's own words: untrusted
	Program        string       `json:"program,omitempty"`       // of a connection, and the command that started it: the guest's words
	Asked, Expires time.Time
}

// A State says how far a question is.
type State string

// A question is Pending until the first of the others, which then stays.
const (
	Pending   State = "pending"
	Answered  State = "answered"
	Expired   State = "expired"   // nobody answered in time: denied
	Withdrawn State = "withdrawn" // nobody waits for the answer any more
)

// A Record is a question with its state and outcome.
type Record struct {
	Question
	State   State       `json:"state"`
	Answer  bawn.Answer `json:"answer"`  // where State is Answered
	Settled time.Time   `json:"settled"` // when the state became final; zero while it is pending
	Waiting int         `json:"waiting"` // how many ask the same; of an answer, how many it is for
	// For is the asker whom a yes "once" was given to, Next the question that the
	// others are now, and More how many they are. Only who answers is told.
	For  string `json:"for,omitempty"`
	Next string `json:"next,omitempty"`
	More int    `json:"more,omitempty"`
}

// Once reports whether the answer is a yes to one asker.
func (r *Record) Once() bool {
	return r.State == Answered && r.Answer.Verdict == bawn.Allow && r.Answer.Scope == bawn.Once
}

// A Prompter puts questions to humans. *Queue (in the relay or in process) and
// *link.Client are Prompters.
type Prompter interface {
	// Ask puts q and waits for its answer. The end of ctx withdraws it. Every
	// error denies.
	Ask(ctx context.Context, q Question) (bawn.Answer, error)
	// Answer gives the answer to a question, once. All askers get it, but a yes "once"
	// only the one who has waited longest: the others become a new question. The error is
	// an *AnsweredError if somebody was first, ErrExpired, ErrWithdrawn or ErrUnknown if
	// there is nothing to answer.
	Answer(ctx context.Context, id string, a bawn.Answer) (Record, error)
}

// An Inbox shows humans the questions, and takes their answers. *Queue is one.
type Inbox interface {
	// Answer is Prompter's.
	Answer(ctx context.Context, id string, a bawn.Answer) (Record, error)
	// List returns all that is pending, oldest first.
	List(ctx context.Context) ([]Record, error)
	// Watch sends all that is pending and then each change, until ctx ends or
	// the reader falls too far behind; then it closes the channel.
	Watch(ctx context.Context) (<-chan Record, error)
}

// Why there is no answer.
var (
	ErrUnknown   = errors.New("no such question; \"bawn approvals\" lists what is pending")
	ErrExpired   = errors.New("nobody answered in time, so it is denied")
	ErrWithdrawn = errors.New("the question was withdrawn: nobody waits for its answer any more")
	ErrClosed    = errors.New("the queue of approvals is closed")
	// ErrMismatch refuses an ID that belongs to another question already: an
	// answer must never reach a question that it was not given for.
	ErrMismatch = errors.New("another question has this ID already; each question needs an ID of its own")
	// ErrSpent refuses a question of a session that has had too much written.
	ErrSpent = fmt.Errorf("the questions of this session and its children have taken their share of the disk, %d MiB, so nothing more is asked and it is denied; start another session", MaxWritten>>20)
	// ErrDetached is the cause (context.WithCancelCause) with which an asker's
	// context ends when its connection is lost: it may come back, so its
	// question is not withdrawn.
	ErrDetached = errors.New("the connection of the asker is lost")
)

// An AnsweredError says that somebody else was first. Record holds what stands.
type AnsweredError struct{ Record Record }

func (e *AnsweredError) Error() string {
	a := e.Record.Answer
	return fmt.Sprintf("question %q has been answered already: %v by %q at %s", e.Record.ID, a.Verdict, a.By, a.At.Format(time.RFC3339))
}

// A FullError refuses a question because too many are pending.
type FullError struct {
	What  string `json:"what"` // "of this session", "of this session and its children", "of this host", "in all", "bytes of text in all"
	Limit int    `json:"limit"`
}

func (e *FullError) Error() string {
	return fmt.Sprintf("too much is pending (%d %s); answer some of it first, see \"bawn approvals\"", e.Limit, e.What)
}

// NewID returns an ID for a new question: 128 random bits.
func NewID() string { return strings.ToLower(rand.Text()) }

// idLength is the length of an ID in characters (crypto/rand.Text).
const idLength = 26

func checkID(id string) error {
	bad := strings.IndexFunc(id, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '2' || r > '7') })
	if len(id) != idLength || bad >= 0 {
		return fmt.Errorf("ID %q is invalid; want %d characters of a-z and 2-7", id, idLength)
	}
	return nil
}
