package asking

import (
	"sync"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval"
)

// Held returns the verdict of a person's rule, or an answer "never", about a command in a
// zone, if that denies or asks. Nobody is asked. Where the rules can't be read they deny
// everything.
func (d *Prompter) Held(z Zone, a bawn.Action) (bawn.Decision, bool) {
	p, err := d.policy()
	if err != nil {
		return bawn.Denied(err.Error(), "builtin:no-policy"), true
	}
	q := d.about(&z, a)
	return p.Held(&q)
}

// Named reports whether a yes to a line has named a program, which nobody is asked about
// then: once for each time that a line was allowed that names it.
func (d *Prompter) Named(a bawn.Action) bool { return d.named.spend(program(a), d.opts.Now()) }

// names has a yes to a line answer what the programs that it names would ask.
func (d *Prompter) names(a bawn.Action, yes bawn.Answer) {
	if d.opts.Programs == nil || yes.Verdict != bawn.Allow || a.Kind != bawn.Command {
		return
	}
	for _, p := range d.opts.Programs(a) {
		d.named.add(program(p), d.opts.Now().Add(opensFor))
	}
}

// program is the digest of one that is about to start: its words and its directory.
func program(a bawn.Action) approval.Digest {
	a.Resource = ""
	return approval.DigestOf("program", &a, "")
}

// maxNamed is how many programs a session's lines may have named that did not start. With
// more all of them are asked about: a guest may say a line again and again.
const maxNamed = 1000

// named are programs that lines have named, and until when that counts.
type named struct {
	mu    sync.Mutex
	n     int
	until map[approval.Digest][]time.Time
}

func (m *named) add(d approval.Digest, until time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.until == nil || m.n >= maxNamed {
		m.n, m.until = 0, map[approval.Digest][]time.Time{}
	}
	m.n++
	m.until[d] = append(m.until[d], until)
}

func (m *named) spend(d approval.Digest, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := m.until[d]
	for i, until := range list {
		if now.Before(until) {
			m.n -= i + 1
			m.until[d] = list[i+1:]
			return true
		}
	}
	m.n -= len(list)
	delete(m.until, d)
	return false
}
