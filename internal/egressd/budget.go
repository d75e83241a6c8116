package egressd

import (
	"cmp"
	"sync"

	"github.com/bawn-dev/bawn"
)

// budgets count the requests and bytes sent with each secret of a session. The
// zero budgets have the usual limits.
type budgets struct {
	mu          sync.Mutex
	uses, bytes int64 // of one secret; 0 is usual
	spent       map[string]budget
}

type budget struct{ uses, bytes int64 }

// limit takes the limits of a session.
func (b *budgets) limit(e bawn.Egress) { b.uses, b.bytes = e.MaxUses, e.MaxLentMB<<20 }

// use counts a request before it is decided on, so that those that go on at the same
// time count for each other.
func (b *budgets) use(secrets []string) { b.add(secrets, budget{uses: 1}) }

// back takes a request back that was not allowed.
func (b *budgets) back(secrets []string) { b.add(secrets, budget{uses: -1}) }

// send counts bytes on their way.
func (b *budgets) send(secrets []string, bytes int64) { b.add(secrets, budget{bytes: bytes}) }

func (b *budgets) add(secrets []string, more budget) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, name := range secrets {
		if b.spent == nil {
			b.spent = map[string]budget{}
		}
		s := b.spent[name]
		b.spent[name] = budget{max(0, s.uses+more.uses), s.bytes + more.bytes}
	}
}

// over returns the secrets whose budget is used up, by the requests that are counted.
func (b *budgets) over(secrets []string) (out []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, name := range secrets {
		if b.isOver(name) {
			out = append(out, name)
		}
	}
	return out
}

func (b *budgets) isOver(name string) bool {
	s := b.spent[name]
	return s.uses > cmp.Or(b.uses, bawn.UsualUses) || s.bytes >= cmp.Or(b.bytes, bawn.UsualLentMB<<20)
}

// renew begins a budget anew that was used up, after a yes to a request, which counts.
func (b *budgets) renew(secrets []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, name := range secrets {
		if b.isOver(name) {
			b.spent[name] = budget{uses: 1}
		}
	}
}
