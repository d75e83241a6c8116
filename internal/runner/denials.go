//go:build linux || darwin

package runner

import (
	"context"
	"sync"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// Bounds of what one session may write about its refusals: a guest must not
// be able to fill the log or the caller's memory.
const (
	maxKept     = 100
	maxRecorded = 1000
)

// denials keeps the provider's refusals and records each kind of refusal once.
// The guest does not wait for the log.
type denials struct {
	session *Session
	zone    string              // of a split session, or ""
	queue   chan sandbox.Denial // made for the first
	done    chan struct{}

	kept    []sandbox.Denial // of record, until done
	network []sandbox.Denial // that the relay has recorded

	mu     sync.Mutex
	closed bool
	seen   map[sandbox.Denial]bool
	missed int
	writes bool // record has begun
}

func newDenials(s Session, zone string) *denials {
	return &denials{session: &s, zone: zone, done: make(chan struct{}), seen: map[sandbox.Denial]bool{}}
}

// add is called by the provider, from any goroutine.
func (d *denials) add(n sandbox.Denial) {
	d.session.Recent.add(n)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || d.seen[n] {
		return
	}
	if len(d.seen) >= maxRecorded {
		d.missed++
		return
	}
	d.seen[n] = true
	if len(d.seen) > maxKept {
		d.missed++
	}
	if !d.writes {
		d.writes, d.queue = true, make(chan sandbox.Denial, maxRecorded)
		go d.record()
	}
	d.queue <- n // has room for all that are ever added
}

// atSocket adds the session socket's own refusals.
func (d *denials) atSocket(rule, reason string) {
	d.add(sandbox.Denial{Kind: bawn.Network, Operation: bawn.Connect, Resource: "unix:" + socketName, Rule: rule, Reason: reason, Remedy: "use the bawn of this session"})
}

// socketName is where a guest sees its session socket.
const socketName = "/run/bawn/session.sock"

func (d *denials) record() {
	defer close(d.done)
	for n := range d.queue {
		if d.session.Remedy != nil {
			n.Remedy = d.session.Remedy(n)
			d.session.Recent.remedy(n)
		}
		if len(d.kept) < maxKept {
			d.kept = append(d.kept, n)
		}
		e := d.session.event(inZone(map[string]string{"remedy": n.Remedy}, d.zone))
		e.Time, e.Kind, e.Operation, e.Resource = time.Now(), n.Kind.String(), n.Operation.String(), n.Resource
		e.Requested, e.Resolved, e.Source, e.Rule, e.Reason = bawn.Deny, bawn.Deny, "rule", n.Rule, n.Reason
		_ = d.session.Guard.Recorder.Record(context.Background(), e) // the refusal stands either way
	}
}

// close waits until everything is recorded and returns the kept refusals.
func (d *denials) close() ([]sandbox.Denial, int) {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	if d.writes {
		close(d.queue)
		<-d.done
	}
	return append(d.kept, d.network...), d.missed
}
