package gateway

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Bounds of calls.
const (
	maxWaiting   = 64               // that wait for one server
	maxRounds    = 16               // in which a server asks for more
	maxSuspended = 256              // that wait for their clients, of all servers
	suspendTime  = 10 * time.Minute // for a client to say the call again
	lastTime     = 5 * time.Second  // for a server that can't be talked to, to end
)

// A call is one request of a client to a server.
type call struct {
	id     string // unguessable: who knows it may go on with the call
	b      *backend
	front  *mcp.ServerSession
	about  string // which the client must say again to go on
	token  any    // under which the client wants to be told of progress; nil: it does not
	ctx    context.Context
	cancel context.CancelFunc
	work   *work
	asks   chan *question
	done   chan struct{}
	result mcp.Result // once done
	err    error

	mu        sync.Mutex
	where     context.Context // of the client's request that is under way
	asked     *question       // for which the call is suspended
	questions int             // of the server, so far
}

// A work is what a call does at a server, once or, with what the server has
// asked for, again.
type work struct {
	method string
	params map[string]any
	read   func(json.RawMessage) (mcp.Result, error)
	// fits reports whether the server that runs now is the one that was decided
	// about; nil: nothing depends on that.
	fits func() bool
}

// A round is what one more request to a server carries.
type round struct {
	responses mcp.InputResponseMap
	state     string
	token     string // of progress; "" where no progress is wanted
}

// send puts one round of a call to the server.
func (w *work) send(ctx context.Context, r *running, in round) (*sent, error) {
	params := maps.Clone(w.params)
	if in.responses != nil {
		params["inputResponses"] = in.responses
	}
	if in.state != "" {
		params["requestState"] = in.state
	}
	return r.wire.send(ctx, w.method, params, in.token)
}

// begin sends a call on its way.
func (b *backend) begin(ctx context.Context, front *mcp.ServerSession, about string, token any, w *work) (*call, error) {
	c := &call{
		id: rand.Text(), b: b, front: front, about: about, token: token, work: w, where: ctx, asks: make(chan *question), done: make(chan struct{}),
	}
	if err := b.enter(ctx); err != nil {
		return nil, err
	}
	// The call outlives the request that brings it where the client is asked for
	// more; wait ends it with the request otherwise.
	c.ctx, c.cancel = context.WithTimeout(b.g.ctx, b.Limits.Call)
	b.mu.Lock()
	b.calls[c] = struct{}{}
	b.mu.Unlock()
	b.g.mu.Lock()
	b.g.active[c.id] = c
	b.g.mu.Unlock()
	return c, nil
}

// enter waits for a slot of the server's.
func (b *backend) enter(ctx context.Context) error {
	b.mu.Lock()
	full := b.waiting >= maxWaiting
	b.waiting++
	b.mu.Unlock()
	defer func() { b.mu.Lock(); b.waiting--; b.mu.Unlock() }()
	if full {
		return fmt.Errorf("%d calls wait for the server %q already; wait for some of them to end", maxWaiting, b.Name)
	}
	select {
	case b.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-b.g.ctx.Done():
		return errGone
	}
}

// over releases what a call holds.
func (c *call) over() {
	c.cancel()
	b := c.b
	<-b.slots
	b.mu.Lock()
	delete(b.calls, c)
	b.mu.Unlock()
	b.g.mu.Lock()
	delete(b.g.active, c.id)
	delete(b.g.suspended, c.id)
	b.g.mu.Unlock()
	close(c.done)
}

// run returns a call's result, or what the client must be asked first. Nearly all calls
// end with the server's first answer, and need no second goroutine.
func (c *call) run(ctx context.Context) (mcp.Result, *question, error) {
	stop := context.AfterFunc(ctx, c.cancel)
	defer stop()
	r, s, err := c.start()
	if err != nil {
		c.over()
		return nil, nil, err
	}
	select {
	case a := <-s.answer:
		result, err := c.read(r, s, a)
		if asks, _ := wants(result); asks == nil || err != nil {
			c.b.touch(r)
			c.over()
			return result, nil, err
		}
		c.goOn(r, func() (mcp.Result, error) { return result, nil })
	case q := <-c.asks:
		c.goOn(r, func() (mcp.Result, error) { return c.await(r, s) })
		return nil, q, c.suspend(q)
	case <-c.ctx.Done():
		c.goOn(r, func() (mcp.Result, error) { return c.await(r, s) })
	}
	return c.wait(ctx)
}

// goOn carries the call on beside the client's request.
func (c *call) goOn(r *running, first func() (mcp.Result, error)) {
	c.b.g.work.Go(func() {
		defer c.over()
		defer c.b.touch(r)
		c.result, c.err = c.carry(r, first)
	})
}

// start sends the call's first round.
func (c *call) start() (*running, *sent, error) {
	r, err := c.b.get(c.ctx, c.front)
	if err != nil {
		return nil, nil, err
	}
	c.b.touch(r)
	if c.work.fits != nil && !c.work.fits() {
		return nil, nil, errOther
	}
	s, err := c.work.send(c.ctx, r, c.round())
	if err != nil {
		return nil, nil, c.explain(r, err)
	}
	return r, s, nil
}

func (c *call) round() round {
	if c.token == nil {
		return round{}
	}
	return round{token: c.id}
}

// await waits for the answer to a round.
func (c *call) await(r *running, s *sent) (mcp.Result, error) {
	select {
	case a := <-s.answer:
		return c.read(r, s, a)
	case <-c.ctx.Done():
		s.giveUp(c.ctx.Err())
		return nil, c.explain(r, c.ctx.Err())
	}
}

// read is what the server has answered.
func (c *call) read(r *running, s *sent, a *jsonrpc.Response) (mcp.Result, error) {
	text, err := s.result(a)
	if err != nil {
		return nil, c.explain(r, err)
	}
	result, err := c.work.read(text)
	if err != nil {
		return nil, fmt.Errorf("the server %q answered with what can't be read: %s", c.b.Name, line(err.Error()))
	}
	return result, nil
}

// carry does the work after its first answer, in as many rounds as the server
// needs.
func (c *call) carry(r *running, first func() (mcp.Result, error)) (mcp.Result, error) {
	result, err := first()
	for range maxRounds {
		if err != nil {
			return nil, err
		}
		asks, state := wants(result)
		if asks == nil {
			return result, nil
		}
		in := c.round()
		if in.responses, err = c.answersFor(asks); err != nil {
			return nil, err
		}
		in.state = state
		s, err2 := c.work.send(c.ctx, r, in)
		if err2 != nil {
			return nil, c.explain(r, err2)
		}
		result, err = c.await(r, s)
	}
	return nil, fmt.Errorf("the server %q asks for more after %d rounds", c.b.Name, maxRounds)
}

// wants is what a result asks for, if the result is not final yet.
func wants(r mcp.Result) (mcp.InputRequestMap, string) {
	switch r := r.(type) {
	case *mcp.CallToolResult:
		return r.InputRequests, r.RequestState
	case *mcp.GetPromptResult:
		return r.InputRequests, r.RequestState
	case *mcp.ReadResourceResult:
		return r.InputRequests, r.RequestState
	}
	return nil, ""
}

// explain says what an error of a server's means.
func (c *call) explain(r *running, err error) error {
	var said *jsonrpc.Error
	switch {
	case errors.As(err, &said):
		return fmt.Errorf("the server %q answered with an error: %s", c.b.Name, c.b.g.clean(line(said.Message)))
	case errors.Is(err, errUnread):
		return fmt.Errorf("the server %q has not read the call within %v, and is ended", c.b.Name, c.b.Limits.Call)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(c.ctx.Err(), context.DeadlineExceeded):
		c.b.g.work.Go(func() { c.b.probe(r) })
		return fmt.Errorf("the server %q has not answered within %v; the call was taken back", c.b.Name, c.b.Limits.Call)
	case c.ctx.Err() != nil:
		return c.ctx.Err()
	}
	select {
	case <-r.ended:
		c.b.mu.Lock()
		defer c.b.mu.Unlock()
		return fmt.Errorf("the server %q ended during the call: %s", c.b.Name, c.b.why)
	case <-time.After(lastTime):
	case <-c.ctx.Done():
	}
	return fmt.Errorf("the server %q can't be talked to: %s", c.b.Name, line(err.Error()))
}

// probe ends a server that does not even answer that it lives.
func (b *backend) probe(r *running) {
	ctx, cancel := context.WithTimeout(b.g.ctx, b.Limits.Probe)
	defer cancel()
	var said *jsonrpc.Error
	if err := r.session.Ping(ctx, nil); err == nil || errors.As(err, &said) || b.g.ctx.Err() != nil {
		return
	}
	b.endFor(r, "it hangs: a call got no answer in time, and neither did a ping")
}

// wait returns the call's result, or what the client must be asked first. If the client
// gives up, the call is cancelled at the server.
func (c *call) wait(ctx context.Context) (mcp.Result, *question, error) {
	c.mu.Lock()
	c.where = ctx
	c.mu.Unlock()
	stop := context.AfterFunc(ctx, c.cancel)
	defer stop()
	select {
	case <-c.done:
		return c.result, nil, c.err
	case q := <-c.asks:
		return nil, q, c.suspend(q)
	}
}

// request is the context of the client's request that is under way.
func (c *call) request() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.where
}

// suspend keeps a call until its client has answered.
func (c *call) suspend(q *question) error {
	g := c.b.g
	g.mu.Lock()
	full := len(g.suspended) >= maxSuspended
	if !full {
		g.suspended[c.id] = c
	}
	g.mu.Unlock()
	if full {
		c.cancel()
		return fmt.Errorf("%d calls wait for answers of their clients already", maxSuspended)
	}
	c.mu.Lock()
	c.asked = q
	c.mu.Unlock()
	late := time.AfterFunc(suspendTime, c.cancel)
	q.stopTimer = func() { late.Stop() }
	return nil
}

// resume goes on with a call whose client has been asked.
func (g *Gateway) resume(ctx context.Context, state, about string, answers mcp.InputResponseMap) (*call, error) {
	g.mu.Lock()
	c := g.suspended[state]
	if c != nil && c.about == about {
		delete(g.suspended, state)
	} else {
		c = nil
	}
	g.mu.Unlock()
	if c == nil {
		return nil, errors.New("no such call waits for an answer: it was another one, or has been given up; call again without requestState")
	}
	c.mu.Lock()
	q := c.asked
	c.where, c.asked = ctx, nil
	c.mu.Unlock()
	q.stopTimer()
	q.answer <- answers[questionKey]
	return c, nil
}
