package webui

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// CookieName is the name of the login's cookie. The prefix makes browsers
// insist on Secure, on the path / and on no other host (RFC 6265bis, 4.1.3.2).
const CookieName = "__Host-bawn"

// How long a login holds.
const (
	loginIdle = 12 * time.Hour
	loginMost = 30 * 24 * time.Hour
	seenStep  = 10 * time.Minute // how exactly the last use is kept
)

// A login is one cookie. Its ID is the cookie's SHA-256: who reads the store
// has no cookie.
type login struct {
	Device      string
	Begun, Seen time.Time
}

type logins struct {
	items Items
	now   func() time.Time
	mu    sync.Mutex
	byID  map[string]login
}

func loadLogins(ctx context.Context, items Items, now func() time.Time) (*logins, error) {
	kept, err := items.Items(ctx, loginItems)
	if err != nil {
		return nil, fmt.Errorf("read the logins: %w", err)
	}
	l := &logins{items: items, now: now, byID: map[string]login{}}
	for id, text := range kept {
		var one login
		if json.Unmarshal(text, &one) == nil { // an unreadable value lets nobody in
			l.byID[id] = one
		}
	}
	return l, nil
}

func loginID(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// begin logs a device in and returns the cookie.
func (l *logins) begin(ctx context.Context, device string) (*http.Cookie, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sweep(ctx)
	token := rand.Text()
	now := l.now()
	if err := l.keep(ctx, loginID(token), login{Device: device, Begun: now, Seen: now}); err != nil {
		return nil, err
	}
	return cookie(token, loginMost), nil
}

func cookie(token string, age time.Duration) *http.Cookie {
	c := &http.Cookie{Name: CookieName, Value: token, Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode, MaxAge: int(age.Seconds())}
	if age == 0 {
		c.MaxAge = -1
	}
	return c
}

// keep is called with the lock held.
func (l *logins) keep(ctx context.Context, id string, one login) error {
	text, err := json.Marshal(one)
	if err != nil {
		return fmt.Errorf("BUG(bawn): a login can't be written: %w", err)
	}
	if err := l.items.KeepItem(ctx, loginItems, id, text); err != nil {
		return fmt.Errorf("keep the login: %w", err)
	}
	l.byID[id] = one
	return nil
}

// find returns the login that the request's cookie is of.
func (l *logins) find(r *http.Request) (id string, one login, ok bool) {
	cookies := r.CookiesNamed(CookieName)
	if len(cookies) != 1 { // two are no browser's
		return "", login{}, false
	}
	id = loginID(cookies[0].Value)
	l.mu.Lock()
	defer l.mu.Unlock()
	one, ok = l.byID[id]
	now := l.now()
	if !ok || !one.good(now) {
		return "", login{}, false
	}
	if now.Sub(one.Seen) >= seenStep {
		one.Seen = now
		if l.keep(r.Context(), id, one) != nil {
			l.byID[id] = one // holds as long as this process
		}
	}
	return id, one, true
}

func (one login) good(now time.Time) bool {
	return now.Sub(one.Seen) < loginIdle && now.Sub(one.Begun) < loginMost
}

// end ends the logins that fit. They are gone from memory also where the store
// fails.
func (l *logins) end(ctx context.Context, fits func(id string, one login) bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var failed error
	for id, one := range l.byID {
		if !fits(id, one) {
			continue
		}
		delete(l.byID, id)
		if err := l.items.DropItem(ctx, loginItems, id); err != nil {
			failed = fmt.Errorf("remove the login from the store: %w", err)
		}
	}
	return failed
}

// sweep forgets logins that are over. It is called with the lock held.
func (l *logins) sweep(ctx context.Context) {
	for id, one := range l.byID {
		if !one.good(l.now()) {
			delete(l.byID, id)
			_ = l.items.DropItem(ctx, loginItems, id) // an old login lets nobody in
		}
	}
}

// A visit is one request of a device that is being served.
type visit struct{ device, login string }

// visits are what is being served, so that a revoked device is cut off in the
// middle of a stream.
type visits struct {
	mu   sync.Mutex
	next uint64
	open map[uint64]openVisit
}

type openVisit struct {
	visit
	cancel context.CancelFunc
}

// Limits of visits.
const (
	maxVisits = 64        // of one device at once
	visitTime = time.Hour // after which a stream has to come anew, with its cookie
)

// begin enters a visit; ok is false where the device has too many.
func (v *visits) begin(ctx context.Context, one visit) (_ context.Context, done func(), ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	count := 0
	for _, other := range v.open {
		if other.device == one.device {
			count++
		}
	}
	if count >= maxVisits {
		return nil, nil, false
	}
	ctx, cancel := context.WithTimeout(ctx, visitTime)
	if v.open == nil {
		v.open = map[uint64]openVisit{}
	}
	v.next++
	number := v.next
	v.open[number] = openVisit{one, cancel}
	return ctx, func() {
		cancel()
		v.mu.Lock()
		defer v.mu.Unlock()
		delete(v.open, number)
	}, true
}

// end cuts off the visits that fit.
func (v *visits) end(fits func(visit) bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, one := range v.open {
		if fits(one.visit) {
			one.cancel()
		}
	}
}
