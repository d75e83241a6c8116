package docker

import (
	"path"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"

	"github.com/bawn-dev/bawn/internal/sandbox/inside"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// helper is the plan of the container that makes the network of another one.
func (p *Plan) helper(id string) *Plan {
	pids := int64(64)
	h := &container.HostConfig{
		NetworkMode: container.NetworkMode("container:" + id), AutoRemove: true, CapAdd: []string{"NET_ADMIN"}, CapDrop: []string{"ALL"}, ReadonlyRootfs: true,
		SecurityOpt: p.Host.SecurityOpt, CgroupnsMode: container.CgroupnsModePrivate, IpcMode: container.IPCModePrivate, UsernsMode: p.Host.UsernsMode,
		LogConfig: p.Host.LogConfig, RestartPolicy: p.Host.RestartPolicy, Init: new(bool), Runtime: p.Host.Runtime,
		Tmpfs:     map[string]string{runPlace: tmpfsOptions(1, 0o755, -1, -1)},
		Resources: container.Resources{Memory: 128 << 20, MemorySwap: 128 << 20, PidsLimit: &pids},
	}
	for _, m := range p.Host.Mounts {
		if m.Type == mount.TypeBind && (m.Target == programPlace || m.Target == controlPlace) {
			h.Mounts = append(h.Mounts, m)
		}
	}
	c := *p.Container
	c.User, c.Hostname, c.Entrypoint = "0:0", "", []string{programPlace, inside.Argument, path.Join(controlPlace, controlName)}
	c.Labels = map[string]string{}
	return &Plan{ImageName: p.ImageName, Name: p.Name + "-net", Container: &c, Host: h, Inside: &layout.Plan{Session: p.Inside.Session}, role: roleNetwork}
}
