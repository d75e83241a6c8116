package gvisor

import (
	"fmt"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/linux/cgroup"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// A finding is what the trials have shown.
type finding struct {
	Path    string // of runsc; "" without one
	Version string
	Why     string // no sandbox can be made; "" where one can
	Remedy  string
	Network bool   // by name
	NoName  string // why not
	IPv6    bool
	Groups  cgroup.Support
	Root    bool // the user is root, for whom RLIMIT_NPROC does not hold
}

// Overhead is how many processes and threads gVisor has of its own.
const Overhead = 150

// attributes are all that an isolation may ask for.
var attributes = []string{
	sandbox.FSWrite, sandbox.FSRead, sandbox.FSPatterns, sandbox.FSProtect, sandbox.FSPrivate, sandbox.Processes, sandbox.IPC, sandbox.Kernel, sandbox.Terminal,
	sandbox.NetNone, sandbox.NetAllow, sandbox.NetFull, sandbox.LimitMemory, sandbox.LimitPIDs, sandbox.LimitCPU, sandbox.LimitFiles,
	sandbox.LimitFileSize, sandbox.LimitTime, sandbox.DevicesByName,
}

// capabilities says what the finding means, to a user who accepts unprotected
// names or not.
func (f *finding) capabilities(unprotected bool) []bawn.Capability {
	if f.Why != "" {
		var list []bawn.Capability
		for _, a := range attributes {
			list = append(list, bawn.Capability{Attribute: a, Why: f.Why, Remedy: f.Remedy})
		}
		return list
	}
	yes := func(attribute, how string) bawn.Capability {
		return bawn.Capability{Attribute: attribute, Strength: bawn.Enforced, How: how}
	}
	return []bawn.Capability{
		yes(sandbox.FSWrite, "read-only mounts of the host's kernel, for gVisor's own processes too"),
		{
			Attribute: sandbox.FSRead, Strength: bawn.Partly, How: "covered by empty mounts",
			Why: "a hidden file is seen once a program of the host has replaced it", Remedy: "use provider \"native\", which covers it again",
		},
		sandbox.PatternsCovered(),
		protection(unprotected),
		yes(sandbox.FSPrivate, "tmpfs of gVisor's kernel"),
		yes(sandbox.Processes, "a kernel of its own, in a PID namespace that ends with the session; a command can end all of it"),
		yes(sandbox.IPC, "a kernel of its own; no socket, pipe or device of the host passes its border"),
		yes(sandbox.Kernel, "gVisor (systrap): the host's kernel is not called; a seccomp filter and no capability inside"),
		yes(sandbox.Terminal, "a pseudo-terminal of gVisor's kernel, whose bytes are carried"),
		yes(sandbox.NetNone, "a network stack with loopback alone"),
		f.allowlist(),
		yes(sandbox.NetFull, "the host's network, by gVisor's host sockets"),
		limit(sandbox.LimitMemory, f.Groups.Memory, "gVisor's own memory counts; at the limit the whole sandbox ends"),
		f.pids(fmt.Sprintf("counts what the guest takes of the host: threads of a process may share one, and %d more are left to gVisor", Overhead)),
		limit(sandbox.LimitCPU, f.Groups.CPU, ""),
		yes(sandbox.LimitFiles, "RLIMIT_NOFILE of gVisor's kernel"),
		yes(sandbox.LimitFileSize, "RLIMIT_FSIZE of gVisor's kernel"),
		yes(sandbox.LimitTime, "the whole session is killed"),
		{Attribute: sandbox.DevicesByName, Why: "gVisor's kernel has devices of its own", Remedy: "use provider \"native\""},
	}
}

// protection describes protected names. Those that get out are files that the host
// executes later, so sessions that ask for them are refused unless the user accepts
// it.
func protection(accepted bool) bawn.Capability {
	c := bawn.Capability{
		Attribute: sandbox.FSProtect,
		Why:       "gVisor's kernel has no seccomp user notification: a guest can make protected files that are not there yet, and change those deeper down",
		Remedy:    "use provider \"native\" or \"bwrap\", or accept it in your own configuration: gvisor_accept_unprotected = true under [isolation]",
	}
	if accepted {
		c.Strength, c.How, c.Remedy = bawn.Partly, "those that are there, at the top of a writable place and in its git repository, are read-only mounts", "use provider \"native\""
	}
	return c
}

// allowlist describes network by name.
func (f *finding) allowlist() bawn.Capability {
	if !f.Network {
		return bawn.Capability{Attribute: sandbox.NetAllow, Why: f.NoName, Remedy: "use provider \"native\", or --net none"}
	}
	c := bawn.Capability{Attribute: sandbox.NetAllow, Strength: bawn.Enforced, How: "gVisor's network ends at a veth pair; nftables at its other end leads TCP and DNS to the relay and refuses the rest"}
	if !f.IPv6 {
		c.How += "; guests have IPv4 only"
	}
	return c
}

// pids describes the limit of processes.
func (f *finding) pids(partly string) bawn.Capability {
	if f.Groups.PIDs.Version > 0 || f.Root {
		return limit(sandbox.LimitPIDs, f.Groups.PIDs, partly)
	}
	return bawn.Capability{Attribute: sandbox.LimitPIDs, Strength: bawn.Partly, How: "RLIMIT_NPROC in the user namespace", Why: partly, Remedy: "use provider \"native\""}
}

// limit describes what a control group around all of gVisor enforces. partly is
// what it does not, or "".
func limit(attribute string, c cgroup.Controller, partly string) bawn.Capability {
	if c.Version == 0 {
		remedy := c.Remedy
		if attribute == sandbox.LimitMemory { // what an ordinary user can do about it
			remedy = strings.TrimPrefix(remedy+"; or use provider \"native\" or \"bwrap\", which limit each process by itself", "; ")
		}
		return bawn.Capability{Attribute: attribute, Why: c.Why, Remedy: remedy}
	}
	how := fmt.Sprintf("control group v%d around all of gVisor", c.Version)
	if c.Partly != "" {
		return bawn.Capability{Attribute: attribute, Strength: bawn.Partly, How: how, Why: c.Partly, Remedy: c.Remedy}
	}
	if attribute == sandbox.LimitPIDs {
		return bawn.Capability{Attribute: attribute, Strength: bawn.Partly, How: how, Why: partly, Remedy: "use provider \"native\""}
	}
	if partly != "" {
		how += "; " + partly
	}
	return bawn.Capability{Attribute: attribute, Strength: bawn.Enforced, How: how}
}
