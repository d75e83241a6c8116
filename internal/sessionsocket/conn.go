package sessionsocket

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bawn-dev/bawn/internal/intent"
	"github.com/bawn-dev/bawn/internal/ipc"
)

// A Conn is one guest at the session socket, after its first message. Send and Refuse
// may be called by several goroutines.
type Conn struct {
	wire    *ipc.Conn
	session string
	refused func(rule, reason string)
	ending  <-chan struct{}
	updates chan intent.Update
	turn    atomic.Bool // the guest's next statement may come
	closed  chan struct{}
	close   sync.Once
}

func newConn(ctx context.Context, wire *ipc.Conn, h Handlers) *Conn {
	return &Conn{wire: wire, session: h.Session, refused: h.Refused, ending: ctx.Done(), updates: make(chan intent.Update, 8), closed: make(chan struct{})}
}

// Updates delivers the guest's later messages. It is never closed: the
// handler's context ends with the guest.
func (c *Conn) Updates() <-chan intent.Update { return c.updates }

// Ending is closed when the session socket closes. A command's remaining processes may
// go on until then, also when the guest is gone.
func (c *Conn) Ending() <-chan struct{} { return c.ending }

// Send sends a reply. A guest that does not take it within SendWait is cut off.
func (c *Conn) Send(r intent.Reply) error {
	timer := time.AfterFunc(SendWait, c.Close)
	defer timer.Stop()
	if r.Exit != nil || r.Denied != nil {
		c.turn.Store(true) // first: the guest answers at once
	}
	err := c.wire.Send(&r)
	if err != nil {
		c.Close()
	}
	return err
}

// Refuse says that something does not happen, by which rule, why, and what to
// do. It has it recorded.
func (c *Conn) Refuse(rule, reason, remedy string) {
	if c.refused != nil {
		c.refused(rule, cut(reason))
	}
	c.Deny(rule, reason, remedy)
}

// Deny is Refuse for an action that the guard has denied, and recorded.
func (c *Conn) Deny(rule, reason, remedy string) {
	c.refuse(intent.Refusal{Rule: rule, Reason: reason, Remedy: remedy})
}

func (c *Conn) refuse(r intent.Refusal) {
	r.By, r.Session = "bawn", c.session
	_ = c.Send(intent.Reply{Denied: &r}) // a guest that is gone needs no answer
}

// Close ends the conversation. It may be called at any time and more than once.
func (c *Conn) Close() {
	c.close.Do(func() {
		close(c.closed)
		_ = c.wire.Close()
	})
}

// read passes the guest's messages on until it disconnects. It refuses
// unreadable messages, descriptors after the first message, and a statement
// sent before the end of the last is reported: statements are long, and only
// the next is kept.
func (c *Conn) read(gone context.CancelFunc) {
	defer gone()
	for {
		var u intent.Update
		files, err := c.wire.Receive(&u)
		closeAll(files)
		if err != nil || len(files) > 0 || u.Exec != nil && !c.turn.Swap(false) {
			return
		}
		select {
		case c.updates <- u:
		case <-c.closed:
			return
		}
	}
}
