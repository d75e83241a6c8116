package mitm

import (
	"slices"
	"sync"

	"github.com/bawn-dev/bawn"
)

// A memory records which secrets each host got in a session. A host may return one in
// any later answer, also to a request without a secret, and without TLS. So may every
// other host that the same secret is bound to: they are of one service.
type memory struct {
	mu    sync.Mutex
	lent  []lent
	known map[Target]remembered
}

// A lent value is what one host got.
type lent struct {
	host, secret string
	pair
}

// A host's memory holds the first uses of all lent secrets.
type remembered struct {
	seen int
	echo *echo
}

// keep adds the values of uses, which are then recognised in a host's data.
func (m *memory) keep(host string, uses []use) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, u := range uses {
		for _, p := range u.pairs() {
			same := func(l lent) bool {
				return l.host == host && l.secret == u.binding.Secret && string(l.value) == string(p.value) && l.stand == p.stand
			}
			if !slices.ContainsFunc(m.lent, same) {
				m.lent = append(m.lent, lent{host, u.binding.Secret, pair{slices.Clone(p.value), p.stand}})
			}
		}
	}
}

// of returns the memory of a host, to which secrets are bound; nil if it got none.
func (m *memory) of(target Target, bound []bawn.Binding) *echo {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.known[target]
	for _, l := range m.lent[now.seen:] {
		shared := func(b bawn.Binding) bool { return b.Secret == l.secret }
		if (l.host == target.Host || slices.ContainsFunc(bound, shared)) && !now.echo.knows(l.pair) {
			now.echo = now.echo.also(l.pair)
		}
	}
	if now.seen = len(m.lent); m.known == nil {
		m.known = map[Target]remembered{}
	}
	m.known[target] = now
	return now.echo
}

// Mask takes every value out of a text that was lent in the session.
func (s *Server) Mask(text string) string {
	s.told.mu.Lock()
	defer s.told.mu.Unlock()
	var all *echo
	for _, l := range s.told.lent {
		all = all.also(l.pair)
	}
	return all.text(text)
}

// known are the values to replace in the host's data now.
func (x *exchange) known() *echo {
	if x.echo != nil {
		return x.echo
	}
	return x.told.of(x.target, x.bound)
}

// guarded reports whether the host may send a secret back: it got one, or may get one
// before its answer ends.
func (x *exchange) guarded() bool { return len(x.bound)+len(x.uses) > 0 || x.known() != nil }
