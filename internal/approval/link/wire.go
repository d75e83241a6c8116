// Package link carries approvals between the hosts of sessions and the relay,
// over a unix socket, as lines of JSON. It stays lean: every bawn run links it.
package link

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval"
	"github.com/bawn-dev/bawn/internal/strictjson"
)

// maxLine bounds one message in bytes: a question's text, each byte of it
// escaped in JSON, and what stands around it.
const maxLine = 2 << 20

// patience is how long the other side may leave a message unread.
const patience = 10 * time.Second

// A request is a message of a host: one of the fields. Answer carries the number
// under which the relay replies.
type request struct {
	Key      string             `json:"key,omitempty"`    // first of all, see KeyOf
	Secret   string             `json:"secret,omitempty"` // beside it: who asks, see Options.Secret
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

// A reply is what the relay says: Refused and then nothing more, Ready once, or
// one about the question ID or the request Number.
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

// shown is what is said of a question: whose it is concerns the relay alone.
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
	conn net.Conn
	in   *bufio.Reader
	mu   sync.Mutex
}

func newLine(conn net.Conn) *line { return &line{conn: conn, in: bufio.NewReaderSize(conn, 64<<10)} }

// send writes one message. It fails if the peer does not read the message in time.
func (l *line) send(message any) error {
	data, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if len(data) >= maxLine {
		return fmt.Errorf("a message of %d bytes is too long; want less than %d", len(data), maxLine)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.conn.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err := l.conn.Write(append(data, '\n')); err != nil {
		return errors.Join(err, l.conn.Close()) // half a message may be out
	}
	return nil
}

// receive reads one message into m. A line without a line end is an error.
func (l *line) receive(m any) error {
	var whole []byte
	for {
		part, err := l.in.ReadSlice('\n')
		whole = append(whole, part...)
		switch {
		case len(whole) > maxLine:
			return fmt.Errorf("a message has more than %d bytes", maxLine)
		case err == nil:
			return decode(whole, m)
		case !errors.Is(err, bufio.ErrBufferFull):
			return err
		}
	}
}

// decode reads exactly one message.
func decode(data []byte, m any) error {
	if err := strictjson.Decode(data, m); err != nil {
		return fmt.Errorf("a message can't be read: %w", err)
	}
	return nil
}

// check wants exactly one field.
func (r *request) check() error {
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
