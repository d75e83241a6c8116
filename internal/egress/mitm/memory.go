package mitm

import "sync"

// A memory is which secrets each host got in a session: a host may keep one and give it
// back in any later answer, also to a request that brings none, and without TLS.
type memory struct {
	mu    sync.Mutex
	hosts map[string]*echo
}

// keep has the values of uses known from now on in what a host sends.
func (m *memory) keep(host string, uses []use) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.hosts[host]
	for _, u := range uses {
		for _, p := range u.pairs() {
			if !known.knows(p) {
				known = known.also(p)
			}
		}
	}
	if m.hosts == nil {
		m.hosts = map[string]*echo{}
	}
	m.hosts[host] = known
}

// of is what is known of a host; nil where it got nothing.
func (m *memory) of(host string) *echo {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.hosts[host]
}

// known is what is replaced in what the host sends now.
func (x *exchange) known() *echo {
	if x.echo != nil {
		return x.echo
	}
	return x.told.of(x.target.Host)
}

// guarded reports whether the host may send a secret back: it got one, or may get one
// before its answer ends.
func (x *exchange) guarded() bool { return len(x.bound)+len(x.uses) > 0 || x.known() != nil }
