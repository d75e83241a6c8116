package relay

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval"
	"github.com/bawn-dev/bawn/internal/approval/link"
	"github.com/bawn-dev/bawn/internal/audit"
	"github.com/bawn-dev/bawn/internal/relay/store"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// A ledger is what everybody was told, to be compared with what was kept.
type ledger struct {
	t  *testing.T
	mu sync.Mutex
	// by question
	told    map[string]bawn.Answer // to its asker
	learned map[string]bawn.Answer // to those who answered it
	never   map[string]bool        // questions that nobody answered
	shared  map[string]bool        // askers of a question that others asked as well
	claims  int                    // answers that were told to be the first
}

// TestKilled kills a relay again and again while many ask and two race for each
// answer.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	l := &ledger{t: t, told: map[string]bawn.Answer{}, learned: map[string]bawn.Answer{}, never: map[string]bool{}, shared: map[string]bool{}}
	cmd := start(t, dir)
	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	for i := range 4 {
		session := fmt.Sprintf("session%d", i)
		c := dialed(t, dir, link.Options{Session: session})
		for j := range 4 {
			load.Go(func() { l.load(ctx, c, fmt.Sprintf("%d/%d", i, j)) })
		}
	}
	kills := testenv.Some(200, 40)
	for i := range kills {
		time.Sleep(time.Duration(rand.IntN(30+i%2*200)) * time.Millisecond) // as it starts, and at work
		must(t, cmd.Process.Kill())
		_ = cmd.Wait() // it was killed
		cmd, _ = launch(t, dir)
	}
	stop()
	load.Wait()
	must(t, cmd.Process.Kill())
	_ = cmd.Wait()
	l.compare(dir, kills)
}

// load asks one question after the other; each third is one that was answered
// before, under a new ID, and nobody answers it. No session asks so many that the
// database forgets one.
func (l *ledger) load(ctx context.Context, c *link.Client, name string) {
	for n := 0; ctx.Err() == nil; n++ {
		session := fmt.Sprintf("session%s/%d", name, n/50)
		resource := fmt.Sprintf("touch %s/%d", name, n)
		l.answered(ctx, c, question(session, resource))
		if n%3 == 0 {
			l.unanswered(ctx, c, question(session, resource))
		}
		if n%3 == 1 {
			l.crowd(ctx, c, session, resource)
		}
	}
}

func (l *ledger) answered(ctx context.Context, c *link.Client, q approval.Question) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	var work sync.WaitGroup
	asked := make(chan struct{})
	for _, a := range []bawn.Answer{{Verdict: bawn.Allow, By: "yes"}, {Verdict: bawn.Deny, By: "no"}} {
		work.Go(func() {
			if rec, mine, known := decide(ctx, c, q.ID, a, asked); known {
				l.learn(q.ID, rec.Answer, mine, a.By)
			}
		})
	}
	a, err := c.Ask(ctx, q)
	if err != nil {
		l.t.Errorf("ask %s: %v", q.ID, err)
	}
	close(asked)
	work.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told[q.ID] = a
}

// crowd asks the same three times at once, and says yes once until each has it.
func (l *ledger) crowd(ctx context.Context, c *link.Client, session, resource string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	var asking, answering sync.WaitGroup
	for range 3 {
		q := question(session, resource)
		asked := make(chan struct{})
		asking.Go(func() {
			defer close(asked)
			a, err := c.Ask(ctx, q)
			if err != nil {
				l.t.Errorf("ask %s: %v", q.ID, err)
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			l.told[q.ID], l.shared[q.ID] = a, true
		})
		answering.Go(func() {
			for {
				_, _ = c.Answer(ctx, q.ID, bawn.Answer{Verdict: bawn.Allow, By: "yes"}) // it may be another's, or lost
				select {
				case <-asked:
					return
				case <-time.After(time.Millisecond):
				}
			}
		})
	}
	asking.Wait()
	answering.Wait()
}

// learn notes what one who answered was told.
func (l *ledger) learn(id string, a bawn.Answer, mine bool, by string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if mine && a.By != by {
		l.t.Errorf("%s: %s was told to be the first, but it is %s", id, by, a.By)
	}
	if before, again := l.learned[id]; again && before != a {
		l.t.Errorf("%s has two answers: %v and %v", id, before, a)
	}
	l.learned[id] = a
	if mine {
		l.claims++
	}
}

func (l *ledger) unanswered(ctx context.Context, c *link.Client, q approval.Question) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	if a, err := c.Ask(ctx, q); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		l.t.Errorf("%s, which nobody answered, has %v, %v", q.ID, a, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.never[q.ID] = true
}

// compare looks into the database and the log.
func (l *ledger) compare(dir string, kills int) {
	t := l.t
	report, err := audit.Verify(filepath.Join(dir, "audit"))
	if err != nil || report.Fault != nil {
		t.Errorf("the log: %v, %v", err, report.Fault)
	}
	answers, events := map[string]bawn.Event{}, map[string]int{}
	for e, err := range audit.Query(filepath.Join(dir, "audit"), audit.Filter{}) {
		must(t, err)
		events[e.Event.Operation]++
		if e.Event.Operation != "answer" {
			continue
		}
		q := e.Event.Details["question"]
		if before, again := answers[q]; again && (before.ID != e.Event.ID || before.Details["by"] != e.Event.Details["by"]) {
			t.Errorf("%s is answered twice in the log", q)
		}
		answers[q] = e.Event
	}
	db, err := store.Open(t.Context(), filepath.Join(dir, "state", databaseName), time.Now())
	must(t, err)
	defer db.Close()
	by := map[string]string{} // who got the yes of a question
	for id, told := range l.told {
		e, err := db.Get(t.Context(), id)
		if err != nil || e.State != approval.Answered || e.Answer != told {
			t.Errorf("%s: asker told %v, kept %v %v (%v)", id, told, e.State, e.Answer, err)
		}
		if learned, some := l.learned[id]; some && learned != told {
			t.Errorf("%s: asker told %v, frontends %v", id, told, learned)
		}
		if other := by[e.Lead]; other != "" && e.Answer.Scope == bawn.Once && e.Answer.Verdict == bawn.Allow {
			t.Errorf("one yes of %s was told to %s and %s", e.Lead, other, id)
		}
		by[e.Lead] = id
		if ev, there := answers[e.Lead]; !there || ev.Resolved != told.Verdict || ev.Details["by"] != told.By {
			t.Errorf("%s: %v by %s is not in the log so: %v", id, told.Verdict, told.By, ev)
		}
	}
	for id := range l.never {
		if e, err := db.Get(t.Context(), id); err == nil && e.State == approval.Answered {
			t.Errorf("%s was answered by nobody, but is %v", id, e.Answer)
		}
	}
	if len(l.told) < kills {
		t.Errorf("only %d questions were asked: too few to prove anything", len(l.told))
	}
	t.Logf("%d questions answered (%d of them asked by several), %d unanswered, %d first answers told; log: %d records %v", len(l.told), len(l.shared), len(l.never), l.claims, report.Records, events)
}
