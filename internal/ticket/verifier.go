package ticket

import (
	"crypto/ed25519"
	"encoding/hex"
	"slices"
	"sync"
	"time"

	"github.com/bawn-dev/bawn"
)

// Skew is by how much the relay's clock may be ahead of the executor's. Nothing
// is granted after the expiry, whatever the clocks.
const Skew = 5 * time.Second

// A Verifier redeems tickets, each once. The zero Verifier trusts no key and
// refuses everything. It may be used from several goroutines.
type Verifier struct {
	now  func() time.Time
	mu   sync.Mutex
	keys map[string]Key
	used map[int64]map[[16]byte]bool // by the minute in which they expire
	// horizon is up to when all was forgotten, ns since 1970. What expires no
	// later is refused, so that a clock that goes back opens nothing.
	horizon int64
}

// NewVerifier makes a verifier that trusts the keys. The clock is the
// executor's.
func NewVerifier(now func() time.Time, keys ...Key) *Verifier {
	v := &Verifier{now: now}
	v.Trust(keys)
	return v
}

// Trust replaces the keys. What was used stays used. A key that is no Ed25519
// key is trusted with nothing.
func (v *Verifier) Trust(keys []Key) {
	byID := map[string]Key{}
	for _, k := range keys {
		if len(k.Public) == ed25519.PublicKeySize {
			k.Public = slices.Clone(k.Public)
			byID[k.ID()] = k
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.keys = byID
}

// Redeem uses the ticket for an action of the session, once. Its error is a
// *RefusedError; then the ticket is not used, and the action must not happen.
// The session and the digest are those of what is about to be executed, never
// what the one who brings the ticket says.
func (v *Verifier) Redeem(data []byte, session string, digest [32]byte) (bawn.Ticket, error) {
	c, key, err := v.read(data)
	if err != nil {
		return bawn.Ticket{}, err
	}
	switch {
	case c.session != session:
		return bawn.Ticket{}, refuse(RuleSession, "it is for another session")
	case c.digest != digest:
		return bawn.Ticket{}, refuse(RuleDigest, "it is for another action, or for this one with something changed")
	case !key.Until.IsZero() && c.expires > key.Until.UnixNano():
		return bawn.Ticket{}, refuse(RuleKey, "its key was retired before")
	}
	if err := v.use(c); err != nil {
		return bawn.Ticket{}, err
	}
	return bawn.Ticket{ID: hex.EncodeToString(c.id[:]), Session: c.session, Digest: c.digest, Expires: time.Unix(0, c.expires).UTC()}, nil
}

// read returns what the ticket says once it is certain who says it.
func (v *Verifier) read(data []byte) (claim, Key, error) {
	e, err := open(data)
	if err != nil {
		return claim{}, Key{}, err
	}
	v.mu.Lock()
	key, known := v.keys[e.key]
	v.mu.Unlock()
	if !known {
		return claim{}, Key{}, refuse(RuleKey, "no trusted key signs so; the relay may have rotated its key")
	}
	if !ed25519.Verify(key.Public, pae(e.payload), e.sig) {
		return claim{}, Key{}, refuse(RuleForged, "the signature is not that of the key it names")
	}
	c, err := decodeClaim(e.payload)
	return c, key, err
}

// use looks at the clock and at what was used, and marks the ticket, as one
// step.
func (v *Verifier) use(c claim) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := v.now()
	v.forget(now.UnixNano())
	minute := c.expires / int64(time.Minute)
	switch {
	case c.issued > now.Add(Skew).UnixNano():
		return refuse(RuleEarly, "it was issued more than %v ahead of this clock", Skew)
	case c.expires <= now.UnixNano() || c.expires <= v.horizon:
		return refuse(RuleExpired, "its time is over; the action needs to be approved again")
	case v.used[minute][c.id]:
		return refuse(RuleReplayed, "it was used before; each permits one action once")
	case v.used == nil:
		v.used = map[int64]map[[16]byte]bool{}
	}
	if v.used[minute] == nil {
		v.used[minute] = map[[16]byte]bool{}
	}
	v.used[minute][c.id] = true
	return nil
}

// forget drops the minutes in which everything has expired: there are never
// more than MaxTTL has, and two.
func (v *Verifier) forget(now int64) {
	for minute := range v.used {
		if end := (minute + 1) * int64(time.Minute); end <= now {
			delete(v.used, minute)
			v.horizon = max(v.horizon, end)
		}
	}
}
