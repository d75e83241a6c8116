package approval

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bawn-dev/bawn"
)

// ask returns a question of a session about a command.
func ask(session, resource string) Question {
	return Question{
		ID: NewID(), Session: session, Agent: "test", Expires: time.Now().Add(time.Hour),
		Action: bawn.Action{Kind: bawn.Command, Operation: bawn.Exec, Resource: resource, Args: []string{"sh", "-c", resource}, Dir: "/w"},
	}
}

var yes, no = bawn.Answer{Verdict: bawn.Allow, By: "yes"}, bawn.Answer{Verdict: bawn.Deny, By: "no"}

// A journal is a recorder, which may fail.
type journal struct {
	mu     sync.Mutex
	events []bawn.Event
	fail   string // the operation that can't be recorded
}

func (j *journal) Record(_ context.Context, e bawn.Event) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if e.Operation == j.fail {
		return errBroken
	}
	j.events = append(j.events, e)
	return nil
}

func (j *journal) operations() (list []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.events {
		list = append(list, e.Operation)
	}
	return list
}

var errBroken = errors.New("broken")

// A brittle store fails where it is told to.
type brittle struct {
	Memory
	put, leave, settle, recorded, get, open error
}

func (b *brittle) Put(ctx context.Context, e Entry) error {
	return errors.Join(b.put, func() error {
		if b.put != nil {
			return nil
		}
		return b.Memory.Put(ctx, e)
	}())
}

func (b *brittle) Leave(ctx context.Context, id string) error {
	if b.leave != nil {
		return b.leave
	}
	return b.Memory.Leave(ctx, id)
}

func (b *brittle) Settle(ctx context.Context, lead string, o Outcome) (bool, error) {
	if b.settle != nil {
		return false, b.settle
	}
	return b.Memory.Settle(ctx, lead, o)
}

func (b *brittle) Recorded(ctx context.Context, lead string, s State) error {
	if b.recorded != nil {
		return b.recorded
	}
	return b.Memory.Recorded(ctx, lead, s)
}

func (b *brittle) Get(ctx context.Context, id string) (Entry, error) {
	if b.get != nil {
		return Entry{}, b.get
	}
	return b.Memory.Get(ctx, id)
}

func (b *brittle) Open(ctx context.Context) ([]Entry, error) {
	if b.open != nil {
		return nil, b.open
	}
	return b.Memory.Open(ctx)
}

func queue(t testing.TB, o Options) *Queue {
	t.Helper()
	q, err := NewQueue(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { q.Close() })
	return q
}

// A waiter is a question that somebody waits for.
type waiter struct {
	Question
	cancel context.CancelCauseFunc
	answer bawn.Answer
	err    error
	done   chan struct{}
}

func begin(q *Queue, question Question) *waiter {
	ctx, cancel := context.WithCancelCause(context.Background())
	p := &waiter{Question: question, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.answer, p.err = q.Ask(ctx, question)
	}()
	return p
}

// gets wants an outcome: an answer's By, or an error.
func (p *waiter) gets(t *testing.T, by string, want error) {
	t.Helper()
	<-p.done
	if p.answer.By != by || !errors.Is(p.err, want) {
		t.Errorf("asker has %+v, %v; want %q, %v", p.answer, p.err, by, want)
	}
}

func TestAnswerReachesTheAsker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &journal{}
		q := queue(t, Options{Recorder: j})
		p := begin(q, ask("s", "ls"))
		synctest.Wait()
		list, _ := q.List(t.Context())
		if len(list) != 1 || list[0].ID != p.ID || list[0].State != Pending || list[0].Waiting != 1 || list[0].Action.Session != "s" {
			t.Fatalf("list: %+v", list)
		}
		answer := yes
		answer.Scope, answer.Why = bawn.ForSession, "because"
		rec, err := q.Answer(t.Context(), p.ID, answer)
		if err != nil || rec.State != Answered || rec.Answer.Why != "because" || rec.Answer.At.IsZero() {
			t.Errorf("answer: %+v, %v", rec, err)
		}
		p.gets(t, "yes", nil)
		_, err = q.Answer(t.Context(), p.ID, no)
		var answered *AnsweredError
		if !errors.As(err, &answered) || answered.Record.Answer.By != "yes" || !strings.Contains(err.Error(), "allow") {
			t.Errorf("second answer: %v", err)
		}
		if d := cmp.Diff([]string{"question", "answer"}, j.operations()); d != "" {
			t.Error(d)
		}
		e := j.events[1]
		if e.Resolved != bawn.Allow || e.Source != "user" || e.Details["by"] != "yes" || e.Details["scope"] != "session" || e.Details["why"] != "because" {
			t.Errorf("event %+v", e)
		}
		past, err := q.History(t.Context(), time.Now().Add(time.Second), 5)
		if err != nil || len(past) != 1 {
			t.Errorf("history: %v, %v", past, err)
		}
		if rec, err := q.Get(t.Context(), p.ID); err != nil || rec.Answer.By != "yes" {
			t.Errorf("get: %v, %v", rec, err)
		}
	})
}

func TestSameQuestionIsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &journal{}
		q := queue(t, Options{Recorder: j})
		forget := q.Register("", "child", "s")
		q.Register("", "grandchild", "child")
		first := begin(q, ask("s", "ls"))
		synctest.Wait()
		second, third := begin(q, ask("child", "ls")), begin(q, ask("grandchild", "ls"))
		var others []*waiter
		for name, change := range map[string]func(*Question){
			"resource": func(q *Question) { q.Action.Resource = "ls " }, "args": func(q *Question) { q.Action.Args = []string{"sh", "-c ls"} },
			"operation": func(q *Question) { q.Action.Operation = bawn.Read }, "kind": func(q *Question) { q.Action.Kind = bawn.Tool },
			"dir": func(q *Question) { q.Action.Dir = "/" }, "canonical": func(q *Question) { q.Canonical = "rm" },
			"contains": func(q *Question) { q.Contains = "nothing" },
			"always":   func(q *Question) { q.Always = []bawn.Rule{{Kind: bawn.Command, Pattern: "*", Source: bawn.User}} },
			"never": func(q *Question) {
				q.Never = []bawn.Rule{{Kind: bawn.Command, Pattern: "*", Source: bawn.User, Operations: []bawn.Operation{bawn.Exec}}}
			},
			"session": func(q *Question) { q.Session = "stranger" },
		} {
			o := ask("s", "ls")
			change(&o)
			if same := ask("s", "ls"); name != "session" && Same(&same, &o) || !Same(&same, &first.Question) {
				t.Errorf("with another %s it is the same", name)
			}
			o.Justification = name
			others = append(others, begin(q, o))
		}
		synctest.Wait()
		list, _ := q.List(t.Context())
		if len(list) != 1+len(others) || list[0].Waiting != 3 {
			t.Errorf("%d are pending, of the first %d wait; want %d and 3", len(list), list[0].Waiting, 1+len(others))
		}
		session := yes
		session.Scope = bawn.ForSession
		if _, err := q.Answer(t.Context(), second.ID, session); err != nil {
			t.Error(err)
		}
		for _, p := range []*waiter{first, second, third} {
			p.gets(t, "yes", nil)
		}
		synctest.Wait()
		for _, p := range others {
			select {
			case <-p.done:
				t.Errorf("the one with another %s was answered as well", p.Justification)
			default:
			}
			p.cancel(nil)
		}
		forget()
		if root := q.root("", "child", ""); root != "child" {
			t.Errorf("root of a session that is forgotten: %q", root)
		}
	})
}

func TestParentsInACircle(t *testing.T) {
	q := queue(t, Options{})
	q.Register("", "a", "b")
	q.Register("", "b", "a")
	if r := q.root("", "a", ""); r != "a" && r != "b" {
		t.Errorf("root %q", r)
	}
	if r := q.root("", "x", "p"); r != "p" {
		t.Errorf("root of a session whose parent only the question names: %q", r)
	}
}

func TestExpiryDenies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &journal{}
		q := queue(t, Options{Recorder: j})
		p := begin(q, ask("s", "ls"))
		time.Sleep(time.Hour - time.Second)
		later := ask("s", "ls")
		long := begin(q, later) // keeps it open, but not for the first
		time.Sleep(2 * time.Second)
		if _, err := q.Answer(t.Context(), p.ID, yes); err != nil {
			t.Error(err)
		}
		long.gets(t, "yes", nil)
		p.gets(t, "", ErrExpired)

		p = begin(q, ask("s", "two"))
		time.Sleep(time.Hour)
		p.gets(t, "", ErrExpired)
		if _, err := q.Answer(t.Context(), p.ID, yes); !errors.Is(err, ErrExpired) {
			t.Errorf("answer after expiry: %v", err)
		}
		if rec, err := q.Get(t.Context(), p.ID); err != nil || rec.State != Expired {
			t.Errorf("get: %+v, %v", rec, err)
		}
		again := begin(q, p.Question)
		again.gets(t, "", ErrExpired)
		if ops := j.operations(); ops[len(ops)-1] != "expiry" {
			t.Errorf("events %v", ops)
		}
	})
}

// TestClockAgainstTimers has a clock that runs otherwise than the timers do, as
// after a machine has slept, or when its clock is set back.
func TestClockAgainstTimers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var shift time.Duration
		set := func(d time.Duration) { mu.Lock(); defer mu.Unlock(); shift = d }
		q := queue(t, Options{Now: func() time.Time { mu.Lock(); defer mu.Unlock(); return time.Now().Add(shift) }})
		p := begin(q, ask("s", "slept"))
		synctest.Wait()
		set(2 * time.Hour)
		if _, err := q.Answer(t.Context(), p.ID, yes); !errors.Is(err, ErrExpired) {
			t.Errorf("answer after a long sleep: %v", err)
		}
		p.gets(t, "", ErrExpired)
		set(0)
		p = begin(q, ask("s", "set back"))
		synctest.Wait()
		set(-30 * time.Minute)
		time.Sleep(time.Hour + time.Minute)
		if _, err := q.Answer(t.Context(), p.ID, yes); err != nil {
			t.Errorf("answer: %v", err)
		}
		p.gets(t, "yes", nil)
	})
}

func TestWithdrawal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, j := &brittle{}, &journal{}
		q := queue(t, Options{Store: b, Recorder: j})
		first := begin(q, ask("s", "ls"))
		synctest.Wait()
		second := begin(q, ask("s", "ls"))
		synctest.Wait()
		first.cancel(nil)
		first.gets(t, "", context.Canceled)
		begin(q, first.Question).gets(t, "", ErrWithdrawn)
		list, _ := q.List(t.Context())
		if len(list) != 1 || list[0].Waiting != 1 || list[0].ID != first.ID {
			t.Errorf("list %+v", list)
		}
		b.leave = errBroken
		third := begin(q, ask("s", "ls"))
		synctest.Wait()
		third.cancel(nil)
		third.gets(t, "", context.Canceled)
		twice := begin(q, second.Question) // the same asker over another connection
		synctest.Wait()
		second.cancel(nil)
		second.gets(t, "", context.Canceled)
		twice.gets(t, "", ErrWithdrawn)
		synctest.Wait()
		for _, id := range []string{first.ID, second.ID} {
			if _, err := q.Answer(t.Context(), id, yes); !errors.Is(err, ErrWithdrawn) {
				t.Errorf("answer to a withdrawn question: %v", err)
			}
		}
		if rec, err := q.Get(t.Context(), second.ID); err != nil || rec.State != Withdrawn {
			t.Errorf("get: %v, %v", rec.State, err)
		}
		if list, _ := q.List(t.Context()); len(list) != 0 {
			t.Errorf("still pending: %v", list)
		}
		begin(q, second.Question).gets(t, "", ErrWithdrawn)
		if ops := j.operations(); ops[len(ops)-1] != "withdrawal" {
			t.Errorf("events %v", ops)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := q.Ask(ended, ask("s", "ls")); !errors.Is(err, context.Canceled) {
			t.Errorf("asked with a context that has ended: %v", err)
		}
	})
}

// TestRetracted has an asker whose connection is lost take its question back.
func TestRetracted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queue(t, Options{Store: &brittle{}})
		p := begin(q, ask("s", "ls"))
		synctest.Wait()
		p.cancel(ErrDetached)
		p.gets(t, "", ErrDetached)
		other, broken, unknown := p.Question, p.Question, ask("s", "ls")
		other.Action.Resource, broken.Action.Resource = "rm -rf ~", ""
		for _, not := range []Question{other, broken, unknown} {
			q.Retract(not)
			if list, _ := q.List(t.Context()); len(list) != 1 || list[0].Waiting != 1 {
				t.Fatalf("%q retracts %q: %v", not.Action.Resource, p.Action.Resource, list)
			}
		}
		q.Retract(p.Question)
		if list, _ := q.List(t.Context()); len(list) != 0 {
			t.Errorf("pending: %v", list)
		}
		begin(q, p.Question).gets(t, "", ErrWithdrawn)
		answered := begin(q, ask("s", "date"))
		synctest.Wait()
		if _, err := q.Answer(t.Context(), answered.ID, yes); err != nil {
			t.Error(err)
		}
		answered.gets(t, "yes", nil)
		q.Retract(answered.Question) // too late
		begin(q, answered.Question).gets(t, "yes", nil)
	})
}

// TestSameIDAgain is what an asker gets that comes back, and what somebody gets
// who would like its answer.
func TestSameIDAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, j := &brittle{}, &journal{}
		q := queue(t, Options{Store: b, Recorder: j})
		p := begin(q, ask("s", "ls"))
		synctest.Wait()
		other := p.Question
		other.Action.Resource = "rm -rf ~"
		begin(q, other).gets(t, "", ErrMismatch)
		thief := p.Question
		thief.Session, thief.Action.Session = "t", "t"
		begin(q, thief).gets(t, "", ErrMismatch)
		p.cancel(ErrDetached)
		p.gets(t, "", ErrDetached)
		if _, err := q.Answer(t.Context(), p.ID, yes); err != nil {
			t.Error(err)
		}
		begin(q, p.Question).gets(t, "yes", nil)
		begin(q, other).gets(t, "", ErrMismatch)
		begin(q, thief).gets(t, "", ErrMismatch)
		fresh := p.Question
		fresh.ID = NewID()
		f := begin(q, fresh) // the same action again is another question
		synctest.Wait()
		select {
		case <-f.done:
			t.Error("an old answer was given to a new question")
		default:
		}
		f.cancel(nil)

		restarted := queue(t, Options{Store: b, Recorder: j})
		begin(restarted, p.Question).gets(t, "yes", nil)
		time.Sleep(2 * time.Hour)
		stale := p.Question
		stale.Expires = time.Now().Add(time.Hour) // says it has time left
		begin(restarted, stale).gets(t, "", ErrExpired)
		b.get = errBroken
		begin(restarted, p.Question).gets(t, "", ErrExpired)
		begin(restarted, stale).gets(t, "", errBroken)
	})
}

func TestAskerIsBackOrDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		alive := true
		q := queue(t, Options{Dead: func(string) bool { mu.Lock(); defer mu.Unlock(); return !alive }})
		p := begin(q, ask("s", "ls"))
		synctest.Wait()
		p.cancel(ErrDetached)
		p.gets(t, "", ErrDetached)
		time.Sleep(10 * Grace) // its host lives: it may be back
		back := begin(q, p.Question)
		synctest.Wait()
		time.Sleep(2 * Grace)
		if list, _ := q.List(t.Context()); len(list) != 1 {
			t.Fatal("the question of an asker who is back was withdrawn")
		}
		back.cancel(ErrDetached)
		back.gets(t, "", ErrDetached)
		mu.Lock()
		alive = false
		mu.Unlock()
		time.Sleep(Grace / 2)
		if list, _ := q.List(t.Context()); len(list) != 1 {
			t.Fatal("withdrawn too early")
		}
		time.Sleep(Grace)
		if list, _ := q.List(t.Context()); len(list) != 0 {
			t.Error("the question of a dead session is pending")
		}
	})
}

func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queue(t, Options{})
		full := func(question Question, what string) {
			t.Helper()
			_, err := q.Ask(t.Context(), question)
			var e *FullError
			if !errors.As(err, &e) || !strings.Contains(err.Error(), what) {
				t.Errorf("err = %v; want one %q", err, what)
			}
		}
		var puts []*waiter
		for s := range MaxPending / MaxPerSession {
			for n := range MaxPerSession {
				question := ask(fmt.Sprint("s", s), fmt.Sprint(n))
				question.Parent = fmt.Sprint("tree", s*MaxPerSession/MaxPerTree)
				puts = append(puts, begin(q, question))
			}
		}
		synctest.Wait()
		full(ask("s0", "one more"), "of this session")
		cousin := ask("cousin", "x")
		cousin.Parent = "tree0"
		full(cousin, "children")
		for n := range MaxPending - len(puts) {
			puts = append(puts, begin(q, ask("last", fmt.Sprint(n))))
		}
		synctest.Wait()
		full(ask("stranger", "x"), "in all")
		for _, p := range puts {
			p.cancel(nil)
		}
		synctest.Wait()
		if len(q.askers)+len(q.pending)+len(q.keys)+len(q.sessions)+len(q.trees)+q.bytes != 0 {
			t.Error("something is left of what was withdrawn")
		}
		q.bytes = MaxPendingBytes
		full(ask("s", "x"), "bytes")
		q.bytes = 0
		p := begin(q, ask("s0", "room again"))
		synctest.Wait()
		q.Close()
		p.gets(t, "", ErrClosed)
	})
}

func TestWhatCantBeAsked(t *testing.T) {
	q := queue(t, Options{})
	rule := bawn.Rule{Kind: bawn.Command, Pattern: "x", Source: bawn.User}
	for name, change := range map[string]func(*Question){
		"no ID": func(q *Question) { q.ID = "" }, "bad ID": func(q *Question) { q.ID = strings.Repeat("A", 26) },
		"no session": func(q *Question) { q.Session = "" }, "other session": func(q *Question) { q.Action.Session = "t" },
		"no action": func(q *Question) { q.Action = bawn.Action{} }, "no time": func(q *Question) { q.Expires = time.Time{} },
		"past": func(q *Question) { q.Expires = time.Now().Add(-time.Second) }, "for ever": func(q *Question) { q.Expires = time.Now().Add(2 * MaxWait) },
		"not UTF-8": func(q *Question) { q.Action.Args = []string{"\xff" + strings.Repeat("x", 100)} }, "long": func(q *Question) { q.Action.Resource = strings.Repeat("x", MaxText+1) },
		"many":       func(q *Question) { q.Action.Args = make([]string, MaxParts+1) },
		"year 10000": func(q *Question) { q.Asked = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) },
		"suggestion": func(q *Question) { q.Suggested = 9 }, "rule": func(q *Question) { q.Always = []bawn.Rule{{}} },
		"operation": func(q *Question) { rule.Operations = []bawn.Operation{99}; q.Never = []bawn.Rule{rule} },
	} {
		question := ask("s", "ls")
		change(&question)
		if _, err := q.Ask(t.Context(), question); err == nil {
			t.Errorf("%s: asked", name)
		}
	}
}

func TestWhatIsNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queue(t, Options{})
		p := begin(q, ask("s", "ls"))
		synctest.Wait()
		for name, a := range map[string]bawn.Answer{
			"ask": {Verdict: bawn.Ask, By: "x"}, "verdict": {Verdict: 9, By: "x"}, "scope": {Verdict: bawn.Allow, Scope: 9, By: "x"},
			"nobody": {Verdict: bawn.Allow}, "always without a rule": {Verdict: bawn.Allow, Scope: bawn.Always, By: "x"},
			"long": {By: "x", Why: strings.Repeat("x", MaxWhy)}, "not UTF-8": {By: "\xff"},
		} {
			if _, err := q.Answer(t.Context(), p.ID, a); err == nil {
				t.Errorf("%s: taken for an answer", name)
			}
		}
		if _, err := q.Answer(t.Context(), NewID(), yes); !errors.Is(err, ErrUnknown) {
			t.Errorf("answer to nothing: %v", err)
		}
		if _, err := q.Get(t.Context(), NewID()); !errors.Is(err, ErrUnknown) {
			t.Errorf("get of nothing: %v", err)
		}
		never := no
		never.Scope = bawn.Always
		if _, err := q.Answer(t.Context(), p.ID, never); err != nil {
			t.Errorf("never: %v", err)
		}
		p.gets(t, "no", nil)
		if ScopeName(9) != "invalid" {
			t.Error("a scope that is none has a name")
		}
	})
}

// TestFailures breaks the queue's store and log: no asker may get a yes meanwhile.
func TestFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, j := &brittle{}, &journal{}
		q := queue(t, Options{Store: b, Recorder: j})
		b.put = errBroken
		begin(q, ask("s", "ls")).gets(t, "", errBroken)
		b.put, b.get = nil, errBroken
		begin(q, ask("s", "ls")).gets(t, "", errBroken)
		b.get, j.fail = nil, "question"
		begin(q, ask("s", "ls")).gets(t, "", errBroken)
		j.fail = ""
		if list, _ := q.List(t.Context()); len(list) != 0 || len(q.askers) != 0 {
			t.Errorf("pending: %v", list)
		}

		p := begin(q, ask("s", "ls"))
		synctest.Wait()
		b.settle = errBroken
		if _, err := q.Answer(t.Context(), p.ID, yes); !errors.Is(err, errBroken) {
			t.Errorf("answer that can't be kept: %v", err)
		}
		p.cancel(nil) // nor can the withdrawal
		p.gets(t, "", context.Canceled)
		b.settle, b.recorded = nil, errBroken
		if rec, err := q.Answer(t.Context(), p.ID, yes); err == nil {
			t.Errorf("answer to what nobody asks: %v", rec)
		}

		p = begin(q, ask("s", "unrecorded"))
		synctest.Wait()
		j.fail = "answer"
		if _, err := q.Answer(t.Context(), p.ID, yes); !errors.Is(err, errBroken) {
			t.Errorf("answer that can't be recorded: %v", err)
		}
		p.gets(t, "", errBroken)
		begin(q, p.Question).gets(t, "", errBroken) // as long as it is not in the log
		b.recorded = nil
		j.fail = ""
		begin(q, p.Question).gets(t, "yes", nil)
		b.open = errBroken
		if _, err := NewQueue(t.Context(), Options{Store: b}); !errors.Is(err, errBroken) {
			t.Errorf("a queue over a store that can't be read: %v", err)
		}
	})
}

func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, j := &Memory{}, &journal{}
		old := queue(t, Options{Store: m, Recorder: j})
		a, b, late, gone := begin(old, ask("s", "a")), begin(old, ask("s", "a")), begin(old, ask("s", "late")), begin(old, ask("s", "gone"))
		synctest.Wait()
		_, err := m.Settle(t.Context(), late.ID, Outcome{State: Answered, Answer: yes, At: time.Now(), For: late.ID}) // and killed before it was recorded
		if err != nil || m.Leave(t.Context(), gone.ID) != nil {
			t.Fatal(err)
		}
		old.Close()
		for _, p := range []*waiter{a, b, late, gone} {
			p.gets(t, "", ErrClosed)
		}
		j.fail = "answer"
		if _, err := NewQueue(t.Context(), Options{Store: m, Recorder: j}); !errors.Is(err, errBroken) {
			t.Errorf("a queue whose log fails: %v", err)
		}
		j.fail = ""
		q := queue(t, Options{Store: m, Recorder: j})
		if ops := fmt.Sprint(j.operations()); strings.Count(ops, "answer") != 1 || !strings.Contains(ops, "withdrawal") {
			t.Errorf("events after the restart: %v", ops)
		}
		list, _ := q.List(t.Context())
		if len(list) != 1 || list[0].Waiting != 2 {
			t.Fatalf("pending after the restart: %+v", list)
		}
		a, late = begin(q, a.Question), begin(q, late.Question)
		late.gets(t, "yes", nil)
		third := begin(q, ask("s", "a"))
		synctest.Wait()
		if _, err := q.Answer(t.Context(), a.ID, no); err != nil {
			t.Error(err)
		}
		a.gets(t, "no", nil)
		third.gets(t, "no", nil)
		begin(q, b.Question).gets(t, "no", nil)
	})
}

// TestUnrecordedQuestion finds a question of which the log knows nothing.
func TestUnrecordedQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, j := &Memory{}, &journal{}
		question, err := Tidy(ask("s", "x"), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		d := digest(&question)
		if err := m.Put(t.Context(), Entry{Record: Record{Question: question, State: Pending}, Lead: question.ID, Digest: fmt.Sprintf("%x", d), Root: "s"}); err != nil {
			t.Fatal(err)
		}
		q := queue(t, Options{Store: m, Recorder: j})
		if ops := j.operations(); len(ops) != 1 || ops[0] != "question" {
			t.Errorf("events %v", ops)
		}
		time.Sleep(2 * Grace) // its asker does not come back
		if list, _ := q.List(t.Context()); len(list) != 0 {
			t.Errorf("pending: %v", list)
		}
	})
}

func TestClosed(t *testing.T) {
	q := queue(t, Options{})
	q.Close()
	q.Close()
	_, err1 := q.Ask(t.Context(), ask("s", "x"))
	_, err2 := q.List(t.Context())
	_, err3 := q.Watch(t.Context())
	_, err4 := q.Answer(t.Context(), NewID(), yes)
	for _, err := range []error{err1, err2, err3, err4} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("err = %v; want ErrClosed", err)
		}
	}
}
