package audit

import (
	"context"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
)

type counter int

func (c *counter) Record(context.Context, bawn.Event) error { *c++; return nil }
func (c *counter) Later(bawn.Event) error                   { *c++; return nil }

// TestFloodOfEvents: a session that has filled its share of the log writes
// nothing more, so that its guard denies, and ends in the log all the same.
func TestFloodOfEvents(t *testing.T) {
	var written counter
	s := NewShare(&written, 100<<10, "the session")
	event := bawn.Event{Kind: "network", Resource: "a.example:443"}
	for range 50 {
		if err := s.Record(t.Context(), event); err != nil {
			t.Fatalf("within the share: %v", err)
		}
	}
	for range 1000 {
		_ = s.Record(t.Context(), event)
	}
	full := written
	if full > 200 {
		t.Errorf("%d events were written", full)
	}
	if err := s.Record(t.Context(), event); err == nil || !strings.Contains(err.Error(), "the session has taken its share") {
		t.Errorf("after a flood: %v", err)
	}
	if err := s.Room(event); err == nil || s.Room(bawn.Event{Kind: "session"}) != nil || NewShare(&written, 100<<10, "another").Room(event) != nil {
		t.Errorf("room after a flood: %v; want none, but for the session's end and for others", err)
	}
	if err := s.Later(event); err == nil || written != full {
		t.Errorf("the ends of connections do not count: %v", err)
	}
	if err := s.Record(t.Context(), bawn.Event{Kind: "session", Operation: "end"}); err != nil || written != full+1 {
		t.Errorf("the session's end is not recorded: %v", err)
	}
	long := NewShare(&written, 100<<10, "the session")
	if err := long.Record(t.Context(), bawn.Event{Resource: strings.Repeat("x", 100<<10)}); err == nil {
		t.Error("long events count for no more than short ones")
	}
}
