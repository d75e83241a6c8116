package egressd

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bawn-dev/bawn"
)

// ask is what a guest wants: a connection, or a request with arguments.
func ask(resource string, args ...string) bawn.Action {
	return bawn.Action{Kind: bawn.Network, Operation: bawn.Connect, Resource: resource, Args: args}
}

// A human answers what is in answers, and hesitates.
type human struct {
	asked  atomic.Int64
	answer bawn.Answer
	takes  time.Duration
}

func (h *human) Approve(ctx context.Context, _ bawn.Action, _ bawn.Decision) (bawn.Answer, error) {
	h.asked.Add(1)
	select {
	case <-time.After(h.takes):
		return h.answer, nil
	case <-ctx.Done():
		return bawn.Answer{}, ctx.Err()
	}
}

var (
	yes = bawn.Answer{Verdict: bawn.Allow, Scope: bawn.ForSession}
	no  = bawn.Answer{Verdict: bawn.Deny, Scope: bawn.ForSession}
)

// Many who ask the same wait for one answer: a no too.
func TestOneQuestionForMany(t *testing.T) {
	for _, want := range []bawn.Answer{yes, no} {
		synctest.Test(t, func(t *testing.T) {
			h := &human{answer: want, takes: time.Second}
			p := newPending(h, time.Minute)
			var all sync.WaitGroup
			for i := range 50 {
				port := []string{"80", "443"}[i%2] // the ports of the web are one topic
				all.Go(func() {
					if got, err := p.Approve(t.Context(), ask("a.example:"+port), bawn.Decision{}); err != nil || got != want {
						t.Errorf("got %+v, %v; want %+v", got, err, want)
					}
				})
			}
			all.Wait()
			if n := h.asked.Load(); n != 1 {
				t.Errorf("the human was asked %d times; want once", n)
			}
		})
	}
}

// Nothing is remembered here, whatever the answer was: the prompter of the session
// does that, and one of it is enough.
func TestNotRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &human{answer: yes, takes: time.Hour}
		p := newPending(h, 30*time.Second)
		began := time.Now()
		if _, err := p.Approve(t.Context(), ask("a.example:443"), bawn.Decision{}); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 30*time.Second {
			t.Errorf("after %v: %v; want the end of the time", time.Since(began), err)
		}
		h.takes = 0
		for i, answer := range []bawn.Answer{yes, no, {Verdict: bawn.Allow, Scope: bawn.Always}, {Verdict: bawn.Allow}} {
			h.answer = answer
			if got, err := p.Approve(t.Context(), ask("a.example:443"), bawn.Decision{}); err != nil || got != answer || h.asked.Load() != int64(i+2) {
				t.Errorf("%+v, %v, asked %d times; want %+v of %d questions", got, err, h.asked.Load(), answer, i+2)
			}
		}
	})
}

// A yes "once" is for one of those who wait, also where they are joined here; a
// no is for all.
func TestOnceIsForOne(t *testing.T) {
	for _, tt := range []struct {
		answer bawn.Answer
		asked  int64
	}{{bawn.Answer{Verdict: bawn.Allow, Scope: bawn.Once}, 5}, {bawn.Answer{Verdict: bawn.Deny, Scope: bawn.Once}, 1}} {
		synctest.Test(t, func(t *testing.T) {
			h := &human{answer: tt.answer, takes: time.Second}
			p := newPending(h, time.Minute)
			var all sync.WaitGroup
			for range 5 {
				all.Go(func() {
					if got, err := p.Approve(t.Context(), ask("a.example:443"), bawn.Decision{}); err != nil || got != tt.answer {
						t.Errorf("got %+v, %v", got, err)
					}
				})
			}
			all.Wait()
			if n := h.asked.Load(); n != tt.asked {
				t.Errorf("%v: the human was asked %d times; want %d", tt.answer.Verdict, n, tt.asked)
			}
		})
	}
}

// Who asked first may leave: the others still get the answer, and so does who
// asks later.
func TestFirstAskerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &human{answer: yes, takes: 10 * time.Second}
		p := newPending(h, time.Minute)
		first, leave := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() {
			_, err := p.Approve(first, ask("a.example:443"), bawn.Decision{})
			left <- err
		}()
		synctest.Wait()
		got := make(chan bawn.Answer, 1)
		go func() {
			a, _ := p.Approve(t.Context(), ask("a.example:443"), bawn.Decision{})
			got <- a
		}()
		synctest.Wait()
		leave()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("who left got %v", err)
		}
		if a := <-got; a != yes || h.asked.Load() != 1 {
			t.Errorf("the other got %+v of %d questions; want the one answer", a, h.asked.Load())
		}
	})
}

type brokenHuman struct{}

func (brokenHuman) Approve(context.Context, bawn.Action, bawn.Decision) (bawn.Answer, error) {
	panic("broken")
}

func TestNobodyToAsk(t *testing.T) {
	h := &human{answer: yes}
	panics := brokenHuman{}
	for name, p := range map[string]*pending{
		"nobody": newPending(nil, time.Minute), "no time": newPending(h, 0), "a panic": newPending(panics, time.Minute),
	} {
		if got, err := p.Approve(t.Context(), ask("a.example:443"), bawn.Decision{}); err == nil || got.Verdict != bawn.Deny {
			t.Errorf("%s: %+v, %v; want an error", name, got, err)
		}
	}
	if h.asked.Load() != 0 {
		t.Error("a question that may wait for no time was asked")
	}
}
