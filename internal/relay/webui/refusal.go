package webui

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/bawn-dev/bawn"
)

// The kind of this package's events, and their operations.
const eventKind = "relay"

const (
	opPair   = "pair"
	opLogin  = "login"
	opTouch  = "touch" // of a passkey, for one thing
	opLogout = "logout"
	opRevoke = "revoke"
	opRefuse = "refuse"
)

// refusals record what was refused. A flood of them does not fill the log: the
// first are recorded, of the others the number.
type refusals struct {
	to  bawn.Recorder
	now func() time.Time
	log *slog.Logger

	mu      sync.Mutex
	limit   *rate.Limiter
	skipped int
}

// What is recorded of refusals: so many at once, then one in a while.
const (
	refusalBurst = 50
	refusalEach  = 2 * time.Second
)

// add records one refusal.
func (f *refusals) add(r *http.Request, what, why string) {
	f.mu.Lock()
	if f.limit == nil {
		f.limit = rate.NewLimiter(rate.Every(refusalEach), refusalBurst)
	}
	if !f.limit.AllowN(f.now(), 1) {
		f.skipped++
		f.mu.Unlock()
		return
	}
	skipped := f.skipped
	f.skipped = 0
	f.mu.Unlock()
	e := event(r, opRefuse, what, bawn.Deny, why)
	if skipped > 0 {
		e.Details["refusals not recorded"] = strconv.Itoa(skipped)
	}
	ctx := context.WithoutCancel(r.Context()) // the peer's going away must not hide what it tried
	if err := f.to.Record(ctx, e); err != nil {
		f.log.Error("a refusal can't be recorded", "error", err)
	}
}

// event describes what a peer did at this page.
func event(r *http.Request, operation, what string, v bawn.Verdict, why string) bawn.Event {
	return bawn.Event{
		Kind: eventKind, Operation: operation, Resource: clip(what, 200), Requested: v, Resolved: v, Source: "rule", Rule: "builtin:relay", Reason: why,
		Details: map[string]string{"peer": r.RemoteAddr, "agent": clip(r.UserAgent(), 200)},
	}
}

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n]
}
