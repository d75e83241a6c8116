//go:build linux || darwin

package runner

import (
	"fmt"
	"slices"
	"strings"
	"syscall"

	"github.com/bawn-dev/bawn/internal/sandbox"
)

// limits adds the runner's own observations to the provider's proof: its clock,
// and the signal that ended the command.
func (s *Session) limits(r Result, hits []sandbox.Hit) []sandbox.Hit {
	own := s.Isolation.Resources
	switch {
	case r.TimedOut:
		hits = slices.Insert(hits, 0, sandbox.Hit{
			Rule: "limits:timeout", Reason: fmt.Sprintf("the session's time of %v was up", own.Timeout), Remedy: "raise it with --timeout", Killed: true,
		})
	case r.Signal == syscall.SIGXFSZ && own.FileSizeMB > 0:
		hits = append(hits, sandbox.Hit{
			Rule:   "limits:size",
			Reason: fmt.Sprintf("the command was ended by SIGXFSZ, the signal for a file that grew beyond its limit; the session's is %d MiB", own.FileSizeMB),
			Remedy: "raise isolation.resources.file_size_mb in the configuration", Killed: true,
		})
	}
	return hits
}

// reasons puts hits into the words of one event.
func reasons(hits []sandbox.Hit) (rule, reason string) {
	if len(hits) == 0 {
		return "", ""
	}
	var all []string
	for _, h := range hits {
		all = append(all, h.Reason)
	}
	return hits[0].Rule, strings.Join(all, "; ")
}
