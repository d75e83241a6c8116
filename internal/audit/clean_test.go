package audit

import (
	"strconv"
	"testing"

	"github.com/bawn-dev/bawn/internal/redact"
)

// What is remembered is what held no credential: a credential is taken out each
// time, and what a redactor does without memory, one with it does too.
func TestCleaner(t *testing.T) {
	c := &cleaner{}
	for range 3 {
		for _, s := range []string{"", "plain", "/home/me", "password=abcdefgh", "AKIAABCDEFGHIJKLMNOP"} {
			if got, want := c.text(s), redact.String(s); got != want {
				t.Errorf("%q: %q, want %q", s, got, want)
			}
		}
	}
	for s := range c.clean {
		if redact.String(s) != s {
			t.Errorf("%q is remembered as clean", s)
		}
	}
}

// Texts of a guest's choice don't make it grow.
func TestCleanerIsBounded(t *testing.T) {
	c := &cleaner{}
	for i := range 3 * maxClean {
		c.text("host" + strconv.Itoa(i))
		if len(c.clean) > maxClean {
			t.Fatalf("%d texts; want at most %d", len(c.clean), maxClean)
		}
	}
	if c.text(string(make([]byte, longestText+1))); len(c.clean) == 0 || len(c.clean) > maxClean {
		t.Errorf("%d texts", len(c.clean))
	}
}
