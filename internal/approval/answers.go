package approval

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net"
	"sync"
	"time"

	"github.com/bawn-dev/bawn"
)

// A Digest identifies an action as a human is asked about it: an answer that
// goes beyond the one question holds for this digest.
type Digest [sha256.Size]byte

// DigestOf returns the digest of an action in a zone ("" where a session has one
// only). canonical is the action's text as it would run, or "" where that is
// a.Resource. more has what else the answer depends on. The directory does not
// count on the network, and the two ports of the web are one there.
func DigestOf(zone string, a *bawn.Action, canonical string, more ...[]string) (d Digest) {
	h := sha256.New()
	resource, dir := a.Resource, a.Dir
	if a.Kind == bawn.Network {
		resource, dir = topic(a), ""
	}
	put(h, zone, a.Kind.String(), a.Operation.String(), cmp.Or(canonical, resource), resource, dir)
	put(h, a.Args...)
	for _, list := range more {
		put(h, list...)
	}
	h.Sum(d[:0])
	return d
}

// DigestOfKind returns the digest of all actions in a zone to which the same answer
// holds (bawn.Decision.Holds).
func DigestOfKind(zone, holds string) (d Digest) {
	h := sha256.New()
	put(h, "kind", zone, holds)
	h.Sum(d[:0])
	return d
}

// topic is the resource of an action on the network, where a connection to port
// 80 is the same as one to port 443.
func topic(a *bawn.Action) string {
	host, port, err := net.SplitHostPort(a.Resource)
	if err == nil && len(a.Args) == 0 && (port == "80" || port == "443") {
		return "web " + host
	}
	return a.Resource
}

// Also returns the digest of d together with further words.
func (d Digest) Also(words ...string) (with Digest) {
	h := sha256.New()
	h.Write(d[:])
	put(h, words...)
	h.Sum(with[:0])
	return with
}

// String returns 64 hexadecimal digits.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// Answers is what a human has said in one session beyond single questions. The
// zero Answers holds nothing. Its methods may be called from any goroutine.
type Answers struct {
	mu    sync.Mutex
	said  map[Digest]bawn.Answer
	ahead map[Digest][]ahead
}

// ahead is an answer that was given before its action.
type ahead struct {
	answer bawn.Answer
	until  time.Time
}

// Say keeps an answer for the session.
func (m *Answers) Say(d Digest, a bawn.Answer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.said == nil {
		m.said = map[Digest]bawn.Answer{}
	}
	m.said[d] = a
}

// Said returns what was kept for the session.
func (m *Answers) Said(d Digest) (bawn.Answer, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, ok := m.said[d]
	return a, ok
}

// Ahead keeps an answer for the one action of this digest that comes before until;
// the zero time is for whenever it comes.
func (m *Answers) Ahead(d Digest, a bawn.Answer, until time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ahead == nil {
		m.ahead = map[Digest][]ahead{}
	}
	m.ahead[d] = append(m.ahead[d], ahead{a, until})
}

// Spend takes one answer that was given ahead and still holds.
func (m *Answers) Spend(d Digest, now time.Time) (bawn.Answer, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := m.ahead[d]
	for len(list) > 0 {
		first := list[0]
		list = list[1:]
		if first.until.IsZero() || now.Before(first.until) {
			m.ahead[d] = list
			return first.answer, true
		}
	}
	delete(m.ahead, d)
	return bawn.Answer{}, false
}
