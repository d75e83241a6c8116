package approval

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/bawn-dev/bawn"
)

// An Entry is one asker's question as a Store keeps it. Several entries may
// belong to one approval: they are the same question.
type Entry struct {
	Record
	Lead     string // the ID of the approval: of the first that asked
	Digest   string // of the question, in hex; an ID is bound to it
	Key      string // the same for all askers of the approval, in hex
	Root     string // names the asker's tree: its owner, if it has one, and the session above all others
	Gone     bool   // this asker has withdrawn, others may wait
	Recorded State  // the last state that is in the audit log, "" for none
}

// An Outcome is how an approval ends.
type Outcome struct {
	State  State
	Answer bawn.Answer
	At     time.Time
	// For is the asker who gets a yes "once". Rest become a new pending
	// approval, led by the first of them.
	For  string
	Rest []string
}

// Once reports whether the outcome is a yes to one asker.
func (o *Outcome) Once() bool {
	return (&Record{State: o.State, Answer: o.Answer}).Once()
}

// A Store keeps what a Queue must not lose. What a method has done is durable
// when it returns nil; when it returns an error nothing has changed. Many
// goroutines call it.
type Store interface {
	// Put adds an asker. With Lead == ID it begins an approval; otherwise the
	// approval Lead exists. An existing ID is ErrMismatch.
	Put(ctx context.Context, e Entry) error
	// Leave marks the asker as gone.
	Leave(ctx context.Context, id string) error
	// Settle ends a pending approval and reports true, once. Later calls report
	// false and change nothing. With a yes "once" the same step begins a new
	// approval of Rest. Every other asker but For counts as gone, so that only For
	// can ever get the answer.
	Settle(ctx context.Context, lead string, o Outcome) (bool, error)
	// Recorded notes that the approval's state s is in the audit log. It need
	// not be durable at once: to record twice is better than never.
	Recorded(ctx context.Context, lead string, s State) error
	// Get returns one asker's entry with what has become of its approval, or
	// ErrUnknown.
	Get(ctx context.Context, id string) (Entry, error)
	// Open returns the askers of each approval that is pending or of which the
	// last state may be missing in the audit log, in the order of Put.
	Open(ctx context.Context) ([]Entry, error)
	// History returns settled approvals (their first asker's questions), the
	// latest first: at most limit, and only those settled before that time.
	History(ctx context.Context, before time.Time, limit int) ([]Record, error)
}

// A Memory is a Store that ends with the process: of a session that has no
// relay. The zero Memory is empty.
type Memory struct {
	mu        sync.Mutex
	order     []string // IDs of askers
	askers    map[string]Entry
	approvals map[string]Entry // by lead; only state, answer, settled and recorded
	next      int              // after this many askers it is checked again what can be forgotten
}

var _ Store = (*Memory)(nil)

// Put is Store's.
func (m *Memory) Put(_ context.Context, e Entry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, taken := m.askers[e.ID]; taken {
		return ErrMismatch
	}
	if m.askers == nil {
		m.askers, m.approvals = map[string]Entry{}, map[string]Entry{}
	}
	m.forget()
	if e.Lead == e.ID {
		m.approvals[e.Lead] = Entry{Record: Record{State: Pending}}
	} else if _, there := m.approvals[e.Lead]; !there {
		return ErrUnknown
	}
	m.askers[e.ID] = e
	m.order = append(m.order, e.ID)
	return nil
}

// remembered is how many askers a Memory keeps before it forgets settled ones.
const remembered = 4096

// forget drops settled ones once there are many.
func (m *Memory) forget() {
	if len(m.order) < max(remembered, m.next) {
		return
	}
	m.order = slices.DeleteFunc(m.order, func(id string) bool {
		e := m.entry(id)
		drop := e.State != Pending && e.Recorded == e.State
		if drop {
			delete(m.askers, id)
			delete(m.approvals, id)
		}
		return drop
	})
	m.next = 2 * len(m.order)
}

// Leave is Store's.
func (m *Memory) Leave(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, there := m.askers[id]
	if !there {
		return ErrUnknown
	}
	e.Gone = true
	m.askers[id] = e
	return nil
}

// Settle is Store's.
func (m *Memory) Settle(_ context.Context, lead string, o Outcome) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, there := m.approvals[lead]
	if !there {
		return false, ErrUnknown
	}
	if a.State != Pending {
		return false, nil
	}
	a.State, a.Answer, a.Settled = o.State, o.Answer, o.At
	m.approvals[lead] = a
	if o.Once() {
		m.split(lead, &o)
	}
	return true, nil
}

func (m *Memory) split(lead string, o *Outcome) {
	if len(o.Rest) > 0 {
		m.approvals[o.Rest[0]] = Entry{Record: Record{State: Pending}}
	}
	for _, id := range m.order {
		e := m.askers[id]
		switch {
		case e.Lead != lead || id == o.For:
			continue
		case slices.Contains(o.Rest, id):
			e.Lead = o.Rest[0]
		default:
			e.Gone = true
		}
		m.askers[id] = e
	}
}

// Recorded is Store's.
func (m *Memory) Recorded(_ context.Context, lead string, s State) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, there := m.approvals[lead]
	if !there {
		return ErrUnknown
	}
	a.Recorded = s
	m.approvals[lead] = a
	return nil
}

// Get is Store's.
func (m *Memory) Get(_ context.Context, id string) (Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, there := m.askers[id]; !there {
		return Entry{}, ErrUnknown
	}
	return m.entry(id), nil
}

func (m *Memory) entry(id string) Entry {
	e := m.askers[id]
	a := m.approvals[e.Lead]
	e.State, e.Answer, e.Settled, e.Recorded = a.State, a.Answer, a.Settled, a.Recorded
	return e
}

// Open is Store's.
func (m *Memory) Open(context.Context) ([]Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var open []Entry
	for _, id := range m.order {
		if e := m.entry(id); e.State == Pending || e.Recorded != e.State {
			open = append(open, e)
		}
	}
	return open, nil
}

// History is Store's.
func (m *Memory) History(_ context.Context, before time.Time, limit int) ([]Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var past []Record
	for lead := range maps.Keys(m.approvals) {
		if e := m.entry(lead); e.State != Pending && e.Settled.Before(before) {
			past = append(past, e.Record)
		}
	}
	slices.SortFunc(past, func(a, b Record) int { return b.Settled.Compare(a.Settled) })
	return past[:min(len(past), max(limit, 0))], nil
}
