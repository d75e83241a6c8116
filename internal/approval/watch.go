package approval

import (
	"context"
	"sync"
)

// maxBehind is how many changes a watcher may leave unread.
const maxBehind = 2 * MaxPending

// A watcher holds what one reader has not read yet: the latest state of each
// question, so that a slow reader delays no other.
type watcher struct {
	out  chan Record
	wake chan struct{} // has room for one

	mu     sync.Mutex
	order  []string
	latest map[string]Record
	ended  bool
}

// Watch is Inbox's.
func (q *Queue) Watch(ctx context.Context) (<-chan Record, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, ErrClosed
	}
	w := &watcher{out: make(chan Record), wake: make(chan struct{}, 1), latest: map[string]Record{}}
	for _, r := range q.list() {
		w.put(r)
	}
	q.watchers[w] = struct{}{}
	go q.pump(ctx, w)
	return w.out, nil
}

// tell shows an approval to the frontends, once it is kept.
func (q *Queue) tell(ap *approval) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if ap.settled {
		return
	}
	ap.told = true
	q.publish(ap.rec)
}

// publish passes a change on; q.mu is held, so all see the same order.
func (q *Queue) publish(r Record) {
	for w := range q.watchers {
		w.put(r)
	}
}

func (w *watcher) put(r Record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, unread := w.latest[r.ID]; !unread {
		w.order = append(w.order, r.ID)
	}
	w.latest[r.ID] = r
	w.ended = w.ended || len(w.order) > maxBehind
	w.nudge()
}

func (w *watcher) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	w.nudge()
}

func (w *watcher) nudge() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// take returns the next change, and whether there is one and can be one.
func (w *watcher) take() (r Record, some, ended bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.order) == 0 || w.ended {
		return r, false, w.ended
	}
	id := w.order[0]
	w.order = w.order[1:]
	r = w.latest[id]
	delete(w.latest, id)
	return r, true, false
}

// pump sends changes until ctx or the watcher ends.
func (q *Queue) pump(ctx context.Context, w *watcher) {
	defer close(w.out)
	defer func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		delete(q.watchers, w)
	}()
	for {
		r, some, ended := w.take()
		if ended {
			return
		}
		if !some {
			select {
			case <-w.wake:
			case <-ctx.Done():
				return
			}
			continue
		}
		select {
		case w.out <- r:
		case <-ctx.Done():
			return
		}
	}
}
