package session

import (
	"cmp"
	"errors"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/netrule"
)

// meetNetwork returns what of the network both reach. The host's own network
// reaches all that an allowlist can name, without its secrets and the human's
// ssh-agent. Sessions behind different proxies have no way out in common.
func meetNetwork(a, b bawn.Isolation) (bawn.NetworkMode, bawn.Egress) {
	mode := min(a.Network, b.Network)
	switch {
	case mode != bawn.NetworkAllowlist:
		return mode, bawn.Egress{}
	case a.Network == bawn.NetworkFull:
		return mode, withoutSecrets(b.Egress)
	case b.Network == bawn.NetworkFull:
		return mode, withoutSecrets(a.Egress)
	case proxyOf(a.Egress) != proxyOf(b.Egress):
		return bawn.NetworkNone, bawn.Egress{}
	}
	return mode, meetEgress(a.Egress, b.Egress)
}

func withoutSecrets(e bawn.Egress) bawn.Egress {
	e.Secrets, e.SSHAgent = nil, false
	return e
}

func meetEgress(a, b bawn.Egress) bawn.Egress {
	out := meetReach(reachOf(a), reachOf(b)).egress()
	out.Proxy = proxyOf(a)
	out.HostPorts = both(hostPorts(a), hostPorts(b))
	out.Ports = both(published(a), published(b))
	out.Secrets = narrower(a.Secrets, b.Secrets)
	out.SSHAgent = a.SSHAgent && b.SSHAgent
	out.Only = a.Only || b.Only
	out.Ask = min(a.Ask, b.Ask)
	out.MaxConns = lower(a.MaxConns, b.MaxConns)
	out.MaxOutMB = lower(a.MaxOutMB, b.MaxOutMB)
	out.MaxUses = lowerBudget(a.MaxUses, b.MaxUses, bawn.UsualUses)
	out.MaxLentMB = lowerBudget(a.MaxLentMB, b.MaxLentMB, bawn.UsualLentMB)
	return out
}

// lowerBudget returns the lower of two budgets, where 0 stands for the default.
func lowerBudget(a, b, usual int64) int64 {
	if a == b {
		return a
	}
	return min(cmp.Or(a, usual), cmp.Or(b, usual))
}

// The entries below were read once by check, which refuses unreadable ones.

// proxyOf returns the proxy in its one form, or "".
func proxyOf(e bawn.Egress) string {
	if p, err := netrule.ParseProxy(e.Proxy); err == nil {
		return p.String()
	}
	return ""
}

// hostPorts returns the entries in their one form; of those for one port of the
// guest the last counts.
func hostPorts(e bawn.Egress) []string {
	last := map[uint16]netrule.HostPort{}
	for _, s := range e.HostPorts {
		p, _ := netrule.ParseHostPort(s)
		last[p.Guest] = p
	}
	var out []string
	for _, p := range last {
		out = append(out, p.String())
	}
	return sortedSet(out)
}

func published(e bawn.Egress) []string {
	var out []string
	for _, s := range e.Ports {
		p, _ := netrule.ParsePublish(s)
		out = append(out, p.String())
	}
	return sortedSet(out)
}

// A reach is the entries of an allowlist.
type reach struct {
	hosts, closed []netrule.Host
	http          []netrule.HTTP
	git           []netrule.Git
}

func readReach(e bawn.Egress) (r reach, err error) {
	var errs [4]error
	r.hosts, errs[0] = readAll(e.Hosts, netrule.ParseHost)
	r.closed, errs[1] = readAll(e.Closed, netrule.ParseHost)
	r.http, errs[2] = readAll(e.HTTP, netrule.ParseHTTP)
	r.git, errs[3] = readAll(e.Git, netrule.ParseGit)
	return r, errors.Join(errs[:]...)
}

func reachOf(e bawn.Egress) reach {
	r, _ := readReach(e)
	return r
}

func readAll[T any](list []string, parse func(string) (T, error)) (out []T, err error) {
	for _, s := range list {
		v, wrong := parse(s)
		out, err = append(out, v), errors.Join(err, wrong)
	}
	return out, err
}

func (r reach) egress() bawn.Egress {
	return bawn.Egress{Hosts: texts(r.hosts), Closed: texts(r.closed), HTTP: texts(r.http), Git: texts(r.git)}
}

func texts[T interface{ String() string }](list []T) []string {
	var out []string
	for _, v := range list {
		out = append(out, v.String())
	}
	return out
}
