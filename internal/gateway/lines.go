package gateway

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// lines is a connection of messages, a line of JSON each. The SDK's own reader
// uses a goroutine, parses each message two to four times, and allocates 32 KiB
// every time. That was a third of a call's processor time, garbage collection
// included.
type lines struct {
	in     io.ReadCloser
	out    io.WriteCloser
	most   int // bytes of one message
	buf    *bufio.Reader
	over   chan struct{} // closed by Close
	close  sync.Once
	queued []jsonrpc.Message // of a batch, that have not been read

	// bound limits how long a write waits for a peer that does not read: until the
	// write's context ends, or for patience. Nil means no limit.
	bound    func(time.Time) error
	patience time.Duration

	turn    chan struct{}           // to write; holds one
	batches map[jsonrpc.ID]*several // in which a request came
}

// blanks are JSON's (RFC 8259, section 2), and no others of Unicode's: who reads
// and who counts messages must agree on where one begins.
const blanks = " \t\r\n"

// A several is a batch of requests, which gets one answer.
type several struct {
	open    int // without an answer
	answers []json.RawMessage
}

func newLines(in io.ReadCloser, out io.WriteCloser, most int) *lines {
	return &lines{in: in, out: out, most: most, buf: bufio.NewReader(in), over: make(chan struct{}), turn: make(chan struct{}, 1), batches: map[jsonrpc.ID]*several{}}
}

// Connect makes it a transport of itself.
func (l *lines) Connect(context.Context) (mcp.Connection, error) { return l, nil }

// SessionID is that of no session.
func (l *lines) SessionID() string { return "" }

// Close ends it. A Read that waits ends if what it reads from can be closed
// under it; over says so in any case.
func (l *lines) Close() (err error) {
	l.close.Do(func() {
		close(l.over)
		err = errors.Join(l.in.Close(), l.out.Close())
	})
	return err
}

// Read returns the next message, for one goroutine at a time.
func (l *lines) Read(context.Context) (jsonrpc.Message, error) {
	for len(l.queued) == 0 {
		text, err := l.line()
		if err != nil {
			return nil, err
		}
		if text = bytes.Trim(text, blanks); len(text) == 0 {
			continue
		}
		if err := l.take(text); err != nil {
			return nil, err
		}
	}
	m := l.queued[0]
	l.queued = l.queued[1:]
	return m, nil
}

var errLong = errors.New("it sends a message that is longer than it may be")

// line reads one. It is valid until the next is read.
func (l *lines) line() ([]byte, error) {
	text, err := l.buf.ReadSlice('\n')
	if err == nil {
		return text, nil
	}
	whole := bytes.Clone(text)
	for errors.Is(err, bufio.ErrBufferFull) {
		if len(whole) > l.most {
			return nil, errLong
		}
		text, err = l.buf.ReadSlice('\n')
		whole = append(whole, text...)
	}
	switch {
	case len(whole) > l.most:
		return nil, errLong
	case errors.Is(err, io.EOF) && len(bytes.Trim(whole, blanks)) > 0:
		return whole, nil // the end comes with the next
	}
	return whole, err
}

// take takes a line apart.
func (l *lines) take(text []byte) error {
	if text[0] != '[' {
		m, err := message(text)
		l.queued = []jsonrpc.Message{m}
		return err
	}
	var all []json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil || len(all) == 0 {
		return fmt.Errorf("it sends several messages that can't be read: %w", err)
	}
	b := &several{}
	for _, text := range all {
		m, err := message(text)
		if err != nil {
			return err
		}
		l.queued = append(l.queued, m)
		if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() {
			if err := l.note(r.ID, b); err != nil {
				return err
			}
		}
	}
	return nil
}

// note keeps the answer to a request until its batch is complete.
func (l *lines) note(id jsonrpc.ID, b *several) error {
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	if l.batches[id] != nil {
		return fmt.Errorf("it sends the request %v twice", id.Raw())
	}
	b.open++
	l.batches[id] = b
	return nil
}

// message reads one. Its members are those of these names, to the letter.
func message(text []byte) (jsonrpc.Message, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("it sends what is no message: %w", err)
	}
	if string(all["jsonrpc"]) != `"2.0"` {
		return nil, fmt.Errorf("it sends what is no message: its version is %.20q; want %q", all["jsonrpc"], `"2.0"`)
	}
	id, err := idOf(all["id"])
	if err != nil {
		return nil, err
	}
	if name, is := all["method"]; is {
		r := &jsonrpc.Request{ID: id, Params: all["params"]}
		if err := json.Unmarshal(name, &r.Method); err != nil {
			return nil, fmt.Errorf("it sends what is no message: %w", err)
		}
		return r, nil
	}
	if !id.IsValid() {
		return nil, errors.New("it sends what is no message: neither a method nor an ID is there")
	}
	r := &jsonrpc.Response{ID: id, Result: all["result"]}
	if said := all["error"]; len(said) > 0 && string(said) != "null" {
		var e jsonrpc.Error
		if err := json.Unmarshal(said, &e); err != nil {
			return nil, fmt.Errorf("it sends an error that can't be read: %w", err)
		}
		r.Error = &e
	}
	return r, nil
}

// idOf reads an ID; without one it is not valid.
func idOf(text json.RawMessage) (jsonrpc.ID, error) {
	if len(text) == 0 {
		return jsonrpc.ID{}, nil
	}
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return jsonrpc.ID{}, err
	}
	return jsonrpc.MakeID(v)
}

// Write sends one message by one write, from any goroutine. Who waits for others
// to write waits no longer than ctx.
func (l *lines) Write(ctx context.Context, m jsonrpc.Message) error {
	text, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	select {
	case l.turn <- struct{}{}: // also where ctx is over: the SDK means it
	default:
		select {
		case l.turn <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	defer func() { <-l.turn }()
	if r, ok := m.(*jsonrpc.Response); ok {
		if text = l.gather(r.ID, text); text == nil {
			return nil
		}
	}
	return l.put(ctx, append(text, '\n'))
}

// errUnread says that a server left a message lying.
var errUnread = errors.New("it does not read what it is sent")

// put writes a line. If a part was written, the rest must follow. A line that was not
// begun is dropped when its time is over.
func (l *lines) put(ctx context.Context, text []byte) error {
	if l.bound == nil {
		_, err := l.out.Write(text)
		return err
	}
	until, ends := ctx.Deadline()
	if !ends {
		until = time.Now().Add(l.patience)
	}
	if err := l.bound(until); err != nil {
		return err
	}
	switch n, err := l.out.Write(text); {
	case !errors.Is(err, os.ErrDeadlineExceeded):
		return err
	case n == 0 && ends:
		return context.DeadlineExceeded
	}
	return errUnread
}

// gather returns what to send now: nil while other answers of the batch are missing.
func (l *lines) gather(id jsonrpc.ID, text []byte) []byte {
	b := l.batches[id]
	if b == nil {
		return text
	}
	delete(l.batches, id)
	b.answers = append(b.answers, text)
	if b.open--; b.open > 0 {
		return nil
	}
	all, err := json.Marshal(b.answers)
	if err != nil {
		return text // it was encoded just now
	}
	return all
}
