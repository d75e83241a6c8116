package undo

import (
	"os"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/checkpoint"
)

// TestPruneGone: the checkpoints of a workspace that is not there any more go in the
// end; those of one that is there stay, however old, and so do those in use.
func TestPruneGone(t *testing.T) {
	w := newWorld(t)
	w.put("a", "one")
	k := w.begin("s")
	k.Run()
	w.put("a", "two, longer")
	w.end(k)
	place := checkpoint.Place(w.state, w.w)
	there := func(name string, days int, want bool) {
		t.Helper()
		if err := pruneGone(w.state, time.Now().Add(time.Duration(days)*24*time.Hour)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(place); (err == nil) != want {
			t.Fatalf("%s: there %v, want %v", name, err == nil, want)
		}
	}
	there("an old workspace", 400, true)
	if err := os.RemoveAll(w.w); err != nil {
		t.Fatal(err)
	}
	there("gone for a moment", 29, true)
	s, err := checkpoint.Open(place, 0)
	if err != nil {
		t.Fatal(err)
	}
	there("in use", 31, true)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	there("gone for long", 31, false)
}
