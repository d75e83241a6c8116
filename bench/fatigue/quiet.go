package main

import (
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/agents"
	"github.com/bawn-dev/bawn/internal/netrule"
)

// isQuiet reports whether an agent is known to live with a refusal: of its telemetry
// host, or of a file that it only tries to write.
func (y *account) isQuiet(e bawn.Event) bool {
	a, ok := agents.ByName(y.agent.Name)
	if !ok {
		return false
	}
	if e.Kind == bawn.Network.String() {
		return isClosed(a, e.Resource)
	}
	tries := a.ExpandAll(a.Files.Tries, agents.World{Home: y.home, Getenv: func(string) string { return "" }})
	return e.Kind == bawn.Filesystem.String() && slices.ContainsFunc(tries, func(p string) bool {
		rest, ok := strings.CutPrefix(e.Resource, p)
		return ok && (rest == "" || rest[0] == '.')
	})
}

// isClosed reports whether a connection is to a host that an agent does without.
func isClosed(a *agents.Agent, resource string) bool {
	hosts, err := netrule.ParseHosts(a.Closed)
	host, port, cut := net.SplitHostPort(resource)
	if cut != nil {
		host, port = resource, "443"
	}
	n, wrong := strconv.ParseUint(port, 10, 16)
	if err != nil || wrong != nil {
		return false
	}
	_, ok := hosts.Match(host, uint16(n))
	return ok
}
