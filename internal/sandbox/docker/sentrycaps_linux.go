package docker

import (
	"fmt"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/gvisor"
)

// sentryCapabilities says what an engine whose runtime is gVisor's enforces.
func (f *probed) sentryCapabilities() []bawn.Capability {
	yes := func(attribute, how string) bawn.Capability {
		return bawn.Capability{Attribute: attribute, Strength: bawn.Enforced, How: how}
	}
	partly := func(attribute, how, why string) bawn.Capability {
		return bawn.Capability{Attribute: attribute, Strength: bawn.Partly, How: how, Why: why, Remedy: "use provider \"native\""}
	}
	const group = "the engine's control group around all of gVisor"
	list := []bawn.Capability{
		yes(sandbox.FSWrite, "read-only root and read-only mounts, of gVisor's kernel"),
		partly(sandbox.FSRead, "the image's root; of the host only what is shown", "a hidden file below a place that is shown is seen once a program of the host has replaced it"),
		sandbox.PatternsCovered(),
		partly(sandbox.FSProtect, "those that are there, at the top of a writable place and in its git repository, are read-only mounts",
			f.Supervised+": a guest can make one that is not there yet, and change those deeper down"),
		yes(sandbox.FSPrivate, "tmpfs of gVisor's kernel"),
		yes(sandbox.Processes, "a kernel of its own, which ends with the session"),
		yes(sandbox.IPC, "a kernel of its own; no socket, pipe or device of the host passes its border"),
		yes(sandbox.Kernel, "gVisor: the host's kernel is not called; a seccomp filter and no capability inside"),
		yes(sandbox.Terminal, "a pseudo-terminal of gVisor's kernel, whose bytes are carried"),
		yes(sandbox.NetNone, "a network stack with loopback alone"),
		yes(sandbox.NetFull, "the engine's default bridge, by gVisor's network stack"),
		limit(sandbox.NetAllow, "gVisor's network ends at a veth pair; nftables at its other end leads TCP and DNS to the relay and refuses the rest", f.Network, bawn.Unenforced),
		f.memory(),
		limit(sandbox.LimitPIDs, group, f.PIDs, bawn.Unenforced),
		limit(sandbox.LimitCPU, group, f.CPU, bawn.Unenforced),
		yes(sandbox.LimitFiles, "RLIMIT_NOFILE of gVisor's kernel"),
		yes(sandbox.LimitFileSize, "RLIMIT_FSIZE of gVisor's kernel"),
		yes(sandbox.LimitTime, "the whole container is killed"),
		{Attribute: sandbox.DevicesByName, Why: "gVisor's kernel has devices of its own", Remedy: "use provider \"native\""},
	}
	for i, c := range list {
		switch {
		case c.Attribute == sandbox.IPC && f.Open != "":
			list[i] = partly(c.Attribute, "a kernel of its own", f.Open)
		case c.Attribute == sandbox.NetAllow && c.Strength != bawn.Enforced:
			list[i].Remedy = "use provider \"gvisor\" or \"native\", or --net none"
		case c.Attribute == sandbox.LimitPIDs && c.Strength == bawn.Enforced:
			list[i] = partly(c.Attribute, group, fmt.Sprintf("it counts what the guest takes of the host: threads of a process may share one, and %d more are left to gVisor", gvisor.Overhead))
		}
	}
	return list
}
