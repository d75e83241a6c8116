package docker

import (
	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

const (
	whyLimits  = "the limits of a session are set under [isolation.resources]"
	whyNetwork = "a session's network is set under [isolation]: the engine's would bypass it"
	whyMounts  = "it could show the guest what the isolation hides"
	whyOwn     = "bawn decides that for every session"
	whyEnv     = `it would be readable by everybody who may ask the engine; set variables by env under [isolation]`
	whyHost    = "it would share a namespace of the host"
	whyCaps    = "a guest holds no capability, on any provider"
)

// flags are all that are known. What is not in it is refused.
var flags = map[string]argument{
	// So anyway.
	"rm": {boolean: true}, "init": {boolean: true}, "read-only": {boolean: true}, "interactive": {boolean: true}, "tty": {boolean: true}, "quiet": {boolean: true},
	"cap-drop": {}, "pull": {fine: []string{"never", "missing"}, never: "the image is pinned"},
	"log-driver": {fine: []string{"none"}, never: "what a guest prints is the session's"}, "restart": {fine: []string{"no"}, never: whyOwn},

	// Harmless, or narrower.
	"label":         {take: label},
	"hostname":      {take: hostname(func(x *Extra) *string { return &x.Hostname })},
	"domainname":    {take: hostname(func(x *Extra) *string { return &x.Domainname })},
	"add-host":      {take: addHost},
	"tmpfs":         {take: tmpfs},
	"ulimit":        {take: ulimit},
	"shm-size":      {take: lower(func(x *Extra) *int64 { return &x.ShmMB }, func(r bawn.Resources) int64 { return r.TmpMB }, megabytes)},
	"memory":        {take: lower(func(x *Extra) *int64 { return &x.MemoryMB }, func(r bawn.Resources) int64 { return r.MemoryMB }, megabytes)},
	"pids-limit":    {take: lower(func(x *Extra) *int64 { return &x.PIDs }, func(r bawn.Resources) int64 { return r.PIDs }, count)},
	"cpu-shares":    {take: lower(func(x *Extra) *int64 { return &x.CPUShares }, func(r bawn.Resources) int64 { return r.CPUShares }, count)},
	"cpus":          {take: cpus},
	"cpuset-cpus":   {take: set(func(x *Extra) *string { return &x.CPUSet })},
	"cpuset-mems":   {take: set(func(x *Extra) *string { return &x.MemSet })},
	"oom-score-adj": {take: oomScore},
	"security-opt":  {take: security, fine: []string{"no-new-privileges", "no-new-privileges=true", "no-new-privileges:true"}, widens: "it would change what the engine confines a container by", attribute: sandbox.Kernel},

	// Wider: only where the user's own configuration names it.
	"device":             {take: list(func(x *Extra) *[]string { return &x.Devices }), widens: `it would open a device to the guest; name it under devices instead`, attribute: sandbox.Kernel},
	"gpus":               {take: text(func(x *Extra) *string { return &x.GPUs }), widens: "it would open devices to the guest; name them under devices instead", attribute: sandbox.Kernel},
	"group-add":          {take: list(func(x *Extra) *[]string { return &x.Groups }), widens: "it would make the guest a member of a group, whose files it may then use", attribute: sandbox.FSRead},
	"sysctl":             {take: sysctl, widens: "it would change the kernel's settings", attribute: sandbox.Kernel},
	"runtime":            {take: text(func(x *Extra) *string { return &x.Runtime }), widens: `another runtime may confine less; use runtime under [isolation.docker_options]`, attribute: sandbox.Kernel},
	"ipc":                {take: text(func(x *Extra) *string { return &x.IPC }), fine: []string{"private"}, widens: whyHost, attribute: sandbox.IPC},
	"uts":                {take: text(func(x *Extra) *string { return &x.UTS }), widens: whyHost, attribute: sandbox.Kernel},
	"userns":             {take: text(func(x *Extra) *string { return &x.UserNS }), widens: whyHost, attribute: sandbox.Kernel},
	"cgroupns":           {take: text(func(x *Extra) *string { return &x.CgroupNS }), widens: whyHost, attribute: sandbox.Processes},
	"volume":             {take: volume, widens: whyMounts + "; use rw or ro under [isolation]", attribute: sandbox.FSRead},
	"mount":              {never: whyMounts + "; use rw or ro under [isolation]"},
	"volumes-from":       {never: whyMounts + "; use rw or ro under [isolation]"},
	"volume-driver":      {never: whyMounts},
	"use-api-socket":     {never: "whoever may speak to the engine is root on this machine"},
	"device-cgroup-rule": {never: "it would open devices to the guest; name them under devices"},
	"device-read-bps":    {never: whyLimits}, "device-read-iops": {never: whyLimits}, "device-write-bps": {never: whyLimits}, "device-write-iops": {never: whyLimits},
	"cgroup-parent": {never: "bawn could not tell any more what limits the session"},

	"privileged": {boolean: true, never: "it would take every wall away: the guest would be root on this machine"},
	"cap-add":    {never: whyCaps},
	"pid":        {never: whyHost + ", and the guest would see and signal its processes"},
	"network":    {fine: []string{"none"}, never: whyNetwork}, "net": {fine: []string{"none"}, never: whyNetwork}, "network-alias": {never: whyNetwork}, "net-alias": {never: whyNetwork}, "link": {never: whyNetwork}, "link-local-ip": {never: whyNetwork},
	"ip": {never: whyNetwork}, "ip6": {never: whyNetwork}, "mac-address": {never: whyNetwork}, "dns": {never: whyNetwork}, "dns-search": {never: whyNetwork}, "dns-option": {never: whyNetwork}, "dns-opt": {never: whyNetwork},
	"publish": {never: "use ports under [isolation]"}, "publish-all": {boolean: true, never: "use ports under [isolation]"}, "expose": {never: "use ports under [isolation]"},
	"env": {never: whyEnv}, "env-file": {never: whyEnv}, "label-file": {never: "use --label"},
	"user": {never: whyOwn}, "entrypoint": {never: whyOwn}, "workdir": {never: whyOwn}, "name": {never: whyOwn}, "detach": {boolean: true, never: whyOwn}, "attach": {never: whyOwn}, "cidfile": {never: whyOwn},
	"detach-keys": {never: whyOwn}, "sig-proxy": {boolean: true, never: whyOwn}, "stop-signal": {never: whyOwn}, "stop-timeout": {never: whyOwn}, "platform": {never: whyOwn}, "isolation": {never: whyOwn}, "log-opt": {never: whyOwn},
	"annotation": {never: "a runtime may take an annotation for an order"}, "storage-opt": {never: "a session's root is read-only"},
	"health-cmd": {never: "commands run in a session by tickets alone"}, "health-interval": {never: whyOwn}, "health-retries": {never: whyOwn}, "health-start-period": {never: whyOwn}, "health-start-interval": {never: whyOwn}, "health-timeout": {never: whyOwn}, "no-healthcheck": {boolean: true},
	"memory-swap": {never: "use memory_swap_mb under [isolation.docker_options]"}, "memory-reservation": {never: whyLimits}, "memory-swappiness": {never: whyLimits}, "kernel-memory": {never: whyLimits},
	"oom-kill-disable": {boolean: true, never: "a session without an end to its memory could stop the machine"}, "blkio-weight": {never: whyLimits}, "blkio-weight-device": {never: whyLimits},
	"cpu-period": {never: "use --cpus"}, "cpu-quota": {never: "use --cpus"}, "cpu-rt-period": {never: whyLimits}, "cpu-rt-runtime": {never: whyLimits}, "cpu-count": {never: whyLimits}, "cpu-percent": {never: whyLimits}, "io-maxbandwidth": {never: whyLimits}, "io-maxiops": {never: whyLimits},
	"disable-content-trust": {boolean: true, never: "the image is pinned"},
}
