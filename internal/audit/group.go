package audit

import (
	"context"
	"sync"
)

// maxGroup is how many events are written together at most: with 64 KiB each,
// 16 MiB.
const maxGroup = 256

// A group is what several goroutines want recorded at once. The first of them
// writes. Events that arrive meanwhile are written together afterwards, by one
// write and one fsync(2), by the first of those. So no goroutine writes for
// others after its own event is there.
type group struct {
	mu      sync.Mutex
	writing bool
	waiting []*waiter
}

// A waiter has one event that is waiting to be written.
type waiter struct {
	event []byte
	err   error
	turn  chan bool // true: it is written, as err says; false: write it and those behind it
}

// together records an event along with those of other goroutines.
func (l *Log) together(ctx context.Context, event []byte) error {
	g := &l.group
	g.mu.Lock()
	if !g.writing {
		g.writing = true
		g.mu.Unlock()
		defer l.group.next()
		return l.commit(ctx, event)
	}
	e := &waiter{event: event, turn: make(chan bool, 1)}
	g.waiting = append(g.waiting, e)
	g.mu.Unlock()
	select {
	case written := <-e.turn:
		return l.lead(ctx, e, written)
	case <-ctx.Done():
	}
	if g.leave(e) {
		return ctx.Err()
	}
	return l.lead(ctx, e, <-e.turn) // somebody has taken it up already
}

// lead writes what waits if it is e's turn to; otherwise e was written.
func (l *Log) lead(ctx context.Context, e *waiter, written bool) error {
	if written {
		return e.err
	}
	defer l.group.next()
	l.group.mu.Lock()
	batch := l.group.take(maxGroup - 1)
	l.group.mu.Unlock()
	if len(batch) == 0 {
		return l.commit(ctx, e.event)
	}
	events := [][]byte{e.event}
	for _, other := range batch {
		events = append(events, other.event)
	}
	err := l.commit(context.WithoutCancel(ctx), events...) // the others have time left; ten seconds bound it
	for _, other := range batch {
		other.err = err
		other.turn <- true
	}
	return err
}

// next gives the turn to the one that waits longest. If there is no next one,
// nobody is writing any more.
func (g *group) next() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.writing = len(g.waiting) > 0; g.writing {
		g.take(1)[0].turn <- false
	}
}

// take removes up to n entries. The group is locked.
func (g *group) take(n int) []*waiter {
	n = min(n, len(g.waiting))
	taken := g.waiting[:n:n]
	g.waiting = g.waiting[n:]
	return taken
}

// leave takes e back, unless it was taken up.
func (g *group) leave(e *waiter) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, other := range g.waiting {
		if other == e {
			g.waiting = append(g.waiting[:i:i], g.waiting[i+1:]...)
			return true
		}
	}
	return false
}
