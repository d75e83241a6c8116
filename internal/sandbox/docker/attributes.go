package docker

import (
	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// attributes are all that a provider may know.
var attributes = []string{
	sandbox.FSWrite, sandbox.FSRead, sandbox.FSPatterns, sandbox.FSProtect, sandbox.FSPrivate, sandbox.Processes, sandbox.IPC, sandbox.Kernel, sandbox.Terminal,
	sandbox.NetNone, sandbox.NetFull, sandbox.NetAllow, sandbox.LimitMemory, sandbox.LimitPIDs, sandbox.LimitCPU, sandbox.LimitFiles,
	sandbox.LimitFileSize, sandbox.LimitTime, sandbox.DevicesByName,
}

func nothing(why, remedy string) []bawn.Capability {
	list := make([]bawn.Capability, len(attributes))
	for i, a := range attributes {
		list[i] = bawn.Capability{Attribute: a, Why: why, Remedy: remedy}
	}
	return list
}
