package egress

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/bawn-dev/bawn/internal/ipc"
)

// maxMessage bounds one message, in bytes.
const maxMessage = 8 << 20

// A Channel carries messages over a stream. Send may be called by several
// goroutines, Receive by one.
type Channel struct {
	rwc io.ReadWriteCloser
	in  *bufio.Reader
	mu  sync.Mutex
}

// NewChannel speaks over rwc, which Close closes.
func NewChannel(rwc io.ReadWriteCloser) *Channel {
	return &Channel{rwc: rwc, in: bufio.NewReader(rwc)}
}

// Send writes one message, with exactly one field set.
func (c *Channel) Send(m Message) error {
	frame, err := ipc.Append(nil, &m, maxMessage)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err = c.rwc.Write(frame)
	return err
}

// Receive returns the next message; io.EOF when the other side is gone.
func (c *Channel) Receive() (Message, error) {
	var m Message
	if err := ipc.Read(c.in, &m, maxMessage); errors.Is(err, io.EOF) {
		return Message{}, err
	} else if err != nil {
		return Message{}, fmt.Errorf("message of the relay can't be read: %w", err)
	}
	return m, nil
}

// Valid returns an error unless exactly one field is set, and means something.
func (m *Message) Valid() error {
	set := 0
	for _, is := range []bool{
		m.Hello != nil, m.Config != nil, m.Ready != nil, m.Placed, m.Serving, m.Ask != nil, m.Withdraw != 0, m.Answer != nil, m.Stale, m.Rules != nil, m.Denial != nil, m.Failed != "",
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
