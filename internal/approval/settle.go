package approval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/bawn-dev/bawn"
)

// Answer is Prompter's. By whom the answer is the caller says; when, the queue.
func (q *Queue) Answer(ctx context.Context, id string, a bawn.Answer) (Record, error) {
	ap, err := q.find(ctx, id)
	if err != nil {
		return Record{}, err
	}
	rec := q.snapshot(ap)
	if err := checkAnswer(&rec.Question, a); err != nil {
		return rec, err
	}
	a.At = wall(q.opts.Now())
	if !a.At.Before(rec.Expires) {
		q.expire(ap)
		return rec, ErrExpired
	}
	o := Outcome{State: Answered, Answer: a, At: a.At}
	var rest []*asker
	if o.Once() {
		ap.gate.Lock()
		defer ap.gate.Unlock()
		rest = q.share(ap, &o)
	}
	won, err := q.opts.Store.Settle(q.ctx, ap.lead, o)
	if err != nil {
		return rec, fmt.Errorf("the answer can't be kept, so it does not count: %w", err)
	}
	if won && q.settle(ap, o, rest) {
		return ap.rec, ap.failure
	}
	return q.lost(ctx, ap)
}

// lost waits for the answer that counts instead.
func (q *Queue) lost(ctx context.Context, ap *approval) (Record, error) {
	select {
	case <-ap.done:
		return ap.rec, final(ap.rec)
	case <-ctx.Done():
		return Record{}, ctx.Err()
	}
}

// final says why a question can't be answered any more.
func final(r Record) error {
	switch r.State {
	case Answered:
		return &AnsweredError{r}
	case Pending:
		return ErrClosed
	}
	return stateError(r.State)
}

// find returns what is pending under the ID of any of its askers.
func (q *Queue) find(ctx context.Context, id string) (*approval, error) {
	q.mu.Lock()
	ap, a := q.pending[id], q.askers[id]
	if ap == nil && a != nil {
		ap = a.approval
	}
	known, closed := ap != nil && ap.told, q.closed
	q.mu.Unlock()
	switch {
	case closed:
		return nil, ErrClosed
	case known:
		return ap, nil
	}
	e, err := q.opts.Store.Get(ctx, id)
	switch {
	case err != nil:
		return nil, err
	case e.State == Pending && !e.Gone:
		return nil, ErrUnknown // on its way in or out
	case e.Gone:
		return nil, ErrWithdrawn
	}
	if e.Once() {
		e.For = id
	}
	return nil, final(e.Record)
}

func (q *Queue) snapshot(ap *approval) Record {
	q.mu.Lock()
	defer q.mu.Unlock()
	return ap.rec
}

// expire ends the questions whose time is over. Timers stand still while the
// machine sleeps, and go off early when the clock is set back.
func (q *Queue) expire(ap *approval) {
	q.mu.Lock()
	left := ap.rec.Expires.Sub(q.opts.Now())
	if left > 0 && !ap.settled && !q.closed {
		ap.timer.Reset(left)
	}
	q.mu.Unlock()
	if left <= 0 {
		q.end(ap, Expired)
	}
}

// end settles an approval that denies. It does so even where the store fails:
// after a restart it denies again.
func (q *Queue) end(ap *approval, s State) {
	o := Outcome{State: s, At: wall(q.opts.Now())}
	won, err := q.opts.Store.Settle(q.ctx, ap.lead, o)
	if err != nil {
		q.opts.Log.Error("keep that a question has ended", "question", ap.lead, "state", s, "error", err)
	}
	if won || err != nil {
		q.settle(ap, o, nil)
	}
}

// settle records the outcome, tells it to all whom it is for and reports true,
// once. Rest are those in the store who continue to ask.
func (q *Queue) settle(ap *approval, o Outcome, rest []*asker) bool {
	q.mu.Lock()
	if ap.settled || q.closed {
		q.mu.Unlock()
		return false
	}
	ap.settled = true
	if q.keys[ap.key] == ap {
		delete(q.keys, ap.key)
	}
	next := q.split(ap, &o, rest)
	e := Entry{Record: ap.rec, Lead: ap.lead}
	q.mu.Unlock()

	err := q.record(settled(e, o))
	if err == nil {
		q.recorded(ap.lead, o.State)
	}
	defer q.follow(next)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	ap.rec.State, ap.rec.Answer, ap.rec.Settled = o.State, o.Answer, o.At
	if ap.failure = err; o.State != Answered {
		ap.failure = stateError(o.State)
	}
	q.forget(ap)
	if ap.told {
		q.publish(ap.rec)
	}
	ap.over()
	return true
}

// forget takes a settled approval out of what is pending.
func (q *Queue) forget(ap *approval) {
	ap.timer.Stop()
	delete(q.pending, ap.lead)
	for id, a := range ap.askers {
		delete(q.askers, id)
		q.count(ap, a, -1)
	}
}

// leave withdraws an asker, and the question with the last of them.
func (q *Queue) leave(a *asker) {
	ap, last := q.part(a)
	switch {
	case ap == nil:
	case last:
		q.end(ap, Withdrawn)
	default:
		if err := q.opts.Store.Leave(q.ctx, a.question.ID); err != nil {
			q.opts.Log.Error("keep that a question is withdrawn", "question", a.question.ID, "error", err)
		}
		q.tell(ap)
	}
}

// Retract withdraws a question that its asker has given up while its connection
// was lost. An approval that is not pending stays unchanged, and so does
// another question with that ID.
func (q *Queue) Retract(question Question) {
	question, err := Tidy(question, q.opts.Now())
	if err != nil { // nothing such was ever taken in, or it has expired
		return
	}
	if a, _ := q.present(question.ID, digest(&question)); a != nil {
		q.leave(a)
	}
}

// part takes an asker from its approval, which nobody can join any more when
// the last has gone. It returns nil if the asker is in none.
func (q *Queue) part(a *asker) (ap *approval, last bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	ap = a.approval
	if ap.settled || q.closed || ap.askers[a.question.ID] != a {
		return nil, false
	}
	close(a.gone)
	delete(ap.askers, a.question.ID)
	delete(q.askers, a.question.ID)
	q.count(ap, a, -1)
	ap.rec.Waiting--
	last = len(ap.askers) == 0
	if last && q.keys[ap.key] == ap {
		delete(q.keys, ap.key)
	}
	return ap, last
}

// remove takes back an asker of which the store knows nothing.
func (q *Queue) remove(a *asker) {
	ap, last := q.part(a)
	q.mu.Lock()
	defer q.mu.Unlock()
	if last && !q.closed {
		ap.settled, ap.failure = true, ErrWithdrawn
		q.forget(ap)
		ap.over()
	}
}

// detach notes that an asker's connection is lost.
func (q *Queue) detach(a *asker) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if a.waiters--; a.waiters == 0 {
		q.orphan(a)
	}
}

// orphan gives an asker time to come back.
func (q *Queue) orphan(a *asker) { time.AfterFunc(Grace, func() { q.sweep(a) }) }

// sweep withdraws the question of an asker that stays away and whose session
// is dead.
func (q *Queue) sweep(a *asker) {
	q.mu.Lock()
	away := a.waiters == 0 && !a.approval.settled && !q.closed
	q.mu.Unlock()
	switch {
	case !away:
	case q.opts.Dead(a.question.Session):
		q.leave(a)
	default:
		q.orphan(a)
	}
}

// List is Prompter's.
func (q *Queue) List(context.Context) ([]Record, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, ErrClosed
	}
	return q.list(), nil
}

func (q *Queue) list() []Record {
	var told []*approval
	for _, ap := range q.pending {
		if ap.told {
			told = append(told, ap)
		}
	}
	slices.SortFunc(told, func(a, b *approval) int { return cmp.Compare(a.order, b.order) })
	list := make([]Record, len(told))
	for i, ap := range told {
		list[i] = ap.rec
	}
	return list
}

// History returns what has been settled before that time, the latest first.
func (q *Queue) History(ctx context.Context, before time.Time, limit int) ([]Record, error) {
	return q.opts.Store.History(ctx, before, limit)
}

// Get returns one question, pending or settled, by the ID of any of its askers.
func (q *Queue) Get(ctx context.Context, id string) (Record, error) {
	ap, err := q.find(ctx, id)
	var answered *AnsweredError
	switch {
	case err == nil:
		return q.snapshot(ap), nil
	case errors.As(err, &answered):
		return answered.Record, nil
	case !errors.Is(err, ErrExpired) && !errors.Is(err, ErrWithdrawn):
		return Record{}, err
	}
	e, err := q.opts.Store.Get(ctx, id)
	return e.Record, err
}
