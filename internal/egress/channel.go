package egress

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/bawn-dev/bawn/internal/strictjson"
)

// maxLine bounds one message, in bytes.
const maxLine = 8 << 20

// A Channel carries messages over a stream. Send may be called by several
// goroutines, Receive by one.
type Channel struct {
	rwc io.ReadWriteCloser
	in  *bufio.Scanner
	mu  sync.Mutex
}

// NewChannel speaks over rwc, which Close closes.
func NewChannel(rwc io.ReadWriteCloser) *Channel {
	in := bufio.NewScanner(rwc)
	in.Buffer(nil, maxLine)
	in.Split(wholeLines)
	return &Channel{rwc: rwc, in: in}
}

// wholeLines is a bufio.SplitFunc. A line without a line end is an error: its
// writer died while writing it.
func wholeLines(data []byte, atEOF bool) (advance int, line []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF && len(data) > 0 {
		return 0, nil, io.ErrUnexpectedEOF
	}
	return 0, nil, nil
}

// Send writes one message. It refuses one of which not exactly one field is
// set.
func (c *Channel) Send(m Message) error {
	if err := m.check(); err != nil {
		return err
	}
	line, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if len(line) >= maxLine {
		return fmt.Errorf("a message of %d bytes is too long; want less than %d", len(line), maxLine)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err = c.rwc.Write(append(line, '\n'))
	return err
}

// Receive returns the next message; io.EOF when the other side is gone. A line
// with a field that is not known, or of which not exactly one is set, is an
// error: what it was meant to say nobody knows.
func (c *Channel) Receive() (Message, error) {
	var m Message
	if !c.in.Scan() {
		if err := c.in.Err(); err != nil {
			return m, err
		}
		return m, io.EOF
	}
	if err := decode(c.in.Bytes(), &m); err != nil {
		return Message{}, fmt.Errorf("message of the relay can't be read: %w", err)
	}
	return m, nil
}

func decode(line []byte, m *Message) error {
	if err := strictjson.Decode(line, m); err != nil {
		return err
	}
	return m.check()
}

// check returns an error unless exactly one field is set, and means something.
func (m *Message) check() error {
	set := 0
	for _, is := range []bool{
		m.Hello != nil, m.Config != nil, m.Ready != nil, m.Placed, m.Serving, m.Ask != nil, m.Withdraw != 0, m.Answer != nil, m.Denial != nil, m.Failed != "",
	} {
		if is {
			set++
		}
	}
	switch {
	case set != 1:
		return fmt.Errorf("%d of the message's fields are set; want exactly one", set)
	case m.Ask != nil && !m.Ask.Action.Valid():
		return errors.New("the question is about no action")
	case m.Denial != nil && m.Denial.Operation.String() == "invalid":
		return errors.New("the denial is of no operation")
	}
	return nil
}

// Close ends both directions.
func (c *Channel) Close() error { return c.rwc.Close() }

// ErrGone says that the relay has ended.
var ErrGone = errors.New("the relay of the session's network has ended")
