package relay

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

// Many who ask the same wait for one answer, which then holds: a no too.
func TestOneQuestionForMany(t *testing.T) {
	for _, want := range []bawn.Answer{yes, no} {
		synctest.Test(t, func(t *testing.T) {
			h := &human{answer: want, takes: time.Second}
			p := NewApprover(h, time.Minute)
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
			if got, err := p.Approve(t.Context(), ask("a.example:80"), bawn.Decision{}); err != nil || got != want {
				t.Errorf("later: %+v, %v", got, err)
			}
			if n := h.asked.Load(); n != 1 {
				t.Errorf("the human was asked %d times; want once", n)
			}
		})
	}
}

// A yes to one thing is no yes to another.
func TestTopics(t *testing.T) {
	h := &human{answer: yes}
	p := NewApprover(h, time.Minute)
	for i, a := range []bawn.Action{
		ask("a.example:443"), ask("b.example:443"), ask("a.example:22"), ask("a.example:8443"),
		ask("https://a.example/x", "GET"), ask("https://a.example/x", "DELETE"), ask("https://a.example/y", "GET"),
		ask("https://a.example/r.git", "fetch"), ask("https://a.example/r.git", "push", "refs/heads/x"),
		ask("https://a.example/r.git", "push", "refs/heads/x", "refs/heads/y"), ask("https://a.example/r.git", "push", "refs/heads/x refs/heads/y"),
		ask("a.example:443", "GET"), ask("[2001:db8::1]:443"), ask("a.example:web"),
	} {
		for range 2 { // the second time it is known
			if _, err := p.Approve(t.Context(), a, bawn.Decision{}); err != nil {
				t.Fatal(err)
			}
		}
		if n := h.asked.Load(); n != int64(i+1) {
			t.Fatalf("%q %q: the human was asked %d times; want %d", a.Resource, a.Args, n, i+1)
		}
	}
}

// A failed question is not remembered, and neither is an answer for once.
func TestNotRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &human{answer: yes, takes: time.Hour}
		p := NewApprover(h, 30*time.Second)
		began := time.Now()
		if _, err := p.Approve(t.Context(), ask("a.example:443"), bawn.Decision{}); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 30*time.Second {
			t.Errorf("after %v: %v; want the end of the time", time.Since(began), err)
		}
		h.takes, h.answer = 0, bawn.Answer{Verdict: bawn.Allow, Scope: bawn.Once}
		for want := int64(2); want < 4; want++ {
			if got, err := p.Approve(t.Context(), ask("a.example:443"), bawn.Decision{}); err != nil || got.Verdict != bawn.Allow || h.asked.Load() != want {
				t.Errorf("%+v, %v, asked %d times; want %d", got, err, h.asked.Load(), want)
			}
		}
	})
}

// Who asked first may leave: the others still get the answer, and so does who
// asks later.
func TestFirstAskerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &human{answer: yes, takes: 10 * time.Second}
		p := NewApprover(h, time.Minute)
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

func TestNobodyToAsk(t *testing.T) {
	h := &human{answer: yes}
	panics := approverFunc(func(context.Context, bawn.Action) (bawn.Answer, error) { panic("broken") })
	for name, p := range map[string]*approver{
		"nobody": NewApprover(nil, time.Minute), "no time": NewApprover(h, 0), "a panic": NewApprover(panics, time.Minute),
	} {
		if got, err := p.Approve(t.Context(), ask("a.example:443"), bawn.Decision{}); err == nil || got.Verdict != bawn.Deny {
			t.Errorf("%s: %+v, %v; want an error", name, got, err)
		}
	}
	if h.asked.Load() != 0 {
		t.Error("a question that may wait for no time was asked")
	}
}
