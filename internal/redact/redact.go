// Package redact takes credentials out of text that is going to be written
// down or shown, and makes what a reader can't see visible.
//
// It knows two sorts of credentials: the values it is told (New) and the
// obvious shapes: name=value where the name says secret, well-known key
// prefixes, PEM private keys and the user part of URLs. It is a net under
// the rule that secrets stay outside, not a proof that none is left: a
// password with nothing around it that says so passes.
//
// Every search is linear in the length of the text, whatever the text is.
package redact

import (
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"slices"
	"strings"
)

// Mark stands where a credential was.
const Mark = "[redacted]"

// minSecret is the length in bytes below which a known secret is not looked
// for: shorter ones would take half of every text with them.
const minSecret = 4

// A Redactor replaces credentials. Its zero value, and a nil *Redactor, know
// the shapes only. A Redactor is immutable and may be used concurrently.
type Redactor struct{ needles []needle }

// New returns a Redactor that also knows the given secrets: as they are, and
// as hex, base64 (standard and URL alphabet) and percent-encoding write them.
// Secrets shorter than 4 bytes are ignored.
func New(secrets ...string) *Redactor {
	r := &Redactor{}
	seen := map[string]bool{}
	for _, s := range secrets {
		for _, form := range spellings(s) {
			if len(s) >= minSecret && !seen[form] {
				seen[form] = true
				r.needles = append(r.needles, newNeedle(form))
			}
		}
	}
	return r
}

func spellings(s string) []string {
	return []string{
		s,
		hex.EncodeToString([]byte(s)),
		strings.ToUpper(hex.EncodeToString([]byte(s))),
		base64.RawStdEncoding.EncodeToString([]byte(s)),
		base64.RawURLEncoding.EncodeToString([]byte(s)),
		url.QueryEscape(s),
		url.PathEscape(s),
	}
}

// A span is a half-open range of bytes to replace.
type span struct{ lo, hi int }

// String returns s with every credential replaced by Mark.
func (r *Redactor) String(s string) string {
	if s == "" {
		return s
	}
	spans := shapes(s)
	if r != nil {
		for _, n := range r.needles {
			spans = n.find(s, spans)
		}
	}
	return replace(s, spans)
}

// Args returns a copy of argv with every credential replaced, including the
// argument after a flag such as --password that takes its value separately.
func (r *Redactor) Args(argv []string) []string {
	out := make([]string, len(argv))
	for i, arg := range argv {
		if i > 0 && isSecretFlag(argv[i-1]) && !strings.HasPrefix(arg, "-") {
			out[i] = Mark
			continue
		}
		out[i] = r.String(arg)
	}
	return out
}

// replace joins overlapping spans, so that no end of a credential is left
// where two of them meet, and puts Mark in place of each.
func replace(s string, spans []span) string {
	if len(spans) == 0 {
		return s
	}
	slices.SortFunc(spans, func(a, b span) int { return a.lo - b.lo })
	var b strings.Builder
	end := 0
	for i := 0; i < len(spans); {
		lo, hi := spans[i].lo, spans[i].hi
		for i++; i < len(spans) && spans[i].lo < hi; i++ {
			hi = max(hi, spans[i].hi)
		}
		b.WriteString(s[end:lo])
		b.WriteString(Mark)
		end = hi
	}
	b.WriteString(s[end:])
	return b.String()
}

// A needle is a known secret with its Knuth-Morris-Pratt table: after a match
// or a mismatch the search never looks back, so a secret like "aaaaaaaa" in a
// long run of the letter costs no more than any other.
type needle struct {
	text string
	back []int // back[i]: length of the longest border of text[:i+1]
}

func newNeedle(text string) needle {
	back := make([]int, len(text))
	for i, k := 1, 0; i < len(text); i++ {
		for k > 0 && text[i] != text[k] {
			k = back[k-1]
		}
		if text[i] == text[k] {
			k++
		}
		back[i] = k
	}
	return needle{text, back}
}

// find appends the places of the needle in s, overlapping ones joined.
func (n needle) find(s string, spans []span) []span {
	first := strings.Index(s, n.text)
	if first < 0 {
		return spans
	}
	mine := len(spans)
	for i, k := first, 0; i < len(s); i++ {
		for k > 0 && s[i] != n.text[k] {
			k = n.back[k-1]
		}
		if s[i] == n.text[k] {
			k++
		}
		if k < len(n.text) {
			continue
		}
		spans = join(spans, mine, span{i + 1 - k, i + 1})
		k = n.back[k-1]
	}
	return spans
}

// join appends sp to spans[from:], or widens the last of them where they
// overlap, so that the list stays short.
func join(spans []span, from int, sp span) []span {
	if last := len(spans) - 1; last >= from && sp.lo <= spans[last].hi {
		spans[last].hi = sp.hi
		return spans
	}
	return append(spans, sp)
}
