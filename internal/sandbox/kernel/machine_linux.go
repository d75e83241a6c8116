package kernel

import (
	"fmt"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/linux/cgroup"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// A Machine is what providers know of their machine: its files and users, and
// the outcome of trials with control groups and networks.
type Machine struct {
	facts  layout.Facts
	groups cgroup.Support
	net    netSupport
	cache  string
}

// Look looks at this machine. What control groups and network namespaces can do
// takes a trial; where cache names a file, the outcome is kept there until the
// machine is booted again.
func Look(cache string) *Machine {
	m, _ := LookAlso(cache, 0, nil)
	return m
}

// LookAlso is Look for a provider that tries something itself: trial returns the
// outcome in so many fields, which are kept in the same file. No field may hold
// a NUL.
func LookAlso(cache string, fields int, trial func() []string) (*Machine, []string) {
	s := probe(cache, fields, trial)
	m := &Machine{facts: layout.HostFacts(), groups: s.groups, net: s.net, cache: cache}
	m.facts.IPv6 = s.net.ipv6
	return m, s.more
}

// Facts are those of this machine, for Layout.
func (m *Machine) Facts() layout.Facts { return m.facts }

// Groups is what control groups can do here.
func (m *Machine) Groups() cgroup.Support { return m.groups }

// HasNetwork reports whether guests can have a network by name.
func (m *Machine) HasNetwork() bool { return m.net.ok }

// NetworkByName says what a network by name is worth here.
func (m *Machine) NetworkByName() bawn.Capability { return m.net.capability() }

// TryNetworkAgain is the machine after another trial of its networks. Where they
// can be had now, what was kept of the trials before is forgotten.
func (m *Machine) TryNetworkAgain() *Machine {
	now := *m
	now.net = probeNetwork()
	now.facts.IPv6 = now.net.ipv6
	if now.net.ok {
		m.Forget()
	}
	return &now
}

// LoseNetwork has the machine say that guests can't have a network by name; it
// is for tests.
func (m *Machine) LoseNetwork(why string) { m.net = netSupport{err: why} }

// Forget drops the kept outcome of the trials, which proved wrong.
func (m *Machine) Forget() { forget(m.cache) }

// Sweep removes the control groups of Bawns that were killed, at most once a
// minute. It is for the end of a session.
func (m *Machine) Sweep() { sweep(m.cache) }

// Group makes a control group for the plan's limits that control groups can
// enforce here. It returns nil if the version can enforce none of them. The
// caller removes the group.
func (m *Machine) Group(n *layout.Plan) (*cgroup.Group, error) {
	var l cgroup.Limits
	if m.groups.Memory.Version > 0 {
		l.MemoryMB = n.Limits.MemoryMB
	}
	if m.groups.PIDs.Version > 0 {
		l.PIDs = n.Limits.PIDs
	}
	if m.groups.CPU.Version > 0 {
		l.CPUs, l.CPUShares = n.Limits.CPUs, n.Limits.CPUShares
	}
	if l == (cgroup.Limits{}) {
		return nil, nil
	}
	return cgroup.New(n.Session, l)
}

// Limits says what each limit is worth here, by control groups or, if this
// machine has none to give, by rlimits.
func (m *Machine) Limits() []bawn.Capability {
	yes := func(attribute, how string) bawn.Capability {
		return bawn.Capability{Attribute: attribute, Strength: bawn.Enforced, How: how}
	}
	return []bawn.Capability{
		limit(sandbox.LimitMemory, m.groups.Memory, "RLIMIT_DATA: each process by itself", bawn.Partly),
		limit(sandbox.LimitPIDs, m.groups.PIDs, "RLIMIT_NPROC in the user namespace", m.nproc()),
		limit(sandbox.LimitCPU, m.groups.CPU, "", bawn.Unenforced),
		yes(sandbox.LimitFiles, "RLIMIT_NOFILE"),
		yes(sandbox.LimitFileSize, "RLIMIT_FSIZE"),
		yes(sandbox.LimitTime, "the whole session is killed"),
	}
}

// limit describes one limit: by control group, or else by something weaker.
func limit(attribute string, c cgroup.Controller, otherwise string, strength bawn.Strength) bawn.Capability {
	switch {
	case c.Version == 0:
		return bawn.Capability{Attribute: attribute, Strength: strength, How: otherwise, Why: c.Why, Remedy: c.Remedy}
	case c.Partly != "":
		return bawn.Capability{Attribute: attribute, Strength: bawn.Partly, How: fmt.Sprintf("control group v%d", c.Version), Why: c.Partly, Remedy: c.Remedy}
	}
	return bawn.Capability{Attribute: attribute, Strength: bawn.Enforced, How: fmt.Sprintf("control group v%d", c.Version)}
}

// nproc is what RLIMIT_NPROC is worth: the kernel never applies it to root
// (setrlimit(2)).
func (m *Machine) nproc() bawn.Strength {
	if m.facts.UID == 0 {
		return bawn.Unenforced
	}
	return bawn.Enforced
}
