package approval

import "context"

// restore takes over the state of an earlier queue.
func (q *Queue) restore(ctx context.Context) error {
	entries, err := q.opts.Store.Open(ctx)
	if err != nil {
		return err
	}
	q.mu.Lock()
	for _, e := range entries {
		if e.State == Pending && e.ID == e.Lead {
			ap := q.begin(e.Question, key(e.Root, &e.Question), e.Root)
			ap.told = true
			close(ap.ready)
		}
	}
	late := map[string]Entry{} // events that the log lacks
	for _, e := range entries {
		if e.State == Pending && !e.Gone && q.pending[e.Lead] != nil {
			q.revive(e)
		}
		if e.Recorded != e.State && e.ID == e.Lead {
			late[e.Lead] = e
		}
	}
	var left []*approval
	for _, ap := range q.pending {
		if len(ap.askers) == 0 {
			left = append(left, ap)
		}
	}
	q.mu.Unlock()
	if err := q.catchUp(late); err != nil {
		return err
	}
	for _, ap := range left {
		q.end(ap, Withdrawn)
	}
	return nil
}

// revive makes the asker of an entry.
func (q *Queue) revive(e Entry) {
	a := q.join(q.pending[e.Lead], e.Question, digest(&e.Question), 0)
	a.stored = true
	close(a.kept)
	q.orphan(a)
}

// catchUp records missing events. An event that it has already has the same ID.
func (q *Queue) catchUp(late map[string]Entry) error {
	for lead, e := range late {
		event := asked(e)
		if e.State != Pending {
			event = settled(e, Outcome{State: e.State, Answer: e.Answer, At: e.Settled})
		}
		if err := q.record(event); err != nil {
			return err
		}
		q.recorded(lead, e.State)
	}
	return nil
}
