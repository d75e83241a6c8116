package audit

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/redact"
)

// Details that the log adds where it changed an event. Only the log sets them:
// an event's own values under these names are overwritten or dropped.
const (
	detailCut     = "bawn.cut"     // fields that were cut
	detailEscaped = "bawn.escaped" // fields that were not UTF-8
)

// encode returns the event as one JSON object of at most maxEvent bytes.
func encode(e bawn.Event, c *cleaner) ([]byte, error) {
	if e.Time.IsZero() {
		e.Time = time.Now().UTC()
	}
	clean := cleaned(e, c)
	if clean.ID == "" {
		clean.ID = newID(e.Time)
	}
	b, err := marshal(clean)
	for limit := 16 << 10; err == nil && len(b) > maxEvent && limit >= 64; limit /= 2 {
		b, err = marshal(cut(clean, limit))
	}
	if err == nil && len(b) > maxEvent {
		err = errors.New("BUG(bawn): event is too large even when cut")
	}
	return b, err
}

// marshal writes printable characters as they are and all others as \u escapes,
// so that a line shows its contents and can't act on a terminal.
func marshal(e bawn.Event) ([]byte, error) {
	b, err := toJSON(&e)
	if err != nil {
		return nil, err
	}
	beyond := func(c byte) bool { return c < ' ' || c > '~' }
	if !slices.ContainsFunc(b, beyond) || !bytes.ContainsFunc(b, redact.Invisible) { // the first alone says it, and soon
		return b, nil
	}
	out := make([]byte, 0, 2*len(b))
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		out = appendRune(out, r, b[:n])
		b = b[n:]
	}
	return out, nil
}

// appendRune appends r, whose bytes are raw, as JSON text.
func appendRune(dst []byte, r rune, raw []byte) []byte {
	switch {
	case !redact.Invisible(r):
		return append(dst, raw...)
	case r > 0xffff: // a surrogate pair, RFC 8259 section 7
		r -= 0x10000
		return fmt.Appendf(dst, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
	}
	return fmt.Appendf(dst, `\u%04x`, r)
}

// newID returns a UUID of version 7 (RFC 9562 section 5.7, with method 3 of
// section 6.2): 48 bits of milliseconds, 12 of their fraction, 62 random.
func newID(t time.Time) string {
	var id [16]byte
	dice.read(id[8:])
	ns := uint64(t.UnixNano())
	ms, fraction := ns/1e6, ns%1e6*4096/1e6
	binary.BigEndian.PutUint64(id[:8], ms<<16|0x7000|fraction)
	id[8] = id[8]&0x3f | 0x80
	var text [36]byte
	for i, part := range [][2]int{{0, 4}, {4, 6}, {6, 8}, {8, 10}, {10, 16}} {
		hex.Encode(text[2*part[0]+i:], id[part[0]:part[1]])
		if i > 0 {
			text[2*part[0]+i-1] = '-'
		}
	}
	return string(text[:])
}

// dice are random bytes for IDs, which are to be unlike each other and no
// secret: a system call for each took longer than all else about it.
var dice = &randomness{}

type randomness struct {
	mu   sync.Mutex
	rest []byte
	all  [512]byte
}

func (r *randomness) read(b []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.rest) < len(b) {
		rand.Read(r.all[:]) // never fails, see its documentation
		r.rest = r.all[:]
	}
	r.rest = r.rest[copy(b, r.rest):]
}

// mapStrings returns a copy of e with f applied to every string; name is the
// string's place, for example "resource" or "args[3]".
func mapStrings(e bawn.Event, f func(name, s string) string) bawn.Event {
	for _, field := range []struct {
		name string
		p    *string
	}{
		{"id", &e.ID}, {"session", &e.Session}, {"parent", &e.Parent}, {"agentId", &e.Agent},
		{"resourceType", &e.Kind}, {"operation", &e.Operation}, {"resource", &e.Resource}, {"dir", &e.Dir},
		{"source", &e.Source}, {"rule", &e.Rule}, {"reason", &e.Reason}, {"ticket", &e.Ticket}, {"provider", &e.Provider},
	} {
		*field.p = f(field.name, *field.p)
	}
	e.Args = slices.Clone(e.Args)
	for i := range e.Args {
		e.Args[i] = f(fmt.Sprintf("args[%d]", i), e.Args[i])
	}
	details := make(map[string]string, len(e.Details)+2)
	for k, v := range e.Details {
		k = f("details", k)
		details[k] = f("details."+k, v)
	}
	e.Details = details
	return e
}

// cleaned returns e without credentials and with every byte that is no UTF-8
// written as \xff, which is then noted.
func cleaned(e bawn.Event, c *cleaner) bawn.Event {
	if len(e.Args) > 0 {
		e.Args = redact.Args(e.Args)
	}
	var escaped []string
	e = mapStrings(e, func(name, s string) string {
		s = c.text(s)
		if d, ok := strings.CutPrefix(name, "details."); ok && redact.SecretName(d) {
			s = redact.Mark
		}
		if utf8.ValidString(s) {
			return s
		}
		escaped = append(escaped, name)
		return escapeBytes(s)
	})
	delete(e.Details, detailCut)
	setNote(e.Details, detailEscaped, escaped)
	return e
}

// escapeBytes writes every byte that is no UTF-8 as \xff.
func escapeBytes(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			fmt.Fprintf(&b, `\x%02x`, s[i])
		} else {
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

// setNote names the fields in details, or removes the name for none.
func setNote(details map[string]string, name string, fields []string) {
	delete(details, name)
	if len(fields) == 0 {
		return
	}
	for i, f := range fields {
		fields[i] = strings.ToValidUTF8(f[:min(len(f), 64)], "")
	}
	slices.Sort(fields)
	const most = 8
	if len(fields) > most {
		fields = append(fields[:most:most], fmt.Sprintf("and %d more", len(fields)-most))
	}
	details[name] = strings.Join(fields, " ")
}

// cut returns e with strings of at most limit bytes and lists of at most
// limit/16, each cut one marked where it was cut and named in the details.
func cut(e bawn.Event, limit int) bawn.Event {
	var fields []string
	if most := limit / 16; len(e.Args) > most {
		fields = append(fields, "args")
		e.Args = cutList(e.Args, most)
	}
	if most := limit / 16; len(e.Details) > most {
		fields = append(fields, fmt.Sprintf("details: %d of %d kept", most, len(e.Details)))
		kept := make(map[string]string, most+1)
		setNote(kept, detailEscaped, strings.Fields(e.Details[detailEscaped]))
		for _, k := range slices.Sorted(maps.Keys(e.Details))[:most] {
			kept[k] = e.Details[k]
		}
		e.Details = kept
	}
	e = mapStrings(e, func(name, s string) string {
		if len(s) <= limit {
			return s
		}
		fields = append(fields, name)
		return cutString(s, limit)
	})
	setNote(e.Details, detailCut, fields)
	return e
}

// cutString keeps the beginning and the end of s, limit bytes in all: a long
// text can hide what matters behind padding at either side.
func cutString(s string, limit int) string {
	lo, hi := limit/4*3, len(s)-limit/4
	for lo > 0 && !utf8.RuneStart(s[lo]) {
		lo--
	}
	for hi < len(s) && !utf8.RuneStart(s[hi]) {
		hi++
	}
	return fmt.Sprintf("%s[bawn: %d bytes cut, sha256 of all %x]%s", s[:lo], hi-lo, sha256.Sum256([]byte(s)), s[hi:])
}

func cutList(list []string, most int) []string {
	lo, hi := most/4*3, len(list)-most/4
	out := slices.Clone(list[:lo])
	out = append(out, fmt.Sprintf("[bawn: %d arguments cut]", hi-lo))
	return append(out, list[hi:]...)
}
