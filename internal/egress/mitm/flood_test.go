package mitm

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// TestFloodOfRequests: a guest can make us hold so many requests and no more;
// when they have ended, others pass.
func TestFloodOfRequests(t *testing.T) {
	const most = 40
	open := make(chan struct{})
	r := newRig(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "fine") }), func(r *rig) {
		r.most = most
		r.Decide = func(ctx context.Context, _ Request) bawn.Decision {
			select { // a human is asked
			case <-open:
			case <-ctx.Done():
			}
			return bawn.Decision{Verdict: bawn.Allow}
		}
	})
	guest := r.client(true)
	var all sync.WaitGroup
	defer all.Wait()
	release := sync.OnceFunc(func() { close(open) })
	defer release()
	for range most {
		all.Go(func() {
			if res, err := guest.Get(r.url("/held")); err != nil || res.StatusCode != http.StatusOK {
				t.Errorf("one of those within the limit: %v, %v", res, err)
			} else {
				res.Body.Close()
			}
		})
	}
	held := func() int { r.mu.Lock(); defer r.mu.Unlock(); return len(r.asked) }
	testenv.Until(t, "all of them to be held", func() bool { return held() == most })
	if res, body := r.do(guest, request(t, "GET", r.url("/more"), nil)); res.StatusCode != http.StatusTooManyRequests || !strings.Contains(body, "bawn") {
		t.Errorf("one more gets %d %q", res.StatusCode, body)
	}
	release()
	all.Wait()
	if res, body := r.do(guest, request(t, "GET", r.url("/later"), nil)); res.StatusCode != http.StatusOK || body != "fine" {
		t.Errorf("afterwards one gets %d %q", res.StatusCode, body)
	}
}
