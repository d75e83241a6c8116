package ticket

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// An Issuer signs tickets. The zero Issuer has no key and signs nothing. It
// may be used from several goroutines.
type Issuer struct {
	now     func() time.Time
	mu      sync.Mutex
	key     ed25519.PrivateKey // nil once closed
	last    time.Time          // when the last ticket of this key expires
	retired []Key
}

// NewIssuer makes an issuer with a new key. The clock is the relay's.
func NewIssuer(now func() time.Time) *Issuer {
	return &Issuer{now: now, key: newKey()}
}

func newKey() ed25519.PrivateKey {
	seed := make([]byte, ed25519.SeedSize)
	_, _ = rand.Read(seed) // never fails, as below
	defer clear(seed)
	return ed25519.NewKeyFromSeed(seed)
}

// NewID makes the name of a ticket, so that it can be recorded before the ticket is
// issued: 32 hexadecimal digits. The name carries no authority.
func NewID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails: it ends the program where it can't read (crypto/rand)
	return hex.EncodeToString(id[:])
}

// Issue signs a ticket for one action of the session, with a new name.
// It refuses what IssueAs refuses.
func (i *Issuer) Issue(session string, digest [32]byte, ttl time.Duration) ([]byte, error) {
	return i.IssueAs(NewID(), session, digest, ttl)
}

// IssueAs signs the ticket that has a name of NewID's, which is good once. It
// refuses a name of another form, a session without a name or with one above
// 128 bytes, the zero digest, and a lifetime outside of 0 to MaxTTL. After
// Close it refuses everything.
func (i *Issuer) IssueAs(name, session string, digest [32]byte, ttl time.Duration) ([]byte, error) {
	var id [16]byte
	if raw, err := hex.DecodeString(name); err == nil {
		copy(id[:], raw)
	}
	if hex.EncodeToString(id[:]) != name {
		return nil, fmt.Errorf("a ticket named %.40q: want a name of NewID's", name)
	}
	switch {
	case session == "" || len(session) > maxSession:
		return nil, fmt.Errorf("session %.40q: want a name of 1 to %d bytes", session, maxSession)
	case digest == [32]byte{}:
		return nil, errors.New("the action has no digest; what can't be named can't be permitted")
	case ttl <= 0 || ttl > MaxTTL:
		return nil, fmt.Errorf("a ticket for %v: want a life above 0 and of at most %v", ttl, MaxTTL)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.key == nil {
		return nil, errors.New("the issuer is closed")
	}
	return i.sign(id, session, digest, ttl), nil
}

func (i *Issuer) sign(id [16]byte, session string, digest [32]byte, ttl time.Duration) []byte {
	now := i.now()
	expires := now.Add(ttl)
	if expires.After(i.last) {
		i.last = expires
	}
	c := claim{id: id, issued: now.UnixNano(), expires: expires.UnixNano(), digest: digest, session: session}
	e := envelope{payload: c.encode(), key: i.public().ID()}
	e.sig = ed25519.Sign(i.key, pae(e.payload))
	return e.encode()
}

func (i *Issuer) public() Key {
	return Key{Public: ed25519.PublicKey(slices.Clone(i.key[ed25519.SeedSize:]))}
}

// Keys lists the public keys that a verifier shall trust: the one in use, and
// those retired ones that signed tickets which are still alive.
func (i *Issuer) Keys() []Key {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.key == nil {
		return nil
	}
	now := i.now()
	i.retired = slices.DeleteFunc(i.retired, func(k Key) bool { return !now.Before(k.Until) })
	return append([]Key{i.public()}, i.retired...)
}

// Rotate signs with a new key from now on and returns what Keys returns then:
// verifiers must be told before they see a ticket of the new key. The old
// private key is overwritten. A closed issuer stays closed.
func (i *Issuer) Rotate() []Key {
	i.mu.Lock()
	if i.key != nil {
		old := i.public()
		old.Until = i.last
		i.retired = append(i.retired, old)
		clear(i.key)
		i.key, i.last = newKey(), time.Time{}
	}
	i.mu.Unlock()
	return i.Keys()
}

// Close overwrites the private key and releases it. Copies that package
// crypto/ed25519 derived from it go when they are collected. It may be called
// more than once.
func (i *Issuer) Close() {
	i.mu.Lock()
	defer i.mu.Unlock()
	clear(i.key)
	i.key = nil
}
