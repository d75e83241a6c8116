package launch

import (
	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/config"
	"github.com/bawn-dev/bawn/internal/runner"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// contained says which parts of a session its decisions may rely on: what the provider
// has verified in full, and what no flag has opened. With policy.contained = "decide"
// none counts.
func contained(cfg *config.Config, s *runner.Session) bawn.Contained {
	if s.Bare != "" || cfg != nil && cfg.Decides() {
		return bawn.Contained{}
	}
	isolations := []bawn.Isolation{s.Isolation}
	if s.Split != nil {
		isolations = append(isolations, s.Split.Isolation)
	}
	return holding(partly(s), isolations...)
}

// holding is what sandboxes contain of which these capabilities hold in part only.
func holding(partly []bawn.Capability, isolations ...bawn.Isolation) bawn.Contained {
	c := bawn.ContainedFully
	for _, part := range partly {
		switch part.Attribute {
		case sandbox.FSWrite, sandbox.FSProtect:
			c.Files = false
		case sandbox.Processes, sandbox.IPC:
			c.Processes = false
		case sandbox.NetNone, sandbox.NetAllow, sandbox.NetFull:
			c.Network = false
		}
	}
	for i := range isolations {
		c.Files = c.Files && isolations[i].Caches != bawn.CacheShared
		c.Network = c.Network && isolations[i].Network != bawn.NetworkFull
	}
	return c
}
