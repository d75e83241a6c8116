package egressd

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/egress"
)

var question = bawn.Action{Kind: bawn.Network, Operation: bawn.Connect, Resource: "a.test:443"}

// approve asks in the background.
func approve(ctx context.Context, a *asks) <-chan bawn.Answer {
	got := make(chan bawn.Answer, 1)
	go func() {
		answer, err := a.Approve(ctx, question, bawn.Decision{Reason: "why", Rule: "rule"})
		if err != nil {
			answer = bawn.Answer{By: err.Error()}
		}
		got <- answer
	}()
	return got
}

// The first answer to a question counts; others, to it or to none, are nothing.
func TestFirstAnswerWins(t *testing.T) {
	box := newMailbox()
	a := newAsks(box.send, now)
	a.answer(egress.Answer{ID: 1, Answer: bawn.Answer{Verdict: bawn.Allow}}) // before it was asked
	first, second := approve(t.Context(), a), approve(t.Context(), a)
	q := (<-box.came).Ask
	other := (<-box.came).Ask
	if q.ID == other.ID || q.Reason != "why" || q.Rule != "rule" || q.Until.IsZero() {
		t.Fatalf("asked %+v and %+v", q, other)
	}
	a.answer(egress.Answer{ID: 99, Answer: bawn.Answer{Verdict: bawn.Allow}})
	a.answer(egress.Answer{})
	for _, by := range []string{"one", "two", "three"} { // none of them waits
		a.answer(egress.Answer{ID: q.ID, Answer: bawn.Answer{Verdict: bawn.Deny, By: by}})
		a.answer(egress.Answer{ID: other.ID, Answer: bawn.Answer{Verdict: bawn.Allow, By: by}})
	}
	got := []bawn.Answer{<-first, <-second}
	if got[0].By != "one" || got[1].By != "one" || got[0].Verdict == got[1].Verdict {
		t.Errorf("got %+v", got)
	}
	if len(a.waiting) != 0 {
		t.Errorf("%d questions are kept", len(a.waiting))
	}
}

// A question whose time is up is taken back, and an answer is too late then.
func TestWithdraw(t *testing.T) {
	box := newMailbox()
	a := newAsks(box.send, now)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	got := approve(ctx, a)
	id := (<-box.came).Ask.ID
	if m := <-box.came; m.Withdraw != id {
		t.Errorf("said %+v; want the question taken back", m)
	}
	if answer := <-got; answer.By != context.DeadlineExceeded.Error() {
		t.Errorf("got %+v", answer)
	}
	a.answer(egress.Answer{ID: id, Answer: bawn.Answer{Verdict: bawn.Allow}})
	if len(a.waiting) != 0 {
		t.Errorf("%d questions are kept", len(a.waiting))
	}
}

func TestAskAfterTheEnd(t *testing.T) {
	box := newMailbox()
	box.err = errors.New("bawn is gone")
	if answer := <-approve(t.Context(), newAsks(box.send, now)); answer.By != "bawn is gone" {
		t.Errorf("got %+v; want an error", answer)
	}
}
