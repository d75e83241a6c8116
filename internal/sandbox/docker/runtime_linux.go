package docker

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/moby/moby/api/types/system"

	"github.com/bawn-dev/bawn"
)

// checkRuntime refuses a runtime that the engine does not know, and one of
// gVisor's that can't be had as it is meant to be. What is stated is that of a
// session; "" is the engine's own choice.
func checkRuntime(stated string, i system.Info) error {
	name := cmp.Or(stated, i.DefaultRuntime)
	r, known := i.Runtimes[name]
	if isSentry(name, r) {
		if why := unfit(r); why != "" {
			return &OptionError{"runtime", name, why, `use provider "gvisor", which starts runsc itself`}
		}
	}
	if stated != "" && !known && len(i.Runtimes) > 0 {
		have := slices.Sorted(maps.Keys(i.Runtimes))
		return &OptionError{"runtime", name, "the engine does not know it", fmt.Sprintf("use one of %q, or make it known to the engine (\"runtimes\" in its daemon.json)", have)}
	}
	return nil
}

// isSentry reports whether a runtime is gVisor's, by whatever name the engine
// knows it.
func isSentry(name string, r system.RuntimeWithStatus) bool {
	return strings.Contains(name+r.Path+r.Type, "runsc")
}

// unfit says why gVisor as the engine has it is not for sessions, or "".
func unfit(r system.RuntimeWithStatus) string {
	if r.Type != "" {
		return "gVisor was tried as a runtime by its path (\"path\" in the engine's daemon.json), not as a shim"
	}
	for _, a := range r.Args {
		name, value, _ := strings.Cut(strings.TrimLeft(a, "-"), "=")
		if name == "network" && value != "sandbox" {
			return fmt.Sprintf("its argument %q takes the network out of gVisor", a)
		}
	}
	return ""
}

// sentry notes what it means for a session that a runtime is gVisor's.
func (f *probed) sentry(stated string, i system.Info) {
	name := cmp.Or(stated, i.DefaultRuntime)
	if f.Sentry = isSentry(name, i.Runtimes[name]); !f.Sentry {
		return
	}
	f.LandlockABI = 0 // gVisor's kernel has none
	f.Supervised = "gVisor's kernel has no seccomp user notification"
	if r, ok := i.Runtimes[plainRuntime]; ok && !isSentry(plainRuntime, r) {
		f.Holder = plainRuntime
	} else {
		f.Network = fmt.Sprintf("the engine has no runtime %q for the container that holds the network", plainRuntime)
	}
	if os.Geteuid() != 0 {
		f.Network = rootsNetwork
	}
}

// plainRuntime is every engine's own.
const plainRuntime = "runc"

// runtime is what sessions ask for, "" for nothing.
func (o Options) runtime() string {
	x, err := ParseExtra(o.ExtraArgs, o.Allowed, bawn.Resources{})
	if err != nil { // the session says so
		return o.Runtime
	}
	return cmp.Or(x.Runtime, o.Runtime)
}
