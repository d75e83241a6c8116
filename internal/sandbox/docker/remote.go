package docker

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/moby/moby/api/types/mount"

	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/inside"
	"github.com/bawn-dev/bawn/internal/sandbox/inside/stream"
	"github.com/bawn-dev/bawn/internal/sandbox/native"
)

// An engine on another machine has none of this one's files, and none of its
// sockets. So the workspace is copied into a volume of the session's own before the
// container starts, and what has changed is copied back once it has ended. The
// container has no network at all. Its first process is spoken to by its standard
// streams, as gVisor's is, and through them connections come to ports of the
// guest's loopback back to this machine, where they are connected to the relay in
// a network namespace of ours: so what the guest may reach is decided, resolved and
// dialled here, as everywhere.

// A Remote is what a plan has of an engine on another machine.
type Remote struct {
	From     string          `json:"workspace"`                   // on this machine
	ReadOnly bool            `json:"read_only,omitempty"`         // nothing is copied back
	Hidden   []string        `json:"not_copied,omitempty"`        // paths in the workspace
	Kept     []string        `json:"never_copied_back,omitempty"` // likewise
	Files    []sandbox.File  `json:"files,omitempty"`             // shown below /run/bawn
	LeftOut  []string        `json:"left_out,omitempty"`          // what the guest would see of this machine elsewhere
	MaxMB    int64           `json:"max_mb"`
	Network  *native.Network `json:"network,omitempty"` // on this machine
	Ports    []uint16        `json:"ports,omitempty"`   // of the guest's loopback, which lead to it

	id native.Identity // of the workspace
}

// remoteUser is the guest's user and group where root calls: nothing on the
// engine's machine has to be root's.
const remoteUser = 1000

// Volumes of a session on another machine, as they stand in a plan.
const (
	workspaceVolume = sessionPlace + "-workspace"
	ownVolume       = sessionPlace + "-own"
)

// maxRemoteMB is how large a workspace may be where nobody has said.
const maxRemoteMB = 1024

// notRemote refuses what an engine on another machine can't have.
func notRemote(req sandbox.Request, x Extra) error {
	const elsewhere = "the engine is on another machine"
	switch {
	case len(req.Sockets) > 0:
		return fmt.Errorf("socket %q can't be shown to the guest: %s", req.Sockets[0], elsewhere)
	case len(x.Binds) > 0:
		return &FlagError{"--volume=" + x.Binds[0], elsewhere + ", and would mount its own files", "leave it out"}
	case req.Tmp != "":
		return fmt.Errorf("%q can't be the guest's /tmp: %s", req.Tmp, elsewhere)
	}
	return nil
}

// takeAway sorts what the guest would see of this machine: what is copied, and
// what it does without.
func (p *Plan) takeAway(o Options) error {
	in, l := p.Inside, p.layout
	r := &Remote{From: l.host, MaxMB: cmp.Or(o.RemoteMaxMB, maxRemoteMB)}
	var list []native.Mount
	for _, m := range in.Mounts {
		switch rel, of := strings.CutPrefix(m.Target, l.guest+"/"); {
		case m.Kind == native.KindDev, m.Kind == native.KindTmpfs && !of:
			list = append(list, m)
		case m.Target == l.guest:
			r.ReadOnly, r.id = m.Kind != native.KindBind, m.ID
			list = append(list, m)
		case m.IsPrivateGit() && !of:
			r.LeftOut = append(r.LeftOut, m.Target)
		case of && (m.Kind == native.KindBindRO || m.IsPrivateGit()): // there the guest has a copy of the host's, of which nothing comes back
			r.Kept = append(r.Kept, rel)
		case of && m.Kind == native.KindTmpfs:
			r.Hidden = append(r.Hidden, rel)
			list = append(list, m)
		case of && m.Kind != native.KindBind:
			r.Hidden = append(r.Hidden, rel)
		case of: // a part that may be written anyway
		case m.Why == native.WhyFile && below(m.Target, gitPlace): // of a private git directory
		case m.Why == native.WhyFile && below(m.Target, ownPlace):
			r.Files = append(r.Files, sandbox.File{Source: m.Source, Target: m.Target})
			list = append(list, m)
		case m.Kind == native.KindBind && m.IsCache():
			list = append(list, native.Mount{Kind: native.KindTmpfs, Target: m.Target, SizeMB: l.tmpMB, Mode: 0o700, Why: m.Why})
		case m.Kind == native.KindBind:
			return &native.FileError{Target: m.Target, Why: "the engine is on another machine, where the workspace alone is copied to; leave out what may be written beside it"}
		case m.Kind == native.KindBindRO:
			r.LeftOut = append(r.LeftOut, m.Target)
		}
	}
	for _, a := range in.Absent {
		if rel, of := strings.CutPrefix(a, l.guest+"/"); of {
			r.Hidden = append(r.Hidden, rel)
		}
	}
	if in.Network != nil {
		r.Network, in.Network = in.Network, nil
		r.Ports = append([]uint16{r.Network.Proxy}, r.Network.HostPorts...)
	}
	in.Mounts, p.Remote = list, r
	in.Landlock.Writable = writable(list)
	return nil
}

// asRemote makes a plan one for an engine on another machine. It comes last.
func (p *Plan) asRemote() {
	c, h := p.Container, p.Host
	c.Entrypoint = []string{programPlace, inside.Argument, inside.StdioArgument}
	if len(p.Remote.Ports) > 0 {
		c.Entrypoint = append(c.Entrypoint, stream.PortsWord)
		for _, port := range p.Remote.Ports {
			c.Entrypoint = append(c.Entrypoint, strconv.Itoa(int(port)))
		}
	}
	c.OpenStdin, c.StdinOnce, c.AttachStdin, c.AttachStdout, c.AttachStderr = true, true, true, true, true
	h.NetworkMode = "none"
	h.Mounts = append(h.Mounts, volumeAt(workspaceVolume, p.layout.guest, p.Remote.ReadOnly), volumeAt(ownVolume, ownPlace, true))
}

// volumeAt shows one of the session's own.
func volumeAt(name, target string, ro bool) mount.Mount {
	return mount.Mount{Type: mount.TypeVolume, Source: name, Target: target, ReadOnly: ro, VolumeOptions: &mount.VolumeOptions{NoCopy: true}}
}

// proxies are the variables by which programs find the relay; it may be nil.
func (r *Remote) proxies() (list []string) {
	if r == nil || r.Network == nil {
		return nil
	}
	url := "http://127.0.0.1:" + strconv.Itoa(int(r.Network.Proxy))
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		list = append(list, name+"="+url, strings.ToLower(name)+"="+url)
	}
	return append(list, "NO_PROXY=localhost,127.0.0.1,::1", "no_proxy=localhost,127.0.0.1,::1")
}
