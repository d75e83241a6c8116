package audit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
)

// TestDaily: what processes record together has a bound for each day, and what can't be
// counted is not recorded.
func TestDaily(t *testing.T) {
	var written counter
	file, now := filepath.Join(t.TempDir(), "share"), time.Date(2026, 3, 1, 23, 59, 0, 0, time.UTC)
	event := bawn.Event{Kind: "command", Resource: "ls"}
	record := func() error { // as a process of its own
		return NewDaily(&written, file, 10*size(event), func() time.Time { return now }).Record(t.Context(), event)
	}
	for i := range 10 {
		if err := record(); err != nil {
			t.Fatalf("event %d: %v", i, err)
		}
	}
	if err := NewDaily(&written, file, 10*size(event), func() time.Time { return now }).Room(t.Context()); err == nil {
		t.Error("the day has room")
	}
	if err := record(); err == nil || !strings.Contains(err.Error(), "of today") || written != 10 {
		t.Errorf("event 11: %v, %d written; want that the day is full", err, written)
	}
	now = now.Add(time.Minute)
	if err := record(); err != nil || written != 11 {
		t.Errorf("the next day: %v", err)
	}
	for what, text := range map[string]string{"no number": "2026-03-02", "less than nothing": "2026-03-02 -5\n", "no day": "yesterday 5\n", "words": "x"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := record(); err == nil || !strings.Contains(err.Error(), "remove it") || written != 11 {
			t.Errorf("%s: %v; want that nothing is recorded", what, err)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(t.TempDir(), "other"), file); err != nil {
		t.Fatal(err)
	}
	if err := record(); err == nil || written != 11 {
		t.Errorf("a link: %v; want that nothing is recorded", err)
	}
}
