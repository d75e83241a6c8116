package egressd

import (
	"context"
	"sync"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/egress"
)

// asks puts questions to the human through `bawn run`, which has the terminal.
// It is a bawn.Approver.
type asks struct {
	send func(egress.Message) error
	now  func() time.Time

	mu      sync.Mutex
	last    uint64
	waiting map[uint64]chan bawn.Answer
}

func newAsks(send func(egress.Message) error, now func() time.Time) *asks {
	return &asks{send: send, now: now, waiting: map[uint64]chan bawn.Answer{}}
}

// Approve asks and waits for the answer until ctx ends, then takes the
// question back.
func (a *asks) Approve(ctx context.Context, action bawn.Action, d bawn.Decision) (bawn.Answer, error) {
	until, ok := ctx.Deadline()
	if !ok {
		until = a.now().Add(time.Minute)
	}
	id, answer := a.enter()
	defer a.leave(id)
	err := a.send(egress.Message{Ask: &egress.Question{ID: id, Action: action, Reason: d.Reason, Rule: d.Rule, Holds: d.Holds, Single: d.Single, Until: until, From: egress.ClientOf(ctx)}})
	if err != nil {
		return bawn.Answer{}, err
	}
	select {
	case got := <-answer:
		if got.By == "" {
			return bawn.Answer{}, errNobody
		}
		return got, nil
	case <-ctx.Done():
		_ = a.send(egress.Message{Withdraw: id}) // bawn is gone, or will see that its time is up
		return bawn.Answer{}, ctx.Err()
	}
}

func (a *asks) enter() (uint64, chan bawn.Answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last++
	c := make(chan bawn.Answer, 1)
	a.waiting[a.last] = c
	return a.last, c
}

func (a *asks) leave(id uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.waiting, id)
}

// answer takes the first answer to a question; any later one is too late.
func (a *asks) answer(got egress.Answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.waiting[got.ID]; c != nil {
		c <- got.Answer
		delete(a.waiting, got.ID)
	}
}
