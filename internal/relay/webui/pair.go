package webui

import (
	"crypto/rand"
	"crypto/subtle"
	"strings"
	"sync"
	"time"
)

// Limits of a pairing.
const (
	pairTime   = 10 * time.Minute
	shortTries = 5 // wrong short codes, then the short one is void
	shortSize  = 8 // characters: 40 bits
	longSize   = 26
)

// shortAlphabet is Crockford's base 32: it has no I, L, O or U.
const shortAlphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// A pairing is the one pair of codes that is good at a time. The zero pairing
// has none.
type pairing struct {
	mu          sync.Mutex
	number      uint64 // of the codes; tells those of a ceremony from later ones
	long, short string // "" while no device can be paired
	readOnly    bool
	expires     time.Time
	wrong       int
}

// open makes codes anew; what was there before is void.
func (p *pairing) open(readOnly bool, now time.Time) (long, short string, expires time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.number++
	p.long, p.short = rand.Text(), shortCode()
	p.readOnly, p.expires, p.wrong = readOnly, now.Add(pairTime), 0
	return p.long, p.short[:4] + "-" + p.short[4:], p.expires
}

// shortCode returns 40 random bits.
func shortCode() string {
	var raw [shortSize]byte
	rand.Read(raw[:])
	for i, b := range raw {
		raw[i] = shortAlphabet[b%32] // 256 is a multiple of 32
	}
	return string(raw[:])
}

// try compares a code and returns the number of the codes it fits. Too many wrong
// short codes void the short code, and everybody who reaches the page can cause
// that. The long code can't be guessed and stays valid.
func (p *pairing) try(code string, now time.Time) (number uint64, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.long == "" || !now.Before(p.expires) {
		return 0, false
	}
	if len(code) == longSize {
		return p.number, same(code, p.long)
	}
	typed, form := plainCode(code)
	if form && same(typed, p.short) {
		return p.number, true
	}
	if p.wrong++; p.wrong >= shortTries {
		p.short = ""
	}
	return 0, false
}

// spend uses the codes of that number up; ok is false where they are void.
func (p *pairing) spend(number uint64, now time.Time) (readOnly, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.long == "" || p.number != number || !now.Before(p.expires) {
		return false, false
	}
	p.long, p.short = "", ""
	return p.readOnly, true
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// plainCode reads a code as humans type it: in any case, with blanks and
// hyphens, with O for 0 and I or L for 1.
func plainCode(code string) (string, bool) {
	if len(code) > 4*shortSize {
		return "", false
	}
	plain := strings.NewReplacer(" ", "", "-", "", "O", "0", "I", "1", "L", "1").Replace(strings.ToUpper(code))
	if len(plain) != shortSize || strings.Trim(plain, shortAlphabet) != "" {
		return "", false
	}
	return plain, true
}
