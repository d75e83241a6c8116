package docker

import (
	"fmt"
	"os"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// Capabilities says what the engine was seen to enforce. Where it can't be used
// nothing is enforced, and each attribute says why.
func (p *Provider) Capabilities() []bawn.Capability {
	f := p.probe()
	if f.Failed != "" {
		return nothing(f.Failed, f.Remedy)
	}
	yes := func(attribute, how string) bawn.Capability {
		return bawn.Capability{Attribute: attribute, Strength: bawn.Enforced, How: how}
	}
	write := "read-only root, read-only mounts"
	if f.LandlockABI > 0 {
		write += fmt.Sprintf(" and Landlock (ABI %d)", f.LandlockABI)
	}
	return []bawn.Capability{
		yes(sandbox.FSWrite, write),
		{
			Attribute: sandbox.FSRead, Strength: bawn.Partly, How: "the image's root; of the host only what is shown",
			Why: "a hidden file below a place that is shown is seen once a program of the host has replaced it", Remedy: "use provider \"native\", which covers it again",
		},
		f.denies(),
		f.protects(),
		yes(sandbox.FSPrivate, "tmpfs"),
		yes(sandbox.Processes, "PID namespace that ends with the session"),
		f.separates(),
		f.confines(os.Geteuid()),
		yes(sandbox.Terminal, "own pseudo-terminal, TIOCSTI and TIOCLINUX refused"),
		yes(sandbox.NetNone, "empty network namespace"),
		yes(sandbox.NetFull, "the engine's default bridge; a loopback of its own"),
		limit(sandbox.NetAllow, "sockets made in the container's network namespace", f.Network, bawn.Unenforced),
		f.memory(),
		limit(sandbox.LimitPIDs, "the engine's control group", f.PIDs, bawn.Unenforced),
		limit(sandbox.LimitCPU, "the engine's control group", f.CPU, bawn.Unenforced),
		yes(sandbox.LimitFiles, "RLIMIT_NOFILE"),
		yes(sandbox.LimitFileSize, "RLIMIT_FSIZE"),
		yes(sandbox.LimitTime, "the whole container is killed"),
		yes(sandbox.DevicesByName, "the engine's control group of devices, and a minimal /dev"),
	}
}

// limit is enforced unless there is a reason.
func limit(attribute, how, why string, otherwise bawn.Strength) bawn.Capability {
	if why == "" {
		return bawn.Capability{Attribute: attribute, Strength: bawn.Enforced, How: how}
	}
	return bawn.Capability{Attribute: attribute, Strength: otherwise, Why: why}
}

func (f *probed) memory() bawn.Capability {
	const how = "the engine's control group"
	if f.Memory == "" && f.Swap != "" {
		return bawn.Capability{Attribute: sandbox.LimitMemory, Strength: bawn.Partly, How: how, Why: f.Swap + ": a guest may swap beside it"}
	}
	return limit(sandbox.LimitMemory, how, f.Memory, bawn.Unenforced)
}

// confines is about what a guest may ask of the kernel.
func (f *probed) confines(uid int) bawn.Capability {
	c := bawn.Capability{Attribute: sandbox.Kernel, Strength: bawn.Enforced, How: "the engine's seccomp profile and Bawn's, no capability, no new privileges"}
	if uid == 0 && !f.Rootless {
		c.Strength, c.Why = bawn.Partly, "the guest is user 0 of the host, without any capability, so that the files in your workspace stay yours"
		c.Remedy = "run bawn as an ordinary user, or use a rootless engine"
	}
	return c
}

// denies is about patterns of names.
func (f *probed) denies() bawn.Capability {
	if f.Supervised == "" {
		return sandbox.PatternsSupervised()
	}
	c := sandbox.PatternsCovered()
	c.Why += ": " + f.Supervised
	return c
}

// protects is about files that the host executes later.
func (f *probed) protects() bawn.Capability {
	c := limit(sandbox.FSProtect, "seccomp user notification: the supervisor opens and names files itself", f.Supervised, bawn.Partly)
	if c.Strength == bawn.Partly {
		c.How, c.Why = "read-only mounts of those that are there", "those that are not there yet can be made: "+f.Supervised
	}
	return c
}

// separates is about channels to the host.
func (f *probed) separates() bawn.Capability {
	c := limit(sandbox.IPC, "IPC namespace; UNIX sockets connected by the supervisor", f.Supervised, bawn.Partly)
	if c.Strength == bawn.Partly {
		c.How, c.Why = "IPC namespace", "sockets of the host in what is shown can be connected to: "+f.Supervised
	}
	return c
}
