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
	"github.com/bawn-dev/bawn/internal/testenv"
)

// crowd is how many ask the same at once.
const crowd = 20

// effects counts those who were told yes, and waits for nobody.
func effects(all []*waiter) (told []string) {
	for _, p := range all {
		select {
		case <-p.done:
			if p.err == nil && p.answer.Verdict == bawn.Allow {
				told = append(told, p.ID)
			}
		default:
		}
	}
	return told
}

// only wants one line for the human, and returns it.
func only(t *testing.T, q *Queue, waiting int) Record {
	t.Helper()
	list, err := q.List(t.Context())
	if err != nil || len(list) != 1 || list[0].Waiting != waiting || list[0].State != Pending {
		t.Fatalf("pending: %+v, %v; want one question of %d", list, err, waiting)
	}
	return list[0]
}

// TestOnceIsOnce has many ask the same, and answers one after the other. The
// control: an answer for the session, or a no, is for all of them.
func TestOnceIsOnce(t *testing.T) {
	session := bawn.Answer{Verdict: bawn.Allow, Scope: bawn.ForSession, By: "session"}
	for _, last := range []bawn.Answer{session, no} {
		synctest.Test(t, func(t *testing.T) {
			j := &journal{}
			q := queue(t, Options{Recorder: j})
			var all []*waiter
			for range crowd {
				all = append(all, begin(q, ask("s", "git push --force")))
				synctest.Wait()
			}
			for n := range 5 {
				r := only(t, q, crowd-n)
				if r.ID != all[n].ID {
					t.Errorf("question %d is %s; want that of who waits longest", n, r.ID)
				}
				got, err := q.Answer(t.Context(), r.ID, yes)
				if err != nil || got.For != all[n].ID || got.More != crowd-n-1 || got.Next != all[n+1].ID || got.Waiting != 1 {
					t.Errorf("answer %d: %+v, %v", n, got, err)
				}
				all[n].gets(t, "yes", nil)
				synctest.Wait()
				if told := effects(all); len(told) != n+1 {
					t.Errorf("after %d answers %d may go on", n+1, len(told))
				}
				var first *AnsweredError
				if _, err := q.Answer(t.Context(), r.ID, yes); !errors.As(err, &first) {
					t.Errorf("the same question answered again: %v", err)
				}
				begin(q, all[n].Question).gets(t, "yes", nil) // the one who got it may lose its connection
			}
			late := begin(q, ask("s", "git push --force"))
			synctest.Wait()
			r := only(t, q, crowd-5+1)
			if got, err := q.Answer(t.Context(), r.ID, last); err != nil || got.Next != "" || got.More != 0 {
				t.Errorf("the last answer: %+v, %v", got, err)
			}
			for _, p := range append(all[5:], late) {
				p.gets(t, last.By, nil)
			}
			if len(q.askers)+len(q.pending)+len(q.keys)+len(q.sessions)+len(q.trees)+q.bytes != 0 {
				t.Error("something is left")
			}
			past, err := q.History(t.Context(), time.Now().Add(time.Second), 100)
			if err != nil || len(past) != 6 {
				t.Errorf("%d in the history, %v; want each answer", len(past), err)
			}
			if e := j.events[len(j.events)-2]; e.Operation != "question" {
				t.Errorf("event %+v", e)
			}
			first := j.events[crowd]
			if first.Details["for"] != all[0].ID || first.Details["more"] != fmt.Sprint(crowd-1) || first.Details["waiting"] != "1" {
				t.Errorf("event %+v", first)
			}
		})
	}
}

// TestOnceAfterRestart: who comes back has its answer, or waits.
func TestOnceAfterRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, j := &Memory{}, &journal{}
		old := queue(t, Options{Store: m, Recorder: j})
		var all []*waiter
		for range 5 {
			all = append(all, begin(old, ask("s", "x")))
			synctest.Wait()
		}
		all[0].cancel(nil) // the question outlives who asked it first
		all[2].cancel(nil)
		synctest.Wait()
		j.fail = "answer" // as if killed before it was in the log
		if _, err := old.Answer(t.Context(), all[0].ID, yes); !errors.Is(err, errBroken) {
			t.Errorf("answer: %v", err)
		}
		all[1].gets(t, "", errBroken)
		old.Close()
		j.fail = ""
		q := queue(t, Options{Store: m, Recorder: j})
		if r := only(t, q, 2); r.ID != all[3].ID {
			t.Errorf("pending: %+v", r)
		}
		var again []*waiter
		for _, p := range all {
			again = append(again, begin(q, p.Question))
			synctest.Wait()
		}
		again[0].gets(t, "", ErrWithdrawn)
		again[1].gets(t, "yes", nil)
		again[2].gets(t, "", ErrWithdrawn)
		if told := effects(again); len(told) != 1 {
			t.Errorf("%v may go on; want one", told)
		}
		if _, err := q.Answer(t.Context(), all[3].ID, yes); err != nil {
			t.Error(err)
		}
		again[3].gets(t, "yes", nil)
		if _, err := q.Answer(t.Context(), all[4].ID, no); err != nil {
			t.Error(err)
		}
		again[4].gets(t, "no", nil)
	})
}

// TestOnceGoesToTheLiving passes by who is dead, gone or out of time.
func TestOnceGoesToTheLiving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queue(t, Options{Dead: func(session string) bool { return session == "dead" }})
		q.Register("", "dead", "s")
		dead := begin(q, ask("dead", "x"))
		synctest.Wait()
		short := ask("s", "x")
		short.Expires = time.Now().Add(time.Minute)
		brief, away := begin(q, short), begin(q, ask("s", "x"))
		synctest.Wait()
		living := begin(q, ask("s", "x"))
		synctest.Wait()
		dead.cancel(ErrDetached)
		away.cancel(ErrDetached) // its session lives: it may come back
		time.Sleep(time.Minute)
		got, err := q.Answer(t.Context(), living.ID, yes)
		if err != nil || got.For != away.ID || got.More != 1 {
			t.Errorf("answer: %+v, %v", got, err)
		}
		brief.gets(t, "", ErrExpired)
		begin(q, away.Question).gets(t, "yes", nil)
		begin(q, dead.Question).gets(t, "", ErrWithdrawn)
		if r := only(t, q, 1); r.ID != living.ID {
			t.Errorf("pending: %+v", r)
		}
		living.cancel(nil)
		synctest.Wait()

		long := ask("s", "y")
		short = ask("s", "y")
		short.Expires = time.Now().Add(time.Minute)
		brief, gone := begin(q, short), begin(q, long)
		synctest.Wait()
		gone.cancel(nil) // only for its sake was it still open
		time.Sleep(time.Minute)
		if got, err := q.Answer(t.Context(), brief.ID, yes); err != nil || got.For != "" || got.Next != "" {
			t.Errorf("answer for nobody: %+v, %v", got, err)
		}
		brief.gets(t, "", ErrExpired)
	})
}

// TestOnceWhileTheyLeave: what the others have become ends with the last.
func TestOnceWhileTheyLeave(t *testing.T) {
	for _, anew := range []bool{false, true} {
		meanwhile(t, func(t *testing.T, q *Queue, s *staged) {
			first := begin(q, ask("s", "x"))
			step()
			second := begin(q, ask("s", "x"))
			step()
			var third *waiter
			point := map[bool]string{false: "before settle", true: "after settle"}[anew]
			s.at(point, func() error {
				second.cancel(nil)
				step()
				if anew {
					first.cancel(nil) // the answer is for nobody then
					step()
					third = begin(q, ask("s", "x"))
					step()
				}
				return nil
			})
			_, err := q.Answer(t.Context(), first.ID, yes)
			step()
			if anew {
				first.gets(t, "", context.Canceled)
				if r := only(t, q, 1); r.ID != third.ID {
					t.Errorf("pending: %+v", r)
				}
				fourth := begin(q, ask("s", "x"))
				step()
				only(t, q, 2)
				third.cancel(nil)
				fourth.cancel(nil)
			} else {
				first.gets(t, "yes", err)
			}
			second.gets(t, "", context.Canceled)
			step()
			if list, _ := q.List(t.Context()); len(list) != 0 || len(q.askers)+len(q.pending)+len(q.keys)+q.bytes != 0 {
				t.Errorf("left: %v", list)
			}
		})
	}
}

// A slow store holds what it is told to put until it is let go.
type slow struct {
	Memory
	mu   sync.Mutex
	hold map[string]chan struct{}
	at   chan string // IDs that are held
}

func (s *slow) Put(ctx context.Context, e Entry) error {
	s.mu.Lock()
	held := s.hold[e.ID]
	s.mu.Unlock()
	if held != nil {
		s.at <- e.ID
		<-held
	}
	return s.Memory.Put(ctx, e)
}

// TestOnceWhileTheyCome has askers on their way into the store, and others that
// come during the answer.
func TestOnceWhileTheyCome(t *testing.T) {
	s := &slow{hold: map[string]chan struct{}{}, at: make(chan string, 1)}
	q := queue(t, Options{Store: s})
	waiting := func(n int) func() bool {
		return func() bool { list, _ := q.List(t.Context()); return len(list) == 1 && list[0].Waiting == n }
	}
	first := begin(q, ask("s", "x"))
	testenv.Until(t, "first", waiting(1))
	question := ask("s", "x")
	held := make(chan struct{})
	s.hold[question.ID] = held
	second := begin(q, question)
	<-s.at
	answered := make(chan Record)
	go func() {
		r, err := q.Answer(t.Context(), first.ID, yes)
		if err != nil {
			t.Error(err)
		}
		answered <- r
	}()
	testenv.Until(t, "the gate", func() bool { // the answer waits for the second
		ap := q.pending[first.ID]
		open := ap.gate.TryRLock()
		if open {
			ap.gate.RUnlock()
		}
		return !open
	})
	third := begin(q, ask("s", "x")) // waits for the answer
	testenv.Until(t, "third", waiting(3))
	close(held)
	if r := <-answered; r.For != first.ID || r.Next != second.ID || r.More != 2 {
		t.Errorf("answered: %+v", r)
	}
	first.gets(t, "yes", nil)
	for i, p := range []*waiter{second, third} {
		testenv.Until(t, "the others", waiting(2-i))
		if r, err := q.Answer(t.Context(), p.ID, yes); err != nil || r.More != 1-i || r.For != p.ID {
			t.Errorf("answer: %+v, %v", r, err)
		}
		p.gets(t, "yes", nil)
	}
	for _, p := range []*waiter{first, second, third} {
		if e, err := s.Get(t.Context(), p.ID); err != nil || e.Lead != p.ID || e.State != Answered {
			t.Errorf("kept: %+v, %v", e, err)
		}
	}
}

// TestOnceBeforeTheyAreKept has nobody in the store yet of those who ask on.
func TestOnceBeforeTheyAreKept(t *testing.T) {
	q := queue(t, Options{})
	first := begin(q, ask("s", "x"))
	testenv.Until(t, "the first question", func() bool { list, _ := q.List(t.Context()); return len(list) > 0 })
	ap := q.pending[first.ID]
	ap.gate.Lock() // as an answer holds it
	others := []*waiter{begin(q, ask("s", "x")), begin(q, ask("s", "x"))}
	testenv.Until(t, "the others", func() bool { return q.snapshot(ap).Waiting == 3 })
	o := Outcome{State: Answered, Answer: yes, At: time.Now()}
	o.Answer.At = o.At
	rest := q.share(ap, &o)
	if won, err := q.opts.Store.Settle(t.Context(), ap.lead, o); !won || err != nil || !q.settle(ap, o, rest) || len(rest) != 0 {
		t.Fatalf("settled: %v, %v", won, err)
	}
	if list, _ := q.List(t.Context()); len(list) != 0 {
		t.Errorf("shown before it is kept: %+v", list)
	}
	ap.gate.Unlock()
	first.gets(t, "yes", nil)
	for n := range others {
		var list []Record
		testenv.Until(t, "one question less", func() bool {
			list, _ = q.List(t.Context())
			return len(list) == 1 && list[0].Waiting == 2-n
		})
		if _, err := q.Answer(t.Context(), list[0].ID, yes); err != nil {
			t.Error(err)
		}
	}
	for _, p := range others {
		p.gets(t, "yes", nil)
	}
}

// TestOnceInACrowd has many ask few questions, and answers them from many
// sides: each yes that counts is for exactly one.
func TestOnceInACrowd(t *testing.T) {
	const questions, askers, frontends = 10, 50, 8
	q := queue(t, Options{})
	var mu sync.Mutex
	told := map[string]int{} // by answer
	counted := map[string]int{}
	var asking, answering sync.WaitGroup
	for n := range questions * askers {
		asking.Go(func() {
			a, err := q.Ask(t.Context(), ask(fmt.Sprint("s", n%questions), "x"))
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			told[a.By]++
		})
	}
	ctx, stop := context.WithCancel(t.Context())
	for f := range frontends {
		answering.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				list, _ := q.List(ctx)
				for _, r := range list {
					by := fmt.Sprint(f, "/", n, "/", r.ID)
					if _, err := q.Answer(ctx, r.ID, bawn.Answer{Verdict: bawn.Allow, By: by}); err == nil {
						mu.Lock()
						counted[by]++
						mu.Unlock()
					}
				}
			}
		})
	}
	asking.Wait()
	stop()
	answering.Wait()
	if len(told) != questions*askers || len(counted) != len(told) {
		t.Errorf("%d askers were told yes by %d answers of %d that counted", questions*askers, len(told), len(counted))
	}
	for by, n := range told {
		if n != 1 || counted[by] != 1 {
			t.Errorf("%q was told to %d and counted %d times", by, n, counted[by])
		}
	}
}
