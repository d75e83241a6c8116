package kernel

import (
	"fmt"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/linux/cgroup"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// GroupHits are the limits that a control group's counters prove to have been
// reached. asked is what the session asked for; group may be nil.
func GroupHits(group *cgroup.Group, asked bawn.Resources) []sandbox.Hit {
	if group == nil {
		return nil
	}
	used, _ := group.Stats()
	return Hits(used, group.Limits(), asked)
}

// Hits are the limits that what a group has used proves to have been reached.
// limits are the group's own, asked what the session asked for.
func Hits(used cgroup.Stats, limits cgroup.Limits, asked bawn.Resources) []sandbox.Hit {
	var list []sandbox.Hit
	if used.OOMKills > 0 {
		list = append(list, memoryHit(used, limits, asked))
	}
	if n := used.PIDsMaxHits; n > 0 && asked.PIDs > 0 {
		list = append(list, sandbox.Hit{
			Rule:   "limits:pids",
			Reason: fmt.Sprintf("%s refused by a limit of processes and threads; the session's is %d", count(n, "new one was", "new ones were"), limits.PIDs),
			Remedy: "raise it with --pids",
		})
	}
	return list
}

// memoryHit tells the session's own limit from those around it: processes are
// also killed for want of memory of the machine, or of a group around Bawn's.
func memoryHit(used cgroup.Stats, real cgroup.Limits, asked bawn.Resources) sandbox.Hit {
	killed := count(used.OOMKills, "process", "processes") + " killed"
	switch {
	case !used.MemoryFull || asked.MemoryMB == 0:
		return sandbox.Hit{
			Rule: "host:memory", Killed: true,
			Reason: "the machine, or a control group around bawn, ran out of memory before the session reached its own limit: " + killed,
			Remedy: "free memory, or start bawn where there is more of it",
		}
	case real.MemoryMB < asked.MemoryMB:
		return sandbox.Hit{
			Rule: "limits:memory", Killed: true,
			Reason: fmt.Sprintf("the session reached the memory limit of %d MiB that the control group around bawn sets: %s", real.MemoryMB, killed),
			Remedy: "start bawn in a control group with more memory; --memory can't raise this one",
		}
	}
	return sandbox.Hit{
		Rule: "limits:memory", Killed: true,
		Reason: fmt.Sprintf("the session reached its memory limit of %d MiB: %s", asked.MemoryMB, killed),
		Remedy: "raise it with --memory",
	}
}

func count(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
