package frontend

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/attach"
	"github.com/bawn-dev/bawn/internal/audit"
	"github.com/bawn-dev/bawn/internal/relay/api"
	bawnv1 "github.com/bawn-dev/bawn/proto/bawn/v1"
)

// Limits of what is read from the log and kept of it.
const (
	flowEvery  = 500 * time.Millisecond // between two looks
	flowScan   = 200_000                // records of one look
	flowHosts  = 200                    // of one session
	flowBefore = time.Hour              // before the oldest session that runs: clocks go back
)

// A flow is what the audit log says of sessions that run: what holds them and
// which connections they have open. It reads what is new when somebody asks.
type flow struct {
	dir string

	mu       sync.Mutex
	last     uint64 // number of the newest record that was read
	looked   time.Time
	sessions map[string]*traffic
}

// A traffic is what the log says of one session.
type traffic struct {
	enforced []*bawnv1.Enforced
	open     map[string]*connection // by host:port, including those without an open connection
}

type connection struct {
	count          int
	opened         time.Time // the latest
	sent, received int64     // of ended ones, in bytes
}

// update reads what was recorded since the last look. A log that can't be read
// shows nothing; that is told where the log itself is shown.
func (f *flow) update(now time.Time, entries []attach.Entry) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dir == "" || now.Sub(f.looked) < flowEvery && now.After(f.looked) {
		return
	}
	f.looked = now
	running := map[string]*traffic{}
	oldest := now
	for _, e := range entries {
		if e.State == attach.Running {
			running[e.ID] = f.sessions[e.ID]
			if e.Started.Before(oldest) {
				oldest = e.Started
			}
		}
	}
	f.sessions = running
	fresh := f.read(oldest.Add(-flowBefore))
	for _, entry := range slices.Backward(fresh) {
		f.apply(entry.Event)
	}
}

// read returns the records since the last look, the newest first.
func (f *flow) read(oldest time.Time) (fresh []audit.Entry) {
	newest, scanned := f.last, 0
	for entry, err := range audit.Query(f.dir, audit.Filter{NewestFirst: true}) {
		if err != nil {
			continue
		}
		if scanned++; scanned > flowScan || entry.Seq <= f.last || entry.Event.Time.Before(oldest) {
			break
		}
		newest = max(newest, entry.Seq)
		if _, runs := f.sessions[entry.Event.Session]; runs {
			entry.Raw = nil
			fresh = append(fresh, entry)
		}
	}
	f.last = newest
	return fresh
}

// apply notes one record. It is called with the lock held.
func (f *flow) apply(e bawn.Event) {
	t := f.sessions[e.Session]
	if t == nil {
		t = &traffic{open: map[string]*connection{}}
		f.sessions[e.Session] = t
	}
	switch {
	case e.Kind == bawn.Command.String() && e.Operation == bawn.Exec.String() && e.Details["profile"] != "" && t.enforced == nil:
		t.enforced = enforced(e)
	case e.Kind == bawn.Network.String() && !strings.Contains(e.Resource, "://"):
		t.note(e)
	}
}

// note counts a connection that begins or ends (docs/audit-format.md).
func (t *traffic) note(e bawn.Event) {
	c := t.open[e.Resource]
	switch {
	case e.Operation == bawn.Connect.String() && e.Resolved == bawn.Allow:
		if c == nil {
			if len(t.open) >= flowHosts {
				maps.DeleteFunc(t.open, func(_ string, c *connection) bool { return c.count == 0 })
			}
			if len(t.open) >= flowHosts {
				return
			}
			c = &connection{}
			t.open[e.Resource] = c
		}
		c.count++
		c.opened = e.Time
	case e.Operation == "end" && c != nil:
		c.count = max(c.count-1, 0)
		c.sent += bytesOf(e.Details["bytesOut"])
		c.received += bytesOf(e.Details["bytesIn"])
	}
}

// bytesOf reads a number of the log, or returns 0 for text that is not a number.
func bytesOf(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// of returns a copy of what is known of a session.
func (f *flow) of(session string) traffic {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.sessions[session]
	if t == nil {
		return traffic{}
	}
	out := traffic{enforced: t.enforced, open: map[string]*connection{}}
	for host, c := range t.open {
		one := *c
		out.open[host] = &one
	}
	return out
}

// connections returns those that are open, by name.
func (t traffic) connections() []*bawnv1.Connection {
	var out []*bawnv1.Connection
	for host, c := range t.open {
		if c.count > 0 {
			out = append(out, &bawnv1.Connection{Host: api.Line(host), Opened: timestamppb.New(c.opened), Count: uint32(c.count), Sent: c.sent, Received: c.received})
		}
	}
	slices.SortFunc(out, func(a, b *bawnv1.Connection) int { return cmp.Compare(a.Host, b.Host) })
	return out
}

// enforced reads a session's first record: its effective isolation.
func enforced(e bawn.Event) []*bawnv1.Enforced {
	out := []*bawnv1.Enforced{
		{Name: "profile", How: api.Line(e.Details["profile"])},
		{Name: "provider", How: api.Line(e.Provider)},
		{Name: "network", How: api.Line(e.Details["network"])},
	}
	var names []string
	for name := range e.Details {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if path, ok := strings.CutPrefix(name, "write "); ok {
			out = append(out, &bawnv1.Enforced{Name: "writable", How: api.Line(path)})
		}
		if attribute, ok := strings.CutPrefix(name, "in part "); ok {
			out = append(out, &bawnv1.Enforced{Name: api.Line(attribute), How: api.Line(e.Details[name]), Partly: true})
		}
	}
	return out
}
