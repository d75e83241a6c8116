package relay

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/bawn-dev/bawn"
)

// An approver puts each question to the human once: who asks the same while it
// is pending waits for the same answer, and an answer holds for the session.
// It is a bawn.Approver.
type approver struct {
	ask     bawn.Approver
	timeout time.Duration // how long a connection waits

	mu      sync.Mutex
	answers map[string]bawn.Answer
	pending map[string]*question
}

// A question is one that the human is looking at.
type question struct {
	done   chan struct{}
	answer bawn.Answer
	err    error
}

// errNobody says that there is no one to ask.
var errNobody = errors.New("nobody is there to be asked")

// NewApprover asks through ask, nil where nobody is there, and lets each question
// wait for timeout.
func NewApprover(ask bawn.Approver, timeout time.Duration) *approver {
	return &approver{ask: ask, timeout: timeout, answers: map[string]bawn.Answer{}, pending: map[string]*question{}}
}

// Approve returns the answer to the question that a stands for.
func (p *approver) Approve(ctx context.Context, a bawn.Action, d bawn.Decision) (bawn.Answer, error) {
	if p.ask == nil || p.timeout <= 0 {
		return bawn.Answer{}, errNobody
	}
	key := topic(a)
	p.mu.Lock()
	if answer, ok := p.answers[key]; ok {
		p.mu.Unlock()
		return answer, nil
	}
	q := p.pending[key]
	if q == nil {
		q = &question{done: make(chan struct{})}
		p.pending[key] = q
		go p.put(q, key, a, d)
	}
	p.mu.Unlock()
	select {
	case <-q.done:
		return q.answer, q.err
	case <-ctx.Done():
		return bawn.Answer{}, ctx.Err()
	}
}

// put asks. It does not end with the connection that asked first: others may
// wait by then, and the human is already reading.
func (p *approver) put(q *question, key string, a bawn.Action, d bawn.Decision) {
	ctx, cancel := context.WithTimeout(context.Background(), p.timeout)
	defer cancel()
	q.err = contained(func() (err error) {
		q.answer, err = p.ask.Approve(ctx, a, d)
		return err
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.pending, key)
	if q.err == nil && q.answer.Scope != bawn.Once {
		p.answers[key] = q.answer
	}
	close(q.done)
}

// topic is what an answer holds for: a host with its port, where the two ports of
// the web count as one; or one request, with its method or with what git would do.
// A yes to a fetch does not allow a push.
func topic(a bawn.Action) string {
	host, port, err := net.SplitHostPort(a.Resource)
	if err == nil && len(a.Args) == 0 && (port == "80" || port == "443") {
		return fmt.Sprintf("%v %v web %q", a.Kind, a.Operation, host)
	}
	return fmt.Sprintf("%v %v %q %q", a.Kind, a.Operation, a.Resource, a.Args)
}
