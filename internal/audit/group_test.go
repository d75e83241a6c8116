package audit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
)

// TestTogether has many goroutines record at once, some of which give up: what
// was reported as recorded is in the log once, and what was not is not there.
func TestTogether(t *testing.T) {
	dir := t.TempDir() + "/audit"
	l, err := Open(dir, Options{Sync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var mu sync.Mutex
	outcome := map[string]error{}
	var all sync.WaitGroup
	for g := range 64 {
		all.Go(func() {
			for i := range 20 {
				ctx, cancel := context.WithCancel(t.Context())
				if (g+i)%7 == 0 {
					time.AfterFunc(time.Duration(i)*50*time.Microsecond, cancel)
				}
				name := fmt.Sprintf("/%d/%d", g, i)
				err := l.Record(ctx, bawn.Event{Kind: "filesystem", Operation: "read", Resource: name})
				cancel()
				mu.Lock()
				outcome[name] = err
				mu.Unlock()
			}
		})
	}
	all.Wait()
	found := map[string]int{}
	for e, err := range Query(dir, Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		found[e.Event.Resource]++
	}
	gaveUp := 0
	for name, err := range outcome {
		if want := map[bool]int{true: 1}[err == nil]; found[name] != want {
			t.Errorf("%s: Record said %v and the log has it %d times", name, err, found[name])
		}
		if errors.Is(err, context.Canceled) {
			gaveUp++
		}
	}
	t.Logf("%d of %d gave up", gaveUp, len(outcome))
}

// TestTogetherFails shows that nobody is told yes when a write for many fails.
func TestTogetherFails(t *testing.T) {
	l, err := Open(t.TempDir()+"/audit", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	var failed atomic.Int32
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			if err := l.Record(t.Context(), bawn.Event{Kind: "filesystem", Operation: "read", Resource: "/x"}); errors.Is(err, ErrClosed) {
				failed.Add(1)
			}
		})
	}
	all.Wait()
	if failed.Load() != 100 {
		t.Errorf("%d of 100 were refused", failed.Load())
	}
}

// BenchmarkTogether measures durable events of many goroutines, where an event
// alone costs one fsync(2).
func BenchmarkTogether(b *testing.B) {
	for _, n := range []int{1, 16, 256} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			l, err := Open(b.TempDir()+"/audit", Options{Sync: true})
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			var left atomic.Int64
			left.Store(int64(b.N))
			var all sync.WaitGroup
			for range n {
				all.Go(func() {
					for left.Add(-1) >= 0 {
						if err := l.Record(context.Background(), bawn.Event{Kind: "command", Operation: "exec", Resource: "go build ./..."}); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
}
