package launch

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/netrule"
	"github.com/bawn-dev/bawn/internal/runner"
)

// sayLoopback names the variables of a known agent that point at a port of this
// machine's loopback which the guest does not have, such as a local model.
// Otherwise the agent would try again and again in silence.
func sayLoopback(l *Launch, e *Env, k *Known, s *runner.Session) {
	if k == nil || s.Uncontained != "" || s.Isolation.Network == bawn.NetworkFull {
		return
	}
	for _, kv := range s.Plan.Environ() {
		name, value, _ := strings.Cut(kv, "=")
		port, ok := loopbackPort(value)
		if !ok || !slices.ContainsFunc(k.Agent.Environment.Pass, func(p string) bool { return sameName(p, name) }) {
			continue
		}
		if !slices.ContainsFunc(s.Isolation.Egress.HostPorts, func(p string) bool { h, err := netrule.ParseHostPort(p); return err == nil && h.Guest == port }) {
			l.note(e, fmt.Sprintf("%s names port %d of this machine's loopback, which a guest does not have; --model http://127.0.0.1:%[2]d opens it", name, port))
		}
	}
}

// loopbackPort is the port of a URL that names this machine.
func loopbackPort(value string) (uint16, bool) {
	u, err := url.Parse(value)
	if err != nil || u.Hostname() == "" {
		return 0, false
	}
	if a, err := netip.ParseAddr(u.Hostname()); !(err == nil && a.Unmap().IsLoopback()) && u.Hostname() != "localhost" {
		return 0, false
	}
	text := u.Port()
	if text == "" {
		text = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	port, err := strconv.ParseUint(text, 10, 16)
	return uint16(port), err == nil && port > 0
}

// sameName reports whether a variable's name is one, of which a trailing * is a
// prefix.
func sameName(pattern, name string) bool {
	prefix, any := strings.CutSuffix(pattern, "*")
	return any && strings.HasPrefix(name, prefix) || pattern == name
}
