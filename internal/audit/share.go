package audit

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/bawn-dev/bawn"
)

// MaxShare is how many bytes of the audit log one session may take, and its
// network as many again. Every connection, command and question is recorded, and
// a guest can make thousands a second. Without a bound it fills the disk of its
// host, and then every session of its human is denied.
const MaxShare = 1 << 30

// perEvent is about how many bytes an event takes besides its texts.
const perEvent = 600

// A Share is one session's part of a log. When it is used up nothing is recorded
// any more, so nothing is allowed; but the session's own start and end are.
type Share struct {
	log  whole
	what string
	left atomic.Int64
}

// A whole is a Log.
type whole interface {
	bawn.Recorder
	Later(bawn.Event) error
}

// NewShare returns a share of so many bytes. A name for errors: "the session",
// for example.
func NewShare(log whole, bytes int64, what string) *Share {
	s := &Share{log: log, what: what}
	s.left.Store(bytes)
	return s
}

// Record writes an event while the share has room. It errs as [Log.Record] does,
// and when the share is full.
func (s *Share) Record(ctx context.Context, e bawn.Event) error {
	if err := s.take(e); err != nil {
		return err
	}
	return s.log.Record(ctx, e)
}

// Later is [Log.Later] while there is room.
func (s *Share) Later(e bawn.Event) error {
	if err := s.take(e); err != nil {
		return err
	}
	return s.log.Later(e)
}

// Room errs where an event would not be recorded any more. It takes nothing.
func (s *Share) Room(e bawn.Event) error {
	if e.Kind != "session" && s.left.Load() < size(e) {
		return fmt.Errorf("%s has taken its share of the audit log, %d MiB; start another session", s.what, MaxShare>>20)
	}
	return nil
}

func (s *Share) take(e bawn.Event) error {
	if e.Kind == "session" {
		return nil // a handful, made by the session's host and not by what its guest does
	}
	if err := s.Room(e); err != nil {
		return err
	}
	s.left.Add(-size(e)) // several at the same time may take a little more
	return nil
}

// size is about how many bytes an event takes.
func size(e bawn.Event) int64 {
	n := perEvent + len(e.Resource) + len(e.Reason) + len(e.Rule) + len(e.Dir)
	for _, a := range e.Args {
		n += len(a)
	}
	for k, v := range e.Details {
		n += len(k) + len(v)
	}
	return int64(n)
}
