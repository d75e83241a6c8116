package docker

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"

	"github.com/bawn-dev/bawn/internal/sandbox/gvisor"
	"github.com/bawn-dev/bawn/internal/sandbox/inside"
	"github.com/bawn-dev/bawn/internal/sandbox/native"
)

// A container whose runtime is gVisor's has a kernel of its own: no descriptor
// and no socket of the host's reaches it. Its first process is spoken to by its
// standard streams, to which the engine attaches us, and its network begins as a
// link in the namespace of a second container, the holder, which gVisor's network
// stack takes over. Both is done as provider gvisor does it.

// holderPlace stands for the holder's ID until there is one.
const holderPlace = "{holder}"

// resolvFile is the container's resolv.conf(5), in the session's own directory.
const (
	resolvFile   = sessionPlace + "/" + resolvEntry
	resolvTarget = "/etc/resolv.conf"
)

// asSentry makes a plan one for gVisor. It comes last.
func (p *Plan) asSentry(f Facts) {
	c, h := p.Container, p.Host
	words := []string{programPlace, inside.Argument, inside.StdioArgument}
	if p.Gateway != nil {
		words = append(words, p.Gateway.Forwards()...)
		h.NetworkMode = "container:" + holderPlace
		p.Holder = p.holder(f)
		// A container that joins another's network has its names, too.
		c.Hostname, h.ExtraHosts = "", nil
		h.Mounts = append(h.Mounts, ownMount(resolvFile, resolvTarget))
	}
	c.Entrypoint = words
	c.OpenStdin, c.StdinOnce, c.AttachStdin, c.AttachStdout, c.AttachStderr = true, true, true, true, true
	if h.PidsLimit != nil {
		*h.PidsLimit += gvisor.Overhead
	}
	h.Mounts = slices.DeleteFunc(h.Mounts, func(m mount.Mount) bool { return m.Target == controlPlace })
}

// ownMount shows something of the session's own directory.
func ownMount(source, target string) mount.Mount {
	return mount.Mount{Type: mount.TypeBind, Source: source, Target: target, ReadOnly: true, BindOptions: &mount.BindOptions{Propagation: mount.PropagationRPrivate}}
}

// holder is the plan of the container whose network namespace gVisor is given. It
// has no capability, and runs nothing but the wait for its end.
func (p *Plan) holder(f Facts) *Plan {
	h := p.helper("")
	h.Host.NetworkMode, h.Host.CapAdd, h.Host.Runtime, h.Host.ExtraHosts = "none", []string{}, f.Holder, p.Host.ExtraHosts
	h.Container.Hostname = p.Container.Hostname
	if len(p.Gateway.Own) > 1 {
		h.Host.Sysctls = map[string]string{"net.ipv6.conf.all.disable_ipv6": "0"}
	}
	return h
}

// steady makes every directory on the way from a writable place to something in
// it that is mounted a mount as well: gVisor refuses to rename or remove those,
// and would let any other be moved away together with what is in it.
func (l *layout) steady(mounts []native.Mount, look func(string) (native.File, bool)) ([]native.Mount, error) {
	known := map[string]bool{}
	for _, m := range mounts {
		known[m.Target] = true
	}
	var more []native.Mount
	for _, m := range mounts {
		around := shownAround(mounts, m.Target)
		if around == nil || m.Kind == native.KindTmpfs {
			continue
		}
		for dir := path.Dir(m.Target); dir != around.Target && !known[dir]; dir = path.Dir(dir) {
			known[dir] = true
			source := around.Source + strings.TrimPrefix(dir, around.Target)
			at, ok := look(source)
			if !ok || at.Real != source || !at.Dir {
				return nil, fmt.Errorf("%q leads to %q, which is protected, and is no directory any longer; try again", source, m.Target)
			}
			more = append(more, native.Mount{Kind: native.KindBind, Source: source, Target: dir, ID: at.ID, Why: around.Why})
		}
	}
	mounts = append(mounts, more...)
	slices.SortStableFunc(mounts, func(a, b native.Mount) int { return strings.Compare(a.Target, b.Target) })
	return mounts, nil
}

// shownAround is the innermost writable place of the host that holds target, nil
// for none.
func shownAround(mounts []native.Mount, target string) (around *native.Mount) {
	for i, m := range mounts {
		if m.Kind == native.KindBind && below(target, m.Target) && (around == nil || len(m.Target) > len(around.Target)) {
			around = &mounts[i]
		}
	}
	return around
}

// sentryNetwork moves the network of a plan to a gateway.
func (p *Plan) sentryNetwork() {
	p.Gateway = gvisor.NewGateway(p.Inside.Network)
	p.Inside.Network = nil
}

// forHolder sets which container's network another one has.
func forHolder(h *container.HostConfig, id string) {
	if h.NetworkMode == "container:"+holderPlace {
		h.NetworkMode = container.NetworkMode("container:" + id)
	}
}
