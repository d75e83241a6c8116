// Package link carries approvals between the hosts of sessions and the relay,
// over a unix socket, in frames of package ipc. It stays lean: every bawn run
// links it.
package link

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval"
	"github.com/bawn-dev/bawn/internal/ipc"
)

// patience is how long the other side may leave a message unread.
const patience = 10 * time.Second

// limits of one message: a question's text, each byte of it escaped in JSON, and
// the other members.
var limits = ipc.Limits{Bytes: 2 << 20, Patience: patience}

// A request is a message of a host: one of the fields. Answer carries the number
// under which the relay replies.
type request struct {
	Key      string             `json:"key,omitempty"`    // first of all, see KeyOf
	Secret   string             `json:"secret,omitempty"` // beside it: the asker, see Options.Secret
	Hello    *hello             `json:"hello,omitempty"`
	Ask      *approval.Question `json:"ask,omitempty"`
	Withdraw string             `json:"withdraw,omitempty"` // the ID of a question
	Retract  *approval.Question `json:"retract,omitempty"`  // was withdrawn before this connection, perhaps unheard
	Answer   *answer            `json:"answer,omitempty"`
}

// A hello says that a session lives as long as the connection.
type hello struct {
	Session string `json:"session"`
	Parent  string `json:"parent,omitempty"`
}

type answer struct {
	Number uint64      `json:"number"`
	ID     string      `json:"id"`
	Answer bawn.Answer `json:"answer"`
}

// A reply is a message of the relay: Refused and then nothing more, Ready once,
// or one about the question ID or the request Number.
type reply struct {
	Refused string           `json:"refused,omitempty"`
	Ready   bool             `json:"ready,omitempty"`
	ID      string           `json:"id,omitempty"`     // of a question of which all is said now …
	Answer  *bawn.Answer     `json:"answer,omitempty"` // … which has this answer, or Failed
	Number  uint64           `json:"number,omitempty"` // of an answer that the host gave …
	Record  *approval.Record `json:"record,omitempty"` // … which counts, or Failed
	Failed  *failure         `json:"failed,omitempty"`
}

// A failure is an error on its way.
type failure struct {
	Code   string              `json:"code"`
	Text   string              `json:"text,omitempty"`
	Record *approval.Record    `json:"record,omitempty"`
	Full   *approval.FullError `json:"full,omitempty"`
}

// codes are the errors that callers branch on.
var codes = map[string]error{
	"unknown": approval.ErrUnknown, "expired": approval.ErrExpired, "withdrawn": approval.ErrWithdrawn,
	"mismatch": approval.ErrMismatch, "closed": approval.ErrClosed, "spent": approval.ErrSpent,
}

func failed(err error) *failure {
	var answered *approval.AnsweredError
	if errors.As(err, &answered) {
		return &failure{Code: "answered", Record: shown(answered.Record)}
	}
	var full *approval.FullError
	if errors.As(err, &full) {
		return &failure{Code: "full", Full: full}
	}
	for code, known := range codes {
		if errors.Is(err, known) {
			return &failure{Code: code}
		}
	}
	return &failure{Code: "failed", Text: err.Error()}
}

// shown is the part of a question that is shown: its owner concerns the relay
// alone.
func shown(r approval.Record) *approval.Record {
	r.Owner = ""
	return &r
}

func (f *failure) err() error {
	if f.Code == "full" && f.Full != nil {
		return f.Full
	}
	if f.Code == "answered" && f.Record != nil {
		return &approval.AnsweredError{Record: *f.Record}
	}
	if known := codes[f.Code]; known != nil {
		return known
	}
	return errors.New(f.Text)
}

// A line is one end of the connection. Many may send, one receives.
type line struct {
	*ipc.Conn
	conn net.Conn
}

func newLine(conn net.Conn) (*line, error) {
	socket, ok := conn.(ipc.Socket)
	if !ok {
		return nil, fmt.Errorf("BUG(bawn): %T is not a UNIX socket", conn)
	}
	c, err := ipc.New(socket, limits)
	return &line{c, conn}, err
}

// send writes one message. It fails, and closes the connection, if the peer does
// not read the message in time.
func (l *line) send(message any) error {
	if err := l.Send(message); err != nil {
		return errors.Join(err, l.conn.Close()) // half a message may be out
	}
	return nil
}

func (l *line) receive(message any) error {
	_, err := l.Receive(message)
	return err
}

// Valid wants exactly one field.
func (r request) Valid() error {
	set := 0
	for _, is := range []bool{r.Key != "", r.Hello != nil, r.Ask != nil, r.Withdraw != "", r.Retract != nil, r.Answer != nil} {
		if is {
			set++
		}
	}
	if set != 1 {
		return fmt.Errorf("%d of the message's fields are set; want exactly one", set)
	}
	if (r.Key == "") != (r.Secret == "") {
		return errors.New("a key and a secret come together, and with nothing else")
	}
	return nil
}
