package docker

import (
	"fmt"
	"runtime"

	"github.com/moby/moby/api/types/system"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// architectures are Go's by what engines call them, as uname(2) does.
var architectures = map[string]string{"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}

// far notes what it means for a session that the engine is on another machine.
func (f *probed) far(i system.Info, stated string) error {
	if f.Podman {
		return fmt.Errorf("the engine is Podman, of which one on another machine was never tried; use Docker, or run bawn where it runs")
	}
	if f.sentry(stated, i); f.Sentry {
		return &OptionError{"runtime", stated, "gVisor on another machine was never tried", "run bawn on the machine that has the engine, or use another runtime"}
	}
	if arch := architectures[i.Architecture]; arch != runtime.GOARCH {
		return fmt.Errorf("the engine's machine is %q, on which this bawn, built for %s, does not run", i.Architecture, runtime.GOARCH)
	}
	f.LandlockABI = 0 // of another kernel nothing is known
	f.Supervised = "the supervisor reaches no process of another machine"
	return nil
}

// remoteCapabilities says what an engine on another machine enforces.
func (f *probed) remoteCapabilities() []bawn.Capability {
	yes := func(attribute, how string) bawn.Capability {
		return bawn.Capability{Attribute: attribute, Strength: bawn.Enforced, How: how}
	}
	partly := func(attribute, how, why string) bawn.Capability {
		return bawn.Capability{Attribute: attribute, Strength: bawn.Partly, How: how, Why: why, Remedy: "run bawn on the machine that has the engine"}
	}
	no := func(attribute, why, remedy string) bawn.Capability {
		return bawn.Capability{Attribute: attribute, Why: why, Remedy: remedy}
	}
	limited := func(attribute, why string) bawn.Capability {
		if why != "" {
			return no(attribute, why, "run bawn on the machine that has the engine")
		}
		return partly(attribute, "the engine's control group", "that it does what it was told can't be seen from here")
	}
	network := partly(sandbox.NetAllow, "no network; connections to a proxy on the guest's loopback are carried to the relay on this machine",
		"a program has to use the proxy, which HTTP_PROXY and the like name; one that does not has no network")
	if f.Network != "" {
		network = no(sandbox.NetAllow, f.Network, "use --net none")
	}
	return []bawn.Capability{
		yes(sandbox.FSWrite, "a copy of the workspace on the engine's machine, read-only root; of this machine nothing"),
		yes(sandbox.FSRead, "the image's root and the copy, in which nothing is that is hidden"),
		no(sandbox.FSPatterns, "the copy on the other machine is not looked through", "name the files in place of a pattern, or use provider \"native\""),
		partly(sandbox.FSProtect, "what is protected is not copied back", "in its copy the guest can change it, for as long as the session lasts"),
		yes(sandbox.FSPrivate, "tmpfs of the engine's machine"),
		yes(sandbox.Processes, "PID namespace on another machine, which ends with the session"),
		yes(sandbox.IPC, "another machine's namespaces; no socket of this one is there"),
		yes(sandbox.Kernel, "the engine's seccomp profile and Bawn's, no capability, no new privileges; not user 0"),
		yes(sandbox.Terminal, "a pseudo-terminal of the container's, whose bytes are carried"),
		yes(sandbox.NetNone, "a network namespace with loopback alone"),
		no(sandbox.NetFull, "it would be the network of the engine's machine, not of this one", "use --net allowlist"),
		network,
		limited(sandbox.LimitMemory, f.Memory),
		limited(sandbox.LimitPIDs, f.PIDs),
		limited(sandbox.LimitCPU, f.CPU),
		yes(sandbox.LimitFiles, "RLIMIT_NOFILE"),
		yes(sandbox.LimitFileSize, "RLIMIT_FSIZE"),
		partly(sandbox.LimitTime, "the container is killed", "where the engine can't be reached it ends when the engine notices that nobody speaks to it"),
		no(sandbox.DevicesByName, "the devices would be another machine's", "use provider \"native\""),
	}
}
