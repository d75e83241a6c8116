package audit

import (
	"strings"
	"sync"

	"github.com/bawn-dev/bawn/internal/redact"
)

// A cleaner takes credentials out of texts. It remembers texts that hold none:
// a session's events name the same session, directory, host and rule again and
// again. A nil cleaner knows the shapes only and remembers nothing.
type cleaner struct {
	mu    sync.Mutex
	clean map[string]struct{}
}

// The memory is bounded; when it is full all of it is forgotten.
const (
	maxClean    = 256 // texts
	longestText = 256 // bytes
)

// text returns s without credentials.
func (c *cleaner) text(s string) string {
	if c == nil || len(s) > longestText {
		return redact.String(s)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.clean[s]; known {
		return s
	}
	out := redact.String(s)
	if out == s {
		c.remember(s)
	}
	return out
}

func (c *cleaner) remember(s string) {
	if c.clean == nil || len(c.clean) >= maxClean {
		c.clean = map[string]struct{}{}
	}
	c.clean[strings.Clone(s)] = struct{}{} // not the longer text that it may be a part of
}
