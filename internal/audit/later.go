package audit

import (
	"context"
	"fmt"
	"time"

	"github.com/bawn-dev/bawn"
)

// The events that wait to be written are bounded by their number and size, and by
// time. Above the limit the caller waits for the disk.
const (
	maxLater      = 64
	maxLaterBytes = 256 << 10
	laterWait     = 100 * time.Millisecond
)

// Later appends an event about what has already happened, for which nothing
// waits. It is written before the next event, after 100 ms, or by Close. An
// event before an action is for Record.
//
// A process that is killed may lose the events of its last 100 ms. An event
// that can't be written waits for the next attempt, and as long as it waits no
// Record succeeds, since both are written together. Where too much waits the
// error is returned, the event is lost, and the next Record fails once.
func (l *Log) Later(e bawn.Event) error {
	event, err := encode(e, &l.cleaner)
	if err != nil {
		return fmt.Errorf("audit event %q can't be written: %w", e.Operation, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.files.log == nil {
		return ErrClosed
	}
	if len(l.later) >= maxLater || l.laterSize+len(event) > maxLaterBytes {
		if err := l.write(context.Background()); err != nil {
			l.lost = err
			return err
		}
	}
	if l.flush == nil {
		l.flush = time.AfterFunc(laterWait, l.flushLater)
	}
	l.later, l.laterSize = append(l.later, event), l.laterSize+len(event)
	return nil
}

// flushLater writes what waits. Where it can't be, the next Record says so.
func (l *Log) flushLater() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flush = nil
	if l.files.log != nil && len(l.later) > 0 {
		_ = l.write(context.Background())
	}
}

// written forgets what waited.
func (l *Log) written() {
	clear(l.later)
	l.later, l.laterSize = l.later[:0], 0
	if l.flush != nil {
		l.flush.Stop()
		l.flush = nil
	}
}
