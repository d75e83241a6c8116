package cli

import (
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/attach"
)

// TestSeveralSessions: without an ID, it is said what the sessions that are
// meant have in common.
func TestSeveralSessions(t *testing.T) {
	a, b := attach.Entry{ID: "aaaaaaaaaaaaaaaaaaaaaaaaaa", State: attach.Running}, attach.Entry{ID: "bbbbbbbbbbbbbbbbbbbbbbbbbb", State: attach.Dead}
	all := func(attach.Entry) bool { return true }
	for want, sessions := range map[string][]attach.Entry{
		"2 sessions run: ":                           {a, {ID: b.ID, State: attach.Running}},
		"2 sessions have output, running or ended: ": {a, b},
	} {
		_, err := registry{sessions: sessions}.find("", all)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
}
