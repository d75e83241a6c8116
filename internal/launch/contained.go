package launch

import (
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/config"
	"github.com/bawn-dev/bawn/internal/netrule"
	"github.com/bawn-dev/bawn/internal/policy"
	"github.com/bawn-dev/bawn/internal/runner"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// contained says which parts of a session its decisions may rely on: those that the
// provider has verified in full and no flag has opened. With policy.contained =
// "decide" none counts.
func contained(cfg *config.Config, s *runner.Session) bawn.Contained {
	if s.Uncontained != "" || cfg != nil && cfg.Decides() {
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

// ConnectionAsks reports whether whatever leaves a session asks where it connects: every
// host that it reaches without a question is looked into (docs/approvals.md). Hosts of
// models don't count, to which an agent speaks all the time.
func ConnectionAsks(iso *bawn.Isolation, models []string) bool {
	e := &iso.Egress
	unseen := func(host string) bool { return !slices.Contains(models, host) }
	switch {
	case len(e.HostPorts) > 0 || slices.ContainsFunc(e.Hosts, unseen):
		return false
	case iso.Network == bawn.NetworkNone:
		return true // nothing connects
	case iso.Network != bawn.NetworkAllowlist || e.Ask <= 0:
		return false
	}
	rules, err := netrule.Compile(*e)
	return err == nil && !slices.ContainsFunc(e.HTTP, anyMethod) && !slices.ContainsFunc(policy.Builtins(), func(r bawn.Rule) bool {
		return r.Kind == bawn.Network && r.Verdict == bawn.Allow && !rules.Opened(r.Match[0], 443)
	})
}

// anyMethod reports whether an entry of isolation.http names no methods, and so lets
// every request through.
func anyMethod(entry string) bool {
	f := strings.Fields(entry)
	return len(f) != 3 || f[1] == "*"
}
