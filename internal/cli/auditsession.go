package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/audit"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/verb"
)

// maxCandidates is how many sessions an ambiguous beginning of an id lists.
const maxCandidates = 10

// sessionsFrom returns the first event of each session whose id begins with
// prefix, the oldest first.
func sessionsFrom(dir, prefix string) []bawn.Event {
	seen := map[string]bool{}
	var first []bawn.Event
	for entry, err := range audit.Query(dir, audit.Filter{}) {
		if err != nil { // told where the records are printed
			continue
		}
		if id := entry.Event.Session; id != "" && !seen[id] && strings.HasPrefix(id, prefix) {
			seen[id] = true
			first = append(first, entry.Event)
		}
	}
	return first
}

// wholeSession returns the id that begins with prefix. If none does, it is the
// prefix itself, which chooses nothing yet.
func wholeSession(e *launch.Env, dir, prefix string) (string, error) {
	found := sessionsFrom(dir, prefix)
	switch {
	case prefix == "" || slices.ContainsFunc(found, func(v bawn.Event) bool { return v.Session == prefix }):
		return prefix, nil
	case len(found) == 0:
		fmt.Fprintf(e.Stderr, "bawn: note: there is no session whose id begins with %q\n", prefix)
		return prefix, nil
	case len(found) == 1:
		return found[0].Session, nil
	}
	var list strings.Builder
	for _, v := range found[max(0, len(found)-maxCandidates):] {
		fmt.Fprintf(&list, "\n  %s  %s  %s", redact.Visible(v.Session), v.Time.UTC().Format(time.RFC3339), cut(redact.Visible(v.Resource), 60))
	}
	if more := len(found) - maxCandidates; more > 0 {
		fmt.Fprintf(&list, "\n  and %d older", more)
	}
	return "", verb.Usage("give more of the id", "--session %q is the beginning of %d ids:%s", prefix, len(found), list.String())
}

// cut shortens text to at most n characters, n at least 12, and says by how many.
func cut(text string, n int) string {
	runes := []rune(text)
	if len(runes) <= n {
		return text
	}
	mark := ""
	for keep := n - 5; ; keep-- {
		if mark = fmt.Sprintf("…(+%d)", len(runes)-keep); keep+len([]rune(mark)) <= n {
			return string(runes[:keep]) + mark
		}
	}
}
