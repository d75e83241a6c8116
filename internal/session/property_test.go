package session

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/bawn-dev/bawn"
)

// met returns the meet, and false if the sessions have no meet.
func met(t *rapid.T, parent, asked bawn.Session) (bawn.Session, bool) {
	s, _, err := Meet(parent, asked)
	var none *MeetError
	if err != nil && !errors.As(err, &none) {
		t.Fatal(err)
	}
	return s, err == nil
}

func wantNoMore(t *rapid.T, what string, a, b bawn.Session) {
	if why, ok := meaningOf(a).noMore(meaningOf(b)); !ok {
		t.Fatalf("%s: %s\n%+v\nagainst\n%+v", what, why, a, b)
	}
}

func wantSame(t *rapid.T, what string, a, b bawn.Session) {
	wantNoMore(t, what, a, b)
	wantNoMore(t, what, b, a)
}

// TestMeetIsBelowBoth is the promise: never above the parent, never above what
// was asked for, in either order the same.
func TestMeetIsBelowBoth(t *testing.T) {
	tried := 0
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawSession(t, "a"), drawSession(t, "b")
		ab, ok := met(t, a, b)
		ba, too := met(t, b, a)
		if ok != too {
			t.Fatal("one way there is a meet, the other way none")
		}
		if !ok {
			return
		}
		tried++
		wantNoMore(t, "above the parent", ab, a)
		wantNoMore(t, "above what was asked", ab, b)
		wantSame(t, "not commutative", ab, ba)
	})
	if tried == 0 {
		t.Error("nothing was met")
	}
}

func TestMeetIsIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := drawSession(t, "a")
		b := copyOf(a)
		b.ID = "b"
		ab, narrowed, err := Meet(a, b)
		if err != nil {
			t.Fatal(err)
		}
		wantSame(t, "not idempotent", a, ab)
		if len(narrowed) > 0 {
			t.Fatalf("a child that asks for what its parent has is refused %+v", narrowed)
		}
		again := copyOf(ab)
		again.ID = "c"
		third, _, err := Meet(ab, again)
		if diff := cmp.Diff(ab.Isolation.Mounts, third.Isolation.Mounts); err != nil || diff != "" {
			t.Fatal("the mounts of a meet are not in one form", err, diff)
		}
	})
}

func TestMeetIsAssociative(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := drawSession(t, "a"), drawSession(t, "b"), drawSession(t, "c")
		left, okL := met(t, a, b)
		if okL {
			left, okL = met(t, left, c)
		}
		right, okR := met(t, b, c)
		if okR {
			right.ID = "bc"
			right, okR = met(t, a, right)
		}
		if okL != okR {
			t.Fatal("a meet there is and is not")
		}
		if okL {
			wantSame(t, "not associative", left, right)
		}
	})
}

// TestMeetIsMonotone: who asks for less gets no more.
func TestMeetIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := drawSession(t, "a"), drawSession(t, "b"), drawSession(t, "c")
		less, ok := met(t, c, b)
		if !ok {
			return
		}
		more, ok := met(t, a, b)
		if !ok {
			return
		}
		less.ID = "less"
		if small, ok := met(t, a, less); ok {
			wantNoMore(t, "asking for less gives more", small, more)
		}
	})
}
