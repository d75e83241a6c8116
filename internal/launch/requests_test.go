package launch

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestPatience: a guest does not ask until it is allowed.
func TestPatience(t *testing.T) {
	now := time.Unix(1000, 0)
	ask := func(p *patience, key, want string) {
		t.Helper()
		if err := p.begin(key, now); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", key, err, want)
		}
	}
	p := &patience{}
	ask(p, "a", "")
	p.end("a", false, now)
	ask(p, "a", "the same was not allowed")
	ask(p, "b", "")
	p.end("b", true, now)
	ask(p, "b", "")
	p.end("b", false, now)
	ask(p, "c", "")
	p.end("c", false, now)
	ask(p, "d", "3 requests were not allowed")
	now = now.Add(quiet)
	ask(p, "a", "")
	p.end("a", true, now)
	for i := range maxRequests {
		ask(p, fmt.Sprint(i), "")
	}
	ask(p, "more", "64 requests")
}
