package gvisor

import (
	"strings"

	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// resolver is the path that programs read.
const resolver = "/etc/resolv.conf"

// A Resolver is the file that tells programs of the guest whom to ask for names:
// the gateway. What the host's says may be an address of loopback, and that is
// gVisor's own.
type Resolver struct {
	Target string   `json:"target"` // real path
	Text   string   `json:"text"`
	Make   []string `json:"make,omitempty"` // what the target needs below a place of the session's own
}

// newResolver is the file for a gateway, nil where the host has none: nothing can
// be shown then where nothing is.
func newResolver(g *Gateway, p *layout.Plan, facts layout.Facts) *Resolver {
	if g == nil {
		return nil
	}
	f, ok := facts.Lookup(resolver)
	if !ok || f.Dir {
		return nil
	}
	text, _ := facts.ReadFile(f.Real) // without it the servers alone remain
	r := &Resolver{Target: f.Real, Text: g.Servers(text)}
	for _, m := range p.Mounts {
		if m.Kind == layout.KindTmpfs && below(f.Real, m.Target) {
			r.Make = placesBelow(m.Target, f.Real)
		}
	}
	return r
}

// placesBelow lists what has to be made below dir for p, outermost first.
func placesBelow(dir, p string) []string {
	var list []string
	for i := len(dir) + 1; i < len(p); i++ {
		if p[i] == '/' {
			list = append(list, p[:i])
		}
	}
	return append(list, p)
}

// Servers is text, a resolv.conf(5), with the gateway's addresses as the only
// servers.
func (g *Gateway) Servers(text string) string {
	var b strings.Builder
	for _, a := range g.Addresses {
		b.WriteString("nameserver " + a.String() + "\n")
	}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) > 1 && (words[0] == "search" || words[0] == "domain" || words[0] == "options") {
			b.WriteString(strings.Join(words, " ") + "\n")
		}
	}
	return b.String()
}
