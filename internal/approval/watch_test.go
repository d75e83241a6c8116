package approval

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
)

func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queue(t, Options{})
		before := begin(q, ask("s", "before"))
		synctest.Wait()
		ctx, stop := context.WithCancel(t.Context())
		changes, err := q.Watch(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if r := <-changes; r.ID != before.ID || r.State != Pending {
			t.Errorf("first %+v", r)
		}
		p := begin(q, ask("s", "after"))
		if r := <-changes; r.ID != p.ID || r.State != Pending {
			t.Errorf("then %+v", r)
		}
		if _, err := q.Answer(ctx, p.ID, no); err != nil {
			t.Error(err)
		}
		if r := <-changes; r.ID != p.ID || r.Answer.By != "no" {
			t.Errorf("then %+v", r)
		}
		before.cancel(nil)
		synctest.Wait() // unread while the watcher goes
		stop()
		for range changes { //nolint:revive // until it is closed
		}
		synctest.Wait()
		if len(q.watchers) != 0 {
			t.Error("the watcher is still there")
		}

		idle, err := q.Watch(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		q.Close()
		if r, open := <-idle; open {
			t.Errorf("after the end: %+v", r)
		}
		ctx, stop = context.WithCancel(t.Context())
		stop()
		q2 := queue(t, Options{})
		gone, _ := q2.Watch(ctx)
		if r, open := <-gone; open {
			t.Errorf("to nobody: %+v", r)
		}
	})
}

// TestSlowWatcher is in nobody's way, and does not take memory without end.
func TestSlowWatcher(t *testing.T) {
	w := &watcher{out: make(chan Record), wake: make(chan struct{}, 1), latest: map[string]Record{}}
	for n := range maxBehind {
		w.put(Record{Question: Question{ID: fmt.Sprint(n)}})
		w.put(Record{Question: Question{ID: fmt.Sprint(n)}, State: Answered})
	}
	if r, some, ended := w.take(); !some || ended || r.State != Answered {
		t.Errorf("took %v, %v, %v; want the latest state", r.State, some, ended)
	}
	w.put(Record{Question: Question{ID: "x"}})
	w.put(Record{Question: Question{ID: "y"}})
	if _, _, ended := w.take(); !ended {
		t.Error("fell behind without an end")
	}
}
