package relay

import (
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval"
	"github.com/bawn-dev/bawn/internal/audit"
	"github.com/bawn-dev/bawn/internal/relay/store"
)

// BenchmarkDurable is questions that are asked and answered by many at once,
// with all that a relay does: on disk and in the audit log.
func BenchmarkDurable(b *testing.B) {
	dir := b.TempDir()
	db, err := store.Open(b.Context(), filepath.Join(dir, "db"), time.Now())
	must(b, err)
	defer db.Close()
	log, err := audit.Open(filepath.Join(dir, "audit"), audit.Options{})
	must(b, err)
	defer log.Close()
	q, err := approval.NewQueue(b.Context(), approval.Options{Store: db, Recorder: log})
	must(b, err)
	defer q.Close()
	human(b, q)
	for _, askers := range []int{1, 64, 512} {
		b.Run(fmt.Sprintf("askers=%d", askers), func(b *testing.B) {
			b.SetParallelism(askers)
			var session atomic.Int64
			b.RunParallel(func(pb *testing.PB) {
				s := fmt.Sprint("s", session.Add(1))
				for n := 0; pb.Next(); n++ {
					if _, err := q.Ask(b.Context(), question(s, fmt.Sprint(n))); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}

// human answers whatever is pending.
func human(b *testing.B, q *approval.Queue) {
	changes, err := q.Watch(b.Context())
	must(b, err)
	go func() {
		for r := range changes {
			if r.State != approval.Pending {
				continue
			}
			go func() {
				if _, err := q.Answer(b.Context(), r.ID, bawn.Answer{Verdict: bawn.Allow, By: "bench"}); err != nil && b.Context().Err() == nil {
					b.Error(err)
				}
			}()
		}
	}()
}
