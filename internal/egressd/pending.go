package egressd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval"
)

// A pending joins equal questions while one of them is open, so that fifty
// connections to one host are one question. It keeps no answer: the session's
// prompter in bawn run does, and is asked each time. It is a bawn.Approver.
type pending struct {
	ask     bawn.Approver
	timeout time.Duration // how long a connection waits

	mu   sync.Mutex
	open map[approval.Digest]*joined
}

// A joined question is one that the human is looking at.
type joined struct {
	done   chan struct{}
	answer bawn.Answer
	err    error
	spent  bool // a yes "once" that one asker has taken; guarded by pending.mu
}

// errNobody says that there is no one to ask.
var errNobody = errors.New("nobody is there to be asked")

// newPending asks through ask, which may be nil, and lets each question wait for
// timeout.
func newPending(ask bawn.Approver, timeout time.Duration) *pending {
	return &pending{ask: ask, timeout: timeout, open: map[approval.Digest]*joined{}}
}

// can reports whether somebody could answer.
func (p *pending) can() bool { return p != nil && p.ask != nil && p.timeout > 0 }

// Approve returns the answer to the question that a stands for.
func (p *pending) Approve(ctx context.Context, a bawn.Action, d bawn.Decision) (bawn.Answer, error) {
	if !p.can() {
		return bawn.Answer{}, errNobody
	}
	key := approval.DigestOf("", &a, d.Canonical)
	for {
		q := p.join(ctx, key, a, d)
		select {
		case <-q.done:
		case <-ctx.Done():
			return bawn.Answer{}, ctx.Err()
		}
		if q.err != nil || p.take(q) {
			return q.answer, q.err
		}
	}
}

// join returns the open question, and asks it if no question is open.
func (p *pending) join(ctx context.Context, key approval.Digest, a bawn.Action, d bawn.Decision) *joined {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := p.open[key]
	if q == nil {
		q = &joined{done: make(chan struct{})}
		p.open[key] = q
		go p.put(context.WithoutCancel(ctx), q, key, a, d)
	}
	return q
}

// take reports whether the answer is for one more asker: a yes "once" is for one
// of them, and the others ask anew.
func (p *pending) take(q *joined) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if q.answer.Verdict != bawn.Allow || q.answer.Scope != bawn.Once {
		return true
	}
	first := !q.spent
	q.spent = true
	return first
}

// put asks. It does not end with the connection that asked first: others may
// wait by then, and the human is already reading.
func (p *pending) put(ctx context.Context, q *joined, key approval.Digest, a bawn.Action, d bawn.Decision) {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	q.answer, q.err = p.asked(ctx, a, d)
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, key)
	close(q.done)
}

// asked makes an error of a panic.
func (p *pending) asked(ctx context.Context, a bawn.Action, d bawn.Decision) (answer bawn.Answer, err error) {
	defer func() {
		if r := recover(); r != nil {
			answer, err = bawn.Answer{}, fmt.Errorf("panic: %v", r)
		}
	}()
	return p.ask.Approve(ctx, a, d)
}
