package approval

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bawn-dev/bawn"
)

// A staged store lets something happen at a point of its work, once.
type staged struct {
	Memory
	mu    sync.Mutex
	steps map[string]func() error // "before get", "after get", "after settle" …
}

func (s *staged) at(point string, do func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps[point] = do
}

// reach does what is to happen at a point; its error is the method's.
func (s *staged) reach(point string) error {
	s.mu.Lock()
	do := s.steps[point]
	delete(s.steps, point)
	s.mu.Unlock()
	if do == nil {
		return nil
	}
	return do()
}

func (s *staged) Get(ctx context.Context, id string) (Entry, error) {
	if err := s.reach("before get"); err != nil {
		return Entry{}, err
	}
	e, err := s.Memory.Get(ctx, id)
	return e, errors.Join(err, s.reach("after get"))
}

func (s *staged) Settle(ctx context.Context, lead string, o Outcome) (bool, error) {
	if err := s.reach("before settle"); err != nil {
		return false, err
	}
	won, err := s.Memory.Settle(ctx, lead, o)
	if err := s.reach("after settle"); err != nil {
		return false, nil // as if somebody else had
	}
	return won, err
}

func (s *staged) Leave(ctx context.Context, id string) error {
	return errors.Join(s.Memory.Leave(ctx, id), s.reach("after leave"))
}

// step lets all others come as far as they can: also where one of several waits
// for that, which synctest.Wait forbids.
func step() { time.Sleep(time.Second) }

// meanwhile is a queue in which something happens between two steps.
func meanwhile(t *testing.T, f func(t *testing.T, q *Queue, s *staged)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &staged{steps: map[string]func() error{}}
		f(t, queue(t, Options{Store: s}), s)
	})
}

// TestSameIDMeanwhile asks with one ID over two connections at once.
func TestSameIDMeanwhile(t *testing.T) {
	for _, point := range []string{"before get", "after get"} {
		meanwhile(t, func(t *testing.T, q *Queue, s *staged) {
			question := ask("s", "ls")
			var other *waiter
			s.at(point, func() error { other = begin(q, question); step(); return nil })
			p := begin(q, question)
			step()
			step()
			step()
			if list, _ := q.List(t.Context()); len(list) != 1 || list[0].Waiting != 1 {
				t.Errorf("%s: %+v", point, list)
			}
			if _, err := q.Answer(t.Context(), question.ID, yes); err != nil {
				t.Error(err)
			}
			p.gets(t, "yes", nil)
			other.gets(t, "yes", nil)
		})
		meanwhile(t, func(t *testing.T, q *Queue, s *staged) {
			question := ask("s", "ls")
			s.at(point, func() error {
				other := question
				other.Action.Resource = "rm"
				begin(q, other)
				step()
				return nil
			})
			begin(q, question).gets(t, "", ErrMismatch)
		})
	}
	for _, last := range []error{nil, errBroken} {
		meanwhile(t, func(t *testing.T, q *Queue, s *staged) {
			question := ask("s", "ls")
			s.at("after get", func() error { // it is asked and answered before we come to it
				begin(q, question)
				step()
				_, err := q.Answer(t.Context(), question.ID, yes)
				s.at("before get", func() error { return last })
				return err
			})
			by := map[bool]string{true: "yes"}[last == nil]
			begin(q, question).gets(t, by, last)
		})
	}
}

func TestAnswerLosesMeanwhile(t *testing.T) {
	meanwhile(t, func(t *testing.T, q *Queue, s *staged) {
		p := begin(q, ask("s", "ls"))
		step()
		ctx, cancel := context.WithCancel(t.Context())
		s.at("after settle", func() error { cancel(); return errBroken })
		if _, err := q.Answer(ctx, p.ID, yes); !errors.Is(err, context.Canceled) {
			t.Errorf("who waits for the winner: %v", err)
		}
		s.at("after settle", func() error { return errors.Join(errBroken, q.Close()) })
		if _, err := q.Answer(t.Context(), p.ID, yes); !errors.Is(err, ErrClosed) {
			t.Errorf("as the queue ends: %v", err)
		}
	})
	meanwhile(t, func(t *testing.T, q *Queue, s *staged) {
		p := begin(q, ask("s", "ls"))
		step()
		s.at("after settle", func() error { // the asker leaves, and that can't be kept
			s.at("before settle", func() error { return errBroken })
			p.cancel(nil)
			step()
			return nil
		})
		if _, err := q.Answer(t.Context(), p.ID, yes); !errors.Is(err, ErrWithdrawn) {
			t.Errorf("answer to who has left: %v", err)
		}
		p.gets(t, "", context.Canceled)
	})
}

// TestAnsweredAsOneLeaves: who watches is not told that it is pending again.
func TestAnsweredAsOneLeaves(t *testing.T) {
	meanwhile(t, func(t *testing.T, q *Queue, s *staged) {
		first, other := begin(q, ask("s", "ls")), begin(q, ask("s", "ls"))
		step()
		id := only(t, q, 2).ID
		s.at("after leave", func() error { return second(q.Answer(t.Context(), id, no)) })
		other.cancel(nil)
		other.gets(t, "", context.Canceled)
		first.gets(t, "no", nil)
		if rec, err := q.Get(t.Context(), first.ID); err != nil || rec.State != Answered {
			t.Errorf("get: %+v, %v", rec, err)
		}
	})
}

// A closer closes the queue when it is to record.
type closer struct{ close func() error }

func (c *closer) Record(_ context.Context, e bawn.Event) error {
	if e.Operation == "answer" {
		return c.close()
	}
	return nil
}

func TestClosedOverAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &closer{}
		q := queue(t, Options{Recorder: c})
		c.close = q.Close
		p := begin(q, ask("s", "ls"))
		step()
		if rec, err := q.Get(t.Context(), p.ID); err != nil || rec.State != Pending {
			t.Errorf("get: %+v, %v", rec, err)
		}
		if _, err := q.Answer(t.Context(), p.ID, yes); !errors.Is(err, ErrClosed) {
			t.Errorf("answer: %v", err)
		}
		p.gets(t, "", ErrClosed)
	})
}

func TestMemory(t *testing.T) {
	m, ctx := &Memory{}, t.Context()
	put := func(id, lead string) error {
		return m.Put(ctx, Entry{Record: Record{Question: Question{ID: id}}, Lead: lead})
	}
	if err := errors.Join(put("a", "a"), put("b", "a")); err != nil {
		t.Fatal(err)
	}
	if err := put("a", "a"); !errors.Is(err, ErrMismatch) {
		t.Errorf("twice: %v", err)
	}
	_, settled := m.Settle(ctx, "x", Outcome{})
	for _, err := range []error{put("c", "x"), m.Leave(ctx, "x"), m.Recorded(ctx, "x", Pending), settled} {
		if !errors.Is(err, ErrUnknown) {
			t.Errorf("of nothing: %v", err)
		}
	}
	if err := put("z", "z"); err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		if won, err := m.Settle(ctx, "z", Outcome{State: Expired}); won != (n == 0) || err != nil {
			t.Errorf("settled for the %dth time: %v, %v", n+1, won, err)
		}
	}
	for n := range remembered + 1 { // old ones are forgotten, if they are settled and recorded
		id := fmt.Sprint(n)
		if err := errors.Join(put(id, id), second(m.Settle(ctx, id, Outcome{State: Expired, At: time.Unix(int64(n), 0)})), m.Recorded(ctx, id, Expired)); err != nil {
			t.Fatal(err)
		}
	}
	if past, _ := m.History(ctx, time.Unix(1<<30, 0), 1<<20); len(past) == 0 || len(past) > 10 || past[0].ID != fmt.Sprint(remembered) {
		t.Errorf("%d are remembered, the latest first", len(past))
	}
	if _, err := m.Get(ctx, "a"); err != nil {
		t.Errorf("what is pending was forgotten: %v", err)
	}
}

func second[T any](_ T, err error) error { return err }
