package link

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval"
	"github.com/bawn-dev/bawn/internal/atomicfile"
	"github.com/bawn-dev/bawn/internal/peercred"
)

// ErrLost says that the relay went away over an answer: it may or may not
// count. Ask returns the answer that counts.
var ErrLost = errors.New("the relay went away while it was told an answer, which may or may not count")

// A RefusedError says that the relay does not speak to us.
type RefusedError struct{ Why string }

func (e *RefusedError) Error() string { return "the relay refuses to be spoken to: " + e.Why }

// How long a host waits before it tries again to reach the relay.
const (
	firstPause = 20 * time.Millisecond
	maxPause   = 200 * time.Millisecond
	moment     = 2 * maxPause // within which a running relay is reached again
)

// maxTaken bounds the questions that a new relay is told to be taken back. An
// older one has expired, as a rule, or goes with its session.
const maxTaken = 64

// Options of a Client.
type Options struct {
	Path            string                      // of hosts.sock
	Session, Parent string                      // of the first session, see Client.Register
	Start           func(context.Context) error // starts a relay where none listens (Ensure); nil waits for one
	// Secret proves to a relay, also to the next one, who has asked a question:
	// only that client can answer it, withdraw it or see it. "" is this process's.
	Secret string
}

// ownSecret is this process's.
var ownSecret = sync.OnceValue(rand.Text)

// A Client is a host's side of hosts.sock: an approval.Prompter. When the relay goes
// away it waits for the next one and asks again with the same IDs.
type Client struct {
	opts Options
	ctx  context.Context
	end  context.CancelFunc
	done chan struct{}

	mu       sync.Mutex
	sessions map[string]string // parents, by session
	line     *line             // nil while there is no relay
	up       chan struct{}     // closed while there is one
	next     uint64
	asks     map[string]*ask
	taken    []approval.Question   // back; a relay that has died since may not know
	calls    map[uint64]chan reply // answers that are being taken; each has room for one reply, and is closed when the connection is lost
}

var _ approval.Prompter = (*Client)(nil)

// An ask is a question that waits for its answer.
type ask struct {
	question approval.Question
	outcome  chan reply // has room for one
}

// Dial connects to the relay, which it starts where it has to and can.
func Dial(ctx context.Context, o Options) (*Client, error) {
	c := &Client{
		opts: o, done: make(chan struct{}), sessions: map[string]string{}, asks: map[string]*ask{}, calls: map[uint64]chan reply{},
		up: make(chan struct{}),
	}
	if o.Session != "" {
		c.sessions[o.Session] = o.Parent
	}
	l, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	c.ctx, c.end = context.WithCancel(context.WithoutCancel(ctx))
	if err := c.introduce(l); err != nil { // it can be asked from here on
		c.end()
		return nil, errors.Join(fmt.Errorf("reach the relay: %w", err), l.conn.Close())
	}
	go c.run(l)
	return c, nil
}

// Close ends the connection; what has been asked stays with the relay for a
// while, and is then withdrawn.
func (c *Client) Close() error {
	c.end()
	c.mu.Lock()
	if c.line != nil {
		c.line.conn.Close()
	}
	c.mu.Unlock()
	<-c.done
	return nil
}

// Register tells the relay of a further session of this host.
func (c *Client) Register(session, parent string) {
	c.mu.Lock()
	l := c.line
	c.sessions[session] = parent
	c.mu.Unlock()
	if l != nil {
		_ = l.send(request{Hello: &hello{session, parent}}) // it is said again to the next relay
	}
}

// connect returns a connection over which the relay has said that it is ready.
func (c *Client) connect(ctx context.Context) (*line, error) {
	conn, err := dial(c.opts.Path)
	if err != nil && c.opts.Start != nil {
		if err := c.opts.Start(ctx); err != nil {
			return nil, fmt.Errorf("start the relay: %w", err)
		}
		conn, err = dial(c.opts.Path)
	}
	if err != nil {
		return nil, fmt.Errorf("reach the relay: %w; \"bawn serve\" starts one", err)
	}
	l, err := newLine(conn)
	if err == nil {
		err = greet(l)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	key, err := atomicfile.Read(KeyOf(c.opts.Path), 1024)
	if err == nil {
		err = l.send(request{Key: string(key), Secret: cmp.Or(c.opts.Secret, ownSecret())})
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("show the relay its key: %w", err), conn.Close())
	}
	return l, nil
}

func dial(path string) (net.Conn, error) {
	return net.DialTimeout("unix", path, patience)
}

// greet wants the relay to be of our own user, and to be ready.
func greet(l *line) error {
	relay, err := peercred.Of(l.conn)
	if err != nil {
		return err
	}
	if err := relay.Close(); err != nil {
		return err
	}
	if relay.UID != os.Geteuid() {
		return fmt.Errorf("the relay is of user %d; want %d", relay.UID, os.Geteuid())
	}
	if err := l.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	var r reply
	if err := l.receive(&r); err != nil {
		return fmt.Errorf("the relay does not greet: %w", err)
	}
	if r.Refused != "" || !r.Ready {
		return &RefusedError{r.Refused}
	}
	return l.conn.SetReadDeadline(time.Time{})
}

// run keeps a connection until the client is closed.
func (c *Client) run(l *line) {
	defer close(c.done)
	for pause := firstPause; ; {
		if l != nil {
			c.serve(l)
			pause = firstPause
		}
		select {
		case <-c.ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, maxPause)
		l, _ = c.connect(c.ctx) // it is tried again
	}
}

// introduce tells a relay of all sessions and questions, and makes the
// connection to it the one that is used. A second call changes nothing.
func (c *Client) introduce(l *line) error {
	c.mu.Lock()
	known := c.line == l
	c.mu.Unlock()
	told := map[string]bool{}
	for !known {
		say := c.untold(l, told)
		if len(say) == 0 {
			break
		}
		for _, r := range say {
			if err := l.send(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// serve says hello and asks again what waits, and then hears the relay out.
func (c *Client) serve(l *line) {
	defer c.lost()
	defer l.conn.Close()
	if c.introduce(l) != nil {
		return
	}
	for {
		var r reply
		if l.receive(&r) != nil {
			return
		}
		c.hear(r)
	}
}

// untold returns what the relay must know and was not told. When that is
// nothing, the line is everybody's.
func (c *Client) untold(l *line, told map[string]bool) (say []request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		l.conn.Close()
	}
	for session, parent := range c.sessions {
		if !told["session "+session] {
			told["session "+session] = true
			say = append(say, request{Hello: &hello{session, parent}})
		}
	}
	for id, a := range c.asks {
		if !told[id] {
			told[id] = true
			say = append(say, request{Ask: &a.question})
		}
	}
	for _, q := range c.taken {
		if !told["taken "+q.ID] && time.Now().Before(q.Expires) {
			told["taken "+q.ID] = true
			say = append(say, request{Retract: &q})
		}
	}
	if len(say) > 0 {
		return say
	}
	for id := range told { // withdrawn while it was being asked
		if c.asks[id] == nil && !strings.Contains(id, " ") {
			say = append(say, request{Withdraw: id})
			delete(told, id)
		}
	}
	if len(say) == 0 {
		c.line = l
		close(c.up)
	}
	return say
}

// hear passes on the relay's messages.
func (c *Client) hear(r reply) {
	c.mu.Lock()
	a, call := c.asks[r.ID], c.calls[r.Number]
	if a != nil {
		delete(c.asks, r.ID)
	}
	delete(c.calls, r.Number)
	c.mu.Unlock()
	if a != nil {
		a.outcome <- r
	}
	if call != nil {
		call <- r
	}
}

// lost ends what the next relay does not know.
func (c *Client) lost() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.line != nil {
		c.line, c.up = nil, make(chan struct{})
	}
	for n, call := range c.calls {
		close(call)
		delete(c.calls, n)
	}
}

// Ask is approval.Prompter's. While there is no relay the question waits, until it
// expires.
func (c *Client) Ask(ctx context.Context, q approval.Question) (bawn.Answer, error) {
	q, err := approval.Tidy(q, time.Now())
	if err != nil {
		return bawn.Answer{}, err
	}
	a := &ask{q, make(chan reply, 1)}
	if err := c.put(a); err != nil {
		return bawn.Answer{}, err
	}
	late := time.NewTimer(time.Until(q.Expires) + patience) // the relay says it first
	defer late.Stop()
	select {
	case r := <-a.outcome:
		return r.outcome()
	case <-ctx.Done():
		err = ctx.Err()
	case <-late.C:
		err = approval.ErrExpired
	case <-c.ctx.Done():
		err = approval.ErrClosed
	}
	c.withdraw(a)
	return bawn.Answer{}, err
}

func (r *reply) outcome() (bawn.Answer, error) {
	switch {
	case r.Failed != nil:
		return bawn.Answer{}, r.Failed.err()
	case r.Answer == nil:
		return bawn.Answer{}, errors.New("the relay gave neither an answer nor a reason")
	}
	return *r.Answer, nil
}

func (c *Client) put(a *ask) error {
	c.mu.Lock()
	if c.asks[a.question.ID] != nil {
		c.mu.Unlock()
		return approval.ErrMismatch
	}
	c.asks[a.question.ID] = a
	l := c.line
	c.mu.Unlock()
	if l != nil {
		_ = l.send(request{Ask: &a.question}) // the next relay is asked then
	}
	return nil
}

func (c *Client) withdraw(a *ask) {
	c.mu.Lock()
	delete(c.asks, a.question.ID)
	if len(c.taken) >= maxTaken {
		c.taken = slices.Delete(c.taken, 0, 1)
	}
	c.taken = append(c.taken, a.question)
	l := c.line
	c.mu.Unlock()
	if l != nil && c.ctx.Err() == nil {
		_ = l.send(request{Withdraw: a.question.ID}) // without us the relay finds out
	}
}

// await returns the connection, once there is one.
func (c *Client) await(ctx context.Context) (*line, error) {
	for {
		c.mu.Lock()
		l, up := c.line, c.up
		c.mu.Unlock()
		if l != nil {
			return l, nil
		}
		select {
		case <-up:
		case <-ctx.Done():
			return nil, fmt.Errorf("the relay is away: %w", ctx.Err())
		case <-c.ctx.Done():
			return nil, approval.ErrClosed
		}
	}
}

// Answer is approval.Prompter's, for what this client asks itself; all else is
// ErrUnknown. See ErrLost. An answer does not wait for the relay as a question
// does: the error comes when it is away for longer than a moment.
func (c *Client) Answer(ctx context.Context, id string, a bawn.Answer) (approval.Record, error) {
	soon, cancel := context.WithTimeout(ctx, moment)
	defer cancel()
	l, err := c.await(soon)
	if err != nil {
		return approval.Record{}, err
	}
	number, replied := c.expect(l)
	defer c.drop(number)
	if err := l.send(request{Answer: &answer{number, id, a}}); err != nil {
		return approval.Record{}, fmt.Errorf("tell the relay: %w", err)
	}
	select {
	case r, open := <-replied:
		switch {
		case open && r.Failed != nil:
			return approval.Record{}, r.Failed.err()
		case open && r.Record != nil:
			return *r.Record, nil
		}
		return approval.Record{}, ErrLost
	case <-ctx.Done():
		return approval.Record{}, ctx.Err()
	}
}

// expect returns a number for an answer over l, and where the reply to it comes.
// It is closed when the connection is lost.
func (c *Client) expect(l *line) (number uint64, replied chan reply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	replied = make(chan reply, 1)
	if c.line == l {
		c.calls[c.next] = replied
	} else { // gone again
		close(replied)
	}
	return c.next, replied
}

func (c *Client) drop(number uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, number)
}
