package gvisor

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn/internal/sandbox/inside"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// Where things are in the launcher's mount namespace: a tmpfs covers /tmp there.
const (
	scratch = "/tmp"
	stateAt = scratch + "/state"  // of runsc
	bundle  = scratch + "/bundle" // config.json
	rootAt  = scratch + "/root"   // of the guest
	copyAt  = scratch + "/copy"   // the layer of a copy, while its overlay is mounted
)

// program is where the guest sees Bawn.
const program = "/run/.bawn"

// A spec is what runsc reads as config.json (OCI runtime specification 1.2, only
// what is used of it).
type spec struct {
	Version  string      `json:"ociVersion"`
	Process  specProcess `json:"process"`
	Root     specRoot    `json:"root"`
	Hostname string      `json:"hostname"`
	Mounts   []specMount `json:"mounts"`
	Linux    specLinux   `json:"linux"`
}

type specProcess struct {
	User struct {
		UID int `json:"uid"`
		GID int `json:"gid"`
	} `json:"user"`
	Args            []string `json:"args"`
	Env             []string `json:"env"`
	Dir             string   `json:"cwd"`
	NoNewPrivileges bool     `json:"noNewPrivileges"`
	Capabilities    struct{} `json:"capabilities"` // none
}

type specRoot struct {
	Path     string `json:"path"`
	Readonly bool   `json:"readonly"`
}

type specMount struct {
	Destination string   `json:"destination"`
	Type        string   `json:"type"`
	Source      string   `json:"source"`
	Options     []string `json:"options,omitempty"`
}

type specLinux struct {
	UIDMappings []specMapping   `json:"uidMappings"`
	GIDMappings []specMapping   `json:"gidMappings"`
	Namespaces  []specNamespace `json:"namespaces"`
}

type specMapping struct {
	Container int `json:"containerID"`
	Host      int `json:"hostID"`
	Size      int `json:"size"`
}

type specNamespace struct {
	Type string `json:"type"`
	Path string `json:"path,omitempty"`
}

// newSpec is the container for a layout. What is read-only, hidden or writable
// in the guest's root is so by the host's kernel already; gVisor is told again
// where what it does by itself depends on it.
func newSpec(p *layout.Plan, n *Gateway) spec {
	s := spec{Version: "1.2.0", Hostname: "bawn", Root: specRoot{Path: rootAt, Readonly: true}}
	s.Process = specProcess{
		Args: []string{program, inside.Argument, inside.StreamArgument}, Env: []string{"PATH=/usr/bin:/bin"}, Dir: "/", NoNewPrivileges: true,
	}
	if n != nil {
		s.Process.Args = append(s.Process.Args, n.Forwards()...)
	}
	s.Process.User.UID, s.Process.User.GID = p.UID.Inside, p.GID.Inside
	s.Mounts = mountsOf(p)
	s.Linux = specLinux{
		UIDMappings: []specMapping{{p.UID.Inside, p.UID.Inside, 1}}, GIDMappings: []specMapping{{p.GID.Inside, p.GID.Inside, 1}},
		Namespaces: []specNamespace{{Type: "pid"}, {Type: "user"}, {Type: "ipc"}, {Type: "uts"}, {Type: "mount"}},
	}
	if n != nil {
		s.Linux.Namespaces = append(s.Linux.Namespaces, specNamespace{"network", "/proc/self/ns/net"})
	}
	return s
}

// mountsOf are the file systems of gVisor's own kernel.
func mountsOf(p *layout.Plan) []specMount {
	list := []specMount{
		{"/proc", "proc", "proc", []string{"nosuid", "nodev", "noexec", "ro"}},
		{"/dev", "tmpfs", "tmpfs", []string{"nosuid", "noexec", "mode=755"}},
	}
	for _, m := range p.Mounts {
		switch {
		case m.Kind == layout.KindDev:
			list = append(list, specMount{"/dev/shm", "tmpfs", "tmpfs", tmpfs(m.SizeMB, 0o1777)})
		case m.Kind == layout.KindTmpfs && sentrys(p, m):
			list = append(list, specMount{m.Target, "tmpfs", "tmpfs", tmpfs(m.SizeMB, m.Mode)})
		}
	}
	list = append(list, specMount{"/sys", "sysfs", "sysfs", []string{"nosuid", "nodev", "noexec", "ro"}})
	list = append(list, binds(p)...)
	list = append(list, specMount{program, "bind", rootAt + program, []string{"rbind", "nosuid", "nodev", "ro"}})
	// What is mounted in something comes after it.
	slices.SortStableFunc(list, func(a, b specMount) int {
		return cmp.Compare(strings.Count(a.Destination, "/"), strings.Count(b.Destination, "/"))
	})
	return list
}

// binds are the places that gVisor also needs as mounts: writable places, since
// its own root is read-only, and what lies in a directory that the guest may
// change, with every directory on the way. gVisor acts for the guest from its own
// mount namespace. There the host's kernel knows no mount at such a place and
// would let it be removed; no directory that leads to one may be renamed.
func binds(p *layout.Plan) []specMount {
	var list []specMount
	known := map[string]bool{}
	add := func(target, access string) {
		if !known[target] {
			known[target] = true
			list = append(list, specMount{target, "bind", rootAt + target, []string{"rbind", "nosuid", "nodev", access}})
		}
	}
	for _, m := range p.Mounts {
		if !kernels(p, m) || m.Target == "/" {
			continue
		}
		around := writableAround(p, m.Target)
		switch {
		case m.Kind == layout.KindBind || m.Kind == layout.KindCopy || m.Kind == layout.KindTmpfs:
			add(m.Target, "rw")
		case around != "":
			add(m.Target, "ro")
		}
	}
	for _, m := range p.Mounts {
		around := writableAround(p, m.Target)
		if around == "" || !kernels(p, m) {
			continue
		}
		for dir := path.Dir(m.Target); dir != around; dir = path.Dir(dir) {
			add(dir, "rw")
		}
	}
	return list
}

// writableAround is the innermost place of the host, or of the session's own,
// that the guest may change and that holds target; "" for none.
func writableAround(p *layout.Plan, target string) (around string) {
	for _, m := range p.Mounts {
		open := m.Kind == layout.KindBind || m.Kind == layout.KindCopy || m.Kind == layout.KindTmpfs && kernels(p, m)
		if open && below(target, m.Target) && len(m.Target) > len(around) {
			around = m.Target
		}
	}
	return around
}

func tmpfs(sizeMB int64, mode uint32) []string {
	list := []string{"nosuid", "nodev", fmt.Sprintf("mode=%o", mode)}
	if sizeMB > 0 {
		list = append(list, fmt.Sprintf("size=%dm", sizeMB))
	}
	return list
}

// sentrys reports whether an empty place is gVisor's to make, where it is much
// quicker: /tmp and /var/tmp, unless something of the host is shown below.
func sentrys(p *layout.Plan, m layout.Mount) bool {
	if m.Target != "/tmp" && m.Target != "/var/tmp" {
		return false
	}
	for _, other := range p.Mounts {
		if below(other.Target, m.Target) {
			return false
		}
	}
	return true
}

// kernels reports whether a mount is the host kernel's to make. /proc, /sys and
// /dev are gVisor's own, and hold nothing of the host's to hide.
func kernels(p *layout.Plan, m layout.Mount) bool {
	switch m.Kind {
	case layout.KindProc, layout.KindSysfs, layout.KindDev:
		return false
	case layout.KindTmpfs:
		if sentrys(p, m) {
			return false
		}
	}
	for _, own := range []string{"/proc", "/sys", "/dev"} {
		if m.Target == own || below(m.Target, own) {
			return false
		}
	}
	return true
}
