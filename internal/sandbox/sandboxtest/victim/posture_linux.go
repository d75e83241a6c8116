package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest/probe"
)

// collectPosture looks at everything that can be observed of this process.
func collectPosture(w *Fixtures) probe.Posture {
	p := probe.Posture{
		UID: strings.Fields(statusField("Uid")), GID: strings.Fields(statusField("Gid")), Groups: strings.Fields(statusField("Groups")),
		Capabilities: map[string]string{}, NoNewPrivs: statusField("NoNewPrivs"), Seccomp: statusField("Seccomp"),
		Namespaces: map[string]string{}, Rlimits: map[string]string{}, Session: sessionOf(w), Terminal: openOnly("/dev/tty", unix.O_RDONLY) == nil,
		Umask: statusField("Umask"), Descriptors: openDescriptors(),
	}
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
		p.Capabilities[set] = statusField(set)
	}
	for _, n := range namespaceFlags {
		p.Namespaces[n.name] = compareNamespace(w, n.name)
	}
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		p.Env = append(p.Env, name)
	}
	slices.Sort(p.Env)
	p.Mounts, p.OtherMounts = postureMounts(w)
	for name, limit := range rlimits() {
		if limit != w.Rlimits[name] {
			p.Rlimits[name] = limitText(limit)
		}
	}
	p.Dev = names("/dev")
	return p
}

func compareNamespace(w *Fixtures, name string) string {
	ns, err := os.Readlink("/proc/self/ns/" + name)
	switch {
	case err != nil:
		return "unknown"
	case ns == w.Namespaces[name]:
		return "same"
	}
	return "new"
}

// sessionOf says whose session we are in.
func sessionOf(w *Fixtures) string {
	sid, err := unix.Getsid(0)
	switch {
	case err != nil:
		return "unknown"
	case sid == 0:
		return "outside"
	case sid == w.Launcher:
		return "launcher's"
	}
	return "own"
}

// rlimits reads every limit of ours.
func rlimits() map[string]probe.Rlimit {
	out := map[string]probe.Rlimit{}
	for name, n := range probe.Limits {
		var l unix.Rlimit
		if unix.Getrlimit(n, &l) == nil {
			out[name] = probe.Rlimit{Cur: l.Cur, Max: l.Max}
		}
	}
	return out
}

func limitText(l probe.Rlimit) string {
	text := func(n uint64) string {
		if n == unix.RLIM_INFINITY {
			return "unlimited"
		}
		return itoa(int(n))
	}
	return text(l.Cur) + "/" + text(l.Max)
}

func names(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return []string{err.Error()}
	}
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// openDescriptors says what kind each of ours is that we did not open.
func openDescriptors() []string {
	kinds := map[uint32]string{unix.S_IFREG: "file", unix.S_IFDIR: "directory", unix.S_IFIFO: "pipe", unix.S_IFSOCK: "socket", unix.S_IFCHR: "device", unix.S_IFBLK: "disk"}
	var list []string
	for _, fd := range append([]int{0, 1, 2}, inherited()...) {
		if kind := kindOf(fd); kind != 0 {
			list = append(list, itoa(fd)+" "+kinds[kind])
		}
	}
	return list
}

// wellKnown are the mount points that every machine has in a sandbox.
var wellKnown = []string{"/", "/proc", "/sys", "/dev", "/dev/shm", "/dev/pts", "/dev/mqueue", "/tmp", "/var/tmp", "/run"}

// bawnsOwn begins where a session has what Bawn mounts for itself.
const bawnsOwn = "/run/bawn"

// postureMounts lists the mounts that don't depend on the machine, and sums
// up the others.
func postureMounts(w *Fixtures) (list []string, others probe.MountSum) {
	others = probe.MountSum{ReadOnly: true, NoSUID: true, NoDev: true}
	base := filepath.Dir(w.Out)
	for _, m := range effective(mountPoints()) {
		options := strings.Split(m.options, ",")
		ro, nosuid, nodev := slices.Contains(options, "ro"), slices.Contains(options, "nosuid"), slices.Contains(options, "nodev")
		device := strings.HasPrefix(m.target, "/dev/") && !slices.Contains(wellKnown, m.target)
		if device {
			m.fstype = "device"
		}
		if !device && !slices.Contains(wellKnown, m.target) && !strings.HasPrefix(m.target, bawnsOwn) && !strings.HasPrefix(m.target, base+"/") {
			others.ReadOnly, others.NoSUID, others.NoDev = others.ReadOnly && ro, others.NoSUID && nosuid, others.NoDev && nodev
			continue
		}
		line := m.target + " " + hostType(m.fstype, w)
		for _, o := range []string{"ro", "rw", "nosuid", "nodev", "noexec"} {
			if slices.Contains(options, o) {
				line += " " + o
			}
		}
		list = append(list, line)
	}
	slices.Sort(list)
	return list, others
}

// effective keeps the last of several mounts on one place.
func effective(all []mountPoint) []mountPoint {
	last := map[string]mountPoint{}
	for _, m := range all {
		last[m.target] = m
	}
	var list []mountPoint
	for _, m := range last {
		list = append(list, m)
	}
	return list
}

func hostType(fstype string, w *Fixtures) string {
	if slices.Contains(w.HostTypes, fstype) {
		return "host"
	}
	return fstype
}
