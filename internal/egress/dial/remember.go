package dial

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// How long an answer is used again, and how many there are at a time. A client
// that opens a handful of connections to a host opens them within that time.
const (
	rememberFor   = 3 * time.Second
	maxRemembered = 256
)

// Remember returns a lookup for a Dialer that uses the answers of another one
// again for 3 seconds; nil is the host's own resolver. To ask it costs more
// than all else that a connection takes.
//
// That opens nothing: an answer is only where to look, and each Dial judges the
// addresses of it anew. A name that changes its address to one that is closed
// (DNS rebinding) is refused whenever that answer is seen, and until then the
// address that was judged is dialled. Failures are not remembered.
func Remember(lookup func(context.Context, string) ([]netip.Addr, error), now func() time.Time) func(context.Context, string) ([]netip.Addr, error) {
	if lookup == nil {
		lookup = hostLookup
	}
	m := memory{now: now, answers: map[string]answer{}}
	return func(ctx context.Context, host string) ([]netip.Addr, error) {
		if addrs := m.recall(host); addrs != nil {
			return addrs, nil
		}
		asked := now()
		addrs, err := lookup(ctx, host)
		if err == nil && len(addrs) > 0 {
			m.keep(host, addrs, asked)
		}
		return addrs, err
	}
}

type memory struct {
	now     func() time.Time
	mu      sync.Mutex
	answers map[string]answer
}

type answer struct {
	addrs []netip.Addr
	asked time.Time
}

func (m *memory) fresh(a answer) bool {
	age := m.now().Sub(a.asked)
	return age >= 0 && age < rememberFor
}

// recall returns nil for an unknown or forgotten name.
func (m *memory) recall(host string) []netip.Addr {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a, ok := m.answers[host]; ok && m.fresh(a) {
		return slices.Clone(a.addrs)
	}
	return nil
}

// keep stores an answer. If the memory is full, it drops old answers first, then
// all.
func (m *memory) keep(host string, addrs []netip.Addr, asked time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.answers) >= maxRemembered {
		for h, a := range m.answers {
			if !m.fresh(a) {
				delete(m.answers, h)
			}
		}
	}
	if len(m.answers) >= maxRemembered {
		clear(m.answers)
	}
	m.answers[host] = answer{slices.Clone(addrs), asked}
}
