package asking

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval"
	"github.com/bawn-dev/bawn/internal/policy/suggest"
)

// An open question is one that a human is looking at.
type open struct {
	approval.Question
	input *suggest.Input // nil if the question is not the policy's
	zone  string         // in which it was asked
	once  sync.Once
	done  chan struct{}
	// answer and err are its outcome, once done is closed.
	answer bawn.Answer
	err    error
}

func newOpen(q approval.Question) *open { return &open{Question: q, done: make(chan struct{})} }

// settle ends the question, once, and returns the answer that counts.
func (o *open) settle(a bawn.Answer, err error) (bawn.Answer, error) {
	o.once.Do(func() {
		o.answer, o.err = a, err
		close(o.done)
	})
	return o.answer, o.err
}

// retry is how long Bawn waits before it looks for the relay again.
const retry = 500 * time.Millisecond

// put asks until something stands. The end of ctx withdraws the question.
func (d *Prompter) put(ctx context.Context, o *open) (bawn.Answer, error) {
	ctx, cancel := context.WithDeadline(ctx, o.Expires)
	defer cancel()
	a := &o.Action
	if err := d.opts.Room(bawn.Event{Kind: a.Kind.String(), Resource: a.Resource, Args: a.Args, Dir: a.Dir, Rule: o.Rule, Reason: o.Reason}); err != nil {
		return bawn.Answer{}, fmt.Errorf("nobody is asked: %w", err)
	}
	if d.opts.DenyAway && !d.attended(ctx) {
		return bawn.Answer{}, d.nobody()
	}
	if err := d.enter(o); err != nil {
		return bawn.Answer{}, err
	}
	defer d.leave(o)
	go d.carry(ctx, o)
	select {
	case <-o.done:
	case <-ctx.Done():
		o.settle(bawn.Answer{}, ctx.Err())
	}
	return o.answer, o.err
}

// enter shows a question to every frontend.
func (d *Prompter) enter(o *open) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return approval.ErrClosed
	}
	if d.open[o.ID] != nil { // of a child that uses another's ID: an answer is for its own question
		return approval.ErrMismatch
	}
	d.open[o.ID] = o
	for f := range d.frontends {
		f.show(o)
	}
	return nil
}

// announce tells of a question that waits where no frontend shows it.
func (d *Prompter) announce(q approval.Question) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.frontends) == 0 && d.opts.Waiting != nil {
		go d.opts.Waiting(q)
	}
}

func (d *Prompter) leave(o *open) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.open, o.ID)
}

// maxFailures is how often a relay that can be reached may fail with one
// question before the session goes on without it.
const maxFailures = 3

// carry asks at the relay, or at the session's own queue if no relay runs. It asks
// again with the same ID whenever the relay has stopped or started.
func (d *Prompter) carry(ctx context.Context, o *open) {
	announce := sync.OnceFunc(func() { d.announce(o.Question) })
	for failures := 0; ; {
		prompter := d.where(ctx, failures < maxFailures)
		if prompter == nil { // there is no frontend, and no relay could be started
			if failures++; failures > maxFailures || d.stopped() {
				o.settle(bawn.Answer{}, d.nobody())
			}
			if !pause(ctx, o) {
				return
			}
			continue
		}
		announce()
		began := time.Now()
		answer, err := d.askAt(ctx, prompter, o)
		if time.Since(began) > retry {
			failures = 0 // it was in order, and has died since
		}
		switch {
		case err == nil || final(err) || prompter == approval.Prompter(d.own()) && !errors.Is(err, errMoved):
			o.settle(answer, err)
			return
		case ctx.Err() != nil || isDone(o):
			return
		case errors.Is(err, errMoved):
		default:
			failures++
			d.lose(prompter)
			if !pause(ctx, o) {
				return
			}
		}
	}
}

func isDone(o *open) bool {
	select {
	case <-o.done:
		return true
	default:
		return false
	}
}

// pause waits a little, unless the question is over.
func pause(ctx context.Context, o *open) bool {
	select {
	case <-time.After(retry):
		return true
	case <-ctx.Done():
	case <-o.done:
	}
	return false
}

// final reports whether asking anew would not help.
func final(err error) bool {
	var full *approval.FullError
	return errors.Is(err, approval.ErrSpent) || errors.Is(err, approval.ErrExpired) || errors.Is(err, approval.ErrWithdrawn) || errors.Is(err, approval.ErrMismatch) || errors.As(err, &full)
}

// errMoved says that a relay has come up, which is asked from now on.
var errMoved = errors.New("the question goes to the relay")

// askAt asks at one prompter. At the session's own it looks whether a relay comes
// up: the human who opens another frontend wants to see the question there.
func (d *Prompter) askAt(ctx context.Context, prompter approval.Prompter, o *open) (bawn.Answer, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-o.done: // a frontend's answer has settled it: nothing to withdraw, the prompter knows
			cancel(nil)
		case <-stop:
		}
	}()
	if q, own := prompter.(*approval.Queue); own && q == d.own() {
		go d.lookOut(ctx, cancel)
	}
	answer, err := prompter.Ask(ctx, o.Question)
	if errors.Is(context.Cause(ctx), errMoved) && err != nil {
		return bawn.Answer{}, errMoved
	}
	return answer, err
}

func (d *Prompter) lookOut(ctx context.Context, moved context.CancelCauseFunc) {
	for {
		select {
		case <-time.After(2 * retry):
		case <-ctx.Done():
			return
		}
		if d.connect(ctx, false) != nil {
			moved(fmt.Errorf("%w: %w", errMoved, approval.ErrDetached))
			return
		}
	}
}

// attended reports whether a frontend could answer now.
func (d *Prompter) attended(ctx context.Context) bool {
	d.mu.Lock()
	frontends := len(d.frontends)
	d.mu.Unlock()
	return frontends > 0 || d.connect(ctx, false) != nil
}

// where returns the prompter to ask at: the relay's, the session's own where a
// frontend is there to answer at it, or nil.
func (d *Prompter) where(ctx context.Context, relay bool) approval.Prompter {
	d.mu.Lock()
	frontends := len(d.frontends)
	d.mu.Unlock()
	if relay {
		if r := d.connect(ctx, frontends == 0); r != nil {
			return r
		}
	}
	if frontends == 0 {
		return nil
	}
	if q := d.own(); q != nil {
		return q
	}
	return nil
}

// connect returns the relay, or nil if no relay can be reached.
func (d *Prompter) connect(ctx context.Context, start bool) approval.Prompter {
	d.mu.Lock()
	relay := d.relay
	d.mu.Unlock()
	if relay != nil || d.opts.Relay == nil {
		return relay
	}
	relay, err := d.opts.Relay(ctx, start)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.why = err
	if err != nil {
		return nil
	}
	if d.relay == nil {
		d.relay = relay
	}
	return d.relay
}

// lose forgets a relay that failed.
func (d *Prompter) lose(prompter approval.Prompter) {
	d.mu.Lock()
	lost := d.relay == prompter
	if lost {
		d.relay = nil
	}
	d.mu.Unlock()
	if lost {
		hangUp(prompter)
	}
}

// hangUp ends the connection to a relay.
func hangUp(prompter approval.Prompter) {
	if c, ok := prompter.(io.Closer); ok {
		_ = c.Close() // it is done with
	}
}

// own returns the session's own queue.
func (d *Prompter) own() *approval.Queue {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.local == nil && !d.closed {
		q, err := approval.NewQueue(context.Background(), approval.Options{Now: d.opts.Now})
		if err != nil {
			return nil
		}
		d.local = q
	}
	return d.local
}

// patient is how often a frontend's answer is offered to a relay that is away
// before it counts without it.
const patient = 5

// landed settles the question that an answer is for. A yes "once" to a question
// with several askers is for the one who has waited longest; o is then open as
// before.
func (d *Prompter) landed(o *open, rec approval.Record) (stands bawn.Answer, mine bool, err error) {
	if rec.Once() && rec.For != o.ID {
		d.mu.Lock()
		o = d.open[rec.For]
		d.mu.Unlock()
		if o == nil { // of another session
			return rec.Answer, true, nil
		}
	}
	stands, err = o.settle(rec.Answer, nil)
	return stands, err == nil && stands == rec.Answer, err
}

// alike counts the questions that are the same as o, including o.
func (d *Prompter) alike(o *open) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 1
	for _, other := range d.open {
		if other != o && !isDone(other) && approval.Same(&o.Question, &other.Question) {
			n++
		}
	}
	return n
}

// submit gives a frontend's answer. It returns the answer that counts, which is this
// one or the one that came first, or an error if no answer counts. mine says
// whether this answer came first.
func (d *Prompter) submit(ctx context.Context, o *open, a bawn.Answer) (stands bawn.Answer, mine bool, err error) {
	for try := 0; try < patient && !isDone(o) && ctx.Err() == nil; try++ {
		prompter := d.where(ctx, true)
		if prompter == nil {
			break
		}
		rec, err := prompter.Answer(ctx, o.ID, a)
		var first *approval.AnsweredError
		switch {
		case err == nil:
			return d.landed(o, rec)
		case errors.As(err, &first):
			stands, _, err = d.landed(o, first.Record)
			return stands, false, err
		case errors.Is(err, approval.ErrExpired):
			stands, err = o.settle(bawn.Answer{}, err)
			return stands, false, err
		}
		pause(ctx, o) // it is not registered yet, or the relay is away
	}
	stands, err = o.settle(a, nil) // no other answer can exist or arrive
	return stands, err == nil && stands == a, err
}

// reachable reports whether other frontends than the session's own may have a
// question.
func (d *Prompter) reachable() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.relay != nil
}
