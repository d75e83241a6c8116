package egressd

import (
	"cmp"
	"net"
	"strconv"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/egress"
	"github.com/bawn-dev/bawn/internal/policy"
)

// maxQuiet is how many names of quiet hosts are recorded: a guest can make more up
// below one of them.
const maxQuiet = 64

// quietly returns tell without what nobody is to hear of: that a quiet host was
// closed. The log has it.
func (s *session) quietly(tell func(egress.Denial)) func(egress.Denial) {
	return func(n egress.Denial) {
		if n.Rule != policy.RuleClosed || !s.isQuiet(n.Resource) {
			tell(n)
		}
	}
}

// isQuiet reports whether a connection's or request's resource is at a quiet host.
func (s *session) isQuiet(resource string) bool {
	port := "443"
	if scheme, rest, ok := strings.Cut(resource, "://"); ok {
		resource, _, _ = strings.Cut(rest, "/")
		port = map[string]string{"http": "80"}[scheme]
	}
	host, at, err := net.SplitHostPort(resource)
	if err != nil {
		host, at = resource, cmp.Or(port, "443")
	}
	n, err := strconv.ParseUint(at, 10, 16)
	_, quiet := s.quiet.Match(host, uint16(n))
	return err == nil && quiet
}

// hush records, once, that a name of a quiet host was refused: no connection comes
// that would be recorded.
func (s *session) hush(name string, d bawn.Decision) {
	resource := net.JoinHostPort(name, "443")
	if d.Rule != policy.RuleClosed || !s.isQuiet(resource) {
		return
	}
	s.hushing.Lock()
	defer s.hushing.Unlock()
	if s.hushed[name] || len(s.hushed) >= maxQuiet {
		return
	}
	if s.hushed == nil {
		s.hushed = map[string]bool{}
	}
	s.hushed[name] = true
	e := s.event
	e.Time, e.Kind, e.Operation, e.Resource = now(), bawn.Network.String(), bawn.Connect.String(), resource
	e.Requested, e.Resolved, e.Source, e.Rule, e.Reason = bawn.Deny, bawn.Deny, "rule", d.Rule, d.Reason
	s.ended(e)
}
