// Package redact takes credentials out of text that is going to be written
// down or shown, and makes what a reader can't see visible.
//
// It knows credentials by their shapes: name=value where the name says secret,
// well-known key prefixes, PEM private keys and the user part of URLs. It is a
// net under the rule that secrets stay outside, and proves nothing: a password
// passes if nothing around it says what it is.
//
// Every search is linear in the length of the text, whatever the text is.
package redact

import (
	"slices"
	"strings"
)

// Mark stands where a credential was.
const Mark = "[redacted]"

// A span is a half-open range of bytes to replace.
type span struct{ lo, hi int }

// String returns s with every credential replaced by Mark.
func String(s string) string {
	if s == "" {
		return s
	}
	return replace(s, shapes(s))
}

// Args returns a copy of argv with every credential replaced, including the
// argument after a flag such as --password that takes its value separately.
func Args(argv []string) []string {
	out := make([]string, len(argv))
	for i, arg := range argv {
		if i > 0 && isSecretFlag(argv[i-1]) && !strings.HasPrefix(arg, "-") {
			out[i] = Mark
			continue
		}
		out[i] = String(arg)
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
