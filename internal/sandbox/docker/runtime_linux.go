package docker

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/moby/moby/api/types/system"

	"github.com/bawn-dev/bawn"
)

// checkRuntime refuses a runtime that the engine does not know, and gVisor's,
// which provider gvisor starts itself. What is stated is that of a session; "" is
// the engine's own choice.
func checkRuntime(stated string, i system.Info) error {
	name := cmp.Or(stated, i.DefaultRuntime)
	r, known := i.Runtimes[name]
	if strings.Contains(name+r.Path+r.Type, "runsc") {
		return &OptionError{"runtime", name, "the engine would start gVisor with it, of which no descriptor gets out", `use provider "gvisor", which starts runsc itself, or another runtime`}
	}
	if stated != "" && !known && len(i.Runtimes) > 0 {
		have := slices.Sorted(maps.Keys(i.Runtimes))
		return &OptionError{"runtime", name, "the engine does not know it", fmt.Sprintf("use one of %q, or make it known to the engine (\"runtimes\" in its daemon.json)", have)}
	}
	return nil
}

// runtime is what sessions ask for, "" for nothing.
func (o Options) runtime() string {
	x, err := ParseExtra(o.ExtraArgs, o.Allowed, bawn.Resources{})
	if err != nil { // the session says so
		return o.Runtime
	}
	return cmp.Or(x.Runtime, o.Runtime)
}
