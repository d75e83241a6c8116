package dockerapi

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
)

// A gate is held by one alone or shared by many, never both; an unused gate is forgotten.
func TestGates(t *testing.T) {
	var g gates
	var inside, most atomic.Int32
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			if i%4 > 0 {
				leave, err := g.share(t.Context(), "a")
				if err != nil {
					t.Error(err)
					return
				}
				most.Store(max(most.Load(), inside.Add(1)))
				inside.Add(-1)
				leave()
				return
			}
			leave, err := g.allAlone(t.Context(), []string{"b", "a", "b"})
			if err != nil {
				t.Error(err)
				return
			}
			if n := inside.Add(1000); n != 1000 {
				t.Errorf("%d others are inside", n-1000)
			}
			inside.Add(-1000)
			leave()
		})
	}
	all.Wait()
	leave, err := g.share(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	given, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.alone(given, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("alone beside another: %v", err)
	}
	leave2, err := g.share(t.Context(), "a")
	if err != nil {
		t.Fatalf("shared: %v", err)
	}
	leave()
	leave2()
	if len(g.list) != 0 {
		t.Errorf("gates are kept: %v", g.list)
	}
}
