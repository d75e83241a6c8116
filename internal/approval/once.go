package approval

import (
	"cmp"
	"slices"
)

// A yes "once" is for one action, however many ask the same: the one who has
// waited longest gets it, and the others become a new question.

// share says who gets a yes "once" and, of those in the store, who does not.
// Nobody can pass meanwhile: the gate is held.
func (q *Queue) share(ap *approval, o *Outcome) (rest []*asker) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, a := range ap.living(o) {
		switch {
		case !a.stored:
		case o.For == "":
			o.For = a.question.ID
		default:
			rest = append(rest, a)
			o.Rest = append(o.Rest, a.question.ID)
		}
	}
	return rest
}

// living returns the askers whose time is not up: leaders first, then those who
// have waited longest.
func (ap *approval) living(o *Outcome) (all []*asker) {
	for _, a := range ap.askers {
		if o.At.Before(a.question.Expires) {
			all = append(all, a)
		}
	}
	slices.SortFunc(all, func(a, b *asker) int {
		if a.question.ID == ap.lead {
			return -1
		}
		if b.question.ID == ap.lead {
			return 1
		}
		return cmp.Compare(a.order, b.order)
	})
	return all
}

// split makes a new approval for the askers that still wait: those in rest, which
// the store already has in it, and those that have joined since. It returns nil if
// no asker waits.
func (q *Queue) split(ap *approval, o *Outcome, rest []*asker) *approval {
	if !o.Once() {
		return nil
	}
	var heirs []*asker
	for _, a := range ap.living(o) {
		if a.question.ID != o.For {
			heirs = append(heirs, a)
		}
	}
	ap.rec.For, ap.rec.More = o.For, len(heirs)
	ap.rec.Waiting -= len(heirs)
	first := slices.Concat(rest, heirs)
	if len(first) == 0 {
		return nil
	}
	next := q.succeed(ap, first[0], len(rest) > 0)
	for _, a := range heirs {
		delete(ap.askers, a.question.ID)
		q.belong(next, a)
	}
	ap.rec.Next = next.lead
	return next
}

// succeed begins the approval that first leads. An approval that the store
// already has can be joined at once; otherwise its leader must be stored first.
func (q *Queue) succeed(ap *approval, first *asker, stored bool) *approval {
	other := q.keys[ap.key] // all askers had left, and a new one arrived
	next := q.begin(first.question, ap.key, ap.root)
	next.order = first.order
	if other != nil {
		q.keys[ap.key] = other
	}
	if stored {
		close(next.ready)
	}
	return next
}

// follow shows the result of split, or withdraws it if all askers have left.
func (q *Queue) follow(next *approval) {
	if next == nil {
		return
	}
	q.mu.Lock()
	empty := len(next.askers) == 0
	q.mu.Unlock()
	select {
	case <-next.ready:
	default:
		return // it is shown when it is kept
	}
	if empty {
		q.end(next, Withdrawn)
	} else {
		q.tell(next)
	}
}
