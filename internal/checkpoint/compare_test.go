package checkpoint

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"
)

// TestCompare names what differs between two checkpoints.
func TestCompare(t *testing.T) {
	w := newWorld(t)
	w.file("same", "same")
	w.file("d/changed", "one")
	w.file("d/gone", "gone")
	w.file("becomes", "a directory")
	start := w.take("s", AtStart)
	w.file("d/changed", "two!")
	w.must(removeAll(w.path("d/gone"), w.path("becomes")))
	w.file("becomes/inner", "new")
	end := w.take("s", AtEnd)
	s := w.store()
	defer s.Close()
	names := func(paths ...string) (list []string) {
		diff, err := s.Compare(start, end, paths)
		w.must(err)
		for _, d := range diff {
			list = append(list, fmt.Sprintf("%s %v %v", d.Path[len(w.root)+1:], d.Old != nil, d.New != nil))
		}
		return list
	}
	if got := names(); !slices.Equal(got, []string{"becomes true true", "becomes/inner false true", "d/changed true true", "d/gone true false"}) {
		t.Errorf("%q", got)
	}
	if got := names(w.path("d")); !slices.Equal(got, []string{"d/changed true true", "d/gone true false"}) {
		t.Errorf("%q", got)
	}
	diff, err := s.Compare(start, end, []string{w.path("d/changed")})
	w.must(err)
	if b, err := s.Content(diff[0].New, 100); string(b) != "two!" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := s.Content(diff[0].New, 3); err == nil {
		t.Error("a content that is too large is read")
	}
}

// TestGuestCantPushOut: however much a session writes, how it began stays.
func TestGuestCantPushOut(t *testing.T) {
	w := newWorld(t)
	w.file("mine", "the human's")
	w.take("before", AtStart)
	start := w.take("s", AtStart)
	r := rand.NewChaCha8([32]byte{})
	for range 6 {
		b := make([]byte, 200_000)
		_, _ = r.Read(b)
		w.file("junk", string(b))
		w.take("s", AtTime)
	}
	w.must(removeAll(w.path("mine")))
	w.take("s", AtEnd)
	s := w.store()
	gone, err := s.Prune(Limits{Bytes: 300_000, Age: time.Hour, Fine: time.Hour}, time.Now())
	w.must(err)
	w.must(s.Close())
	if len(gone) < 4 || slices.ContainsFunc(gone, func(c Checkpoint) bool { return c.ID == start.ID }) {
		t.Errorf("%d are gone: %+v", len(gone), gone)
	}
	w.undo(start, nil, w.path("mine"))
	if _, ok := w.state()["mine"]; !ok {
		t.Error("it does not come back")
	}
}

func removeAll(paths ...string) (err error) {
	for _, p := range paths {
		err = errors.Join(err, os.RemoveAll(p))
	}
	return err
}
