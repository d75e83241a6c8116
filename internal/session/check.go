package session

import (
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/netrule"
)

// check refuses a session that can't be compared: an entry that can't be read
// would otherwise mean nothing on one side and something on the other.
func check(s bawn.Session) error {
	iso := s.Isolation
	if s.Mode > bawn.ModePermissive || s.Autonomy > bawn.AutonomyFull || iso.Network > bawn.NetworkFull || iso.Caches > bawn.CacheShared {
		return errors.New("its mode, autonomy, network or use of caches is unknown")
	}
	return errors.Join(checkPlaces(iso), checkEnv(iso), checkLimits(iso), checkEgress(iso.Egress))
}

func checkPlaces(iso bawn.Isolation) error {
	all := slices.Clone(iso.CacheDirs)
	for _, m := range iso.Mounts {
		if m.Access > bawn.ReadWrite {
			return fmt.Errorf("mount %q: its access is unknown", m.Path)
		}
		all = append(all, m.Path)
	}
	if iso.Workspace != "" {
		all = append(all, iso.Workspace)
	}
	for _, d := range iso.Devices {
		all = append(all, "/"+d)
	}
	for _, p := range all {
		if !path.IsAbs(p) || path.Clean(p) != p || strings.IndexByte(p, 0) >= 0 {
			return fmt.Errorf("path %q: want it absolute and clean; a device is named below /dev", p)
		}
	}
	return nil
}

func checkEnv(iso bawn.Isolation) error {
	for _, n := range iso.Env {
		if n == "" || strings.ContainsAny(n, "=\x00") {
			return fmt.Errorf("env %q: want NAME or PREFIX*", n)
		}
	}
	for _, kv := range iso.SetEnv {
		if name, _, set := strings.Cut(kv, "="); !set || name == "" || strings.ContainsAny(name, "*") || strings.IndexByte(kv, 0) >= 0 {
			return fmt.Errorf("env %q: want NAME=value", name)
		}
	}
	return nil
}

func checkLimits(iso bawn.Isolation) error {
	r, e := iso.Resources, iso.Egress
	if min(r.CPUShares, r.MemoryMB, r.TmpMB, r.PIDs, r.OpenFiles, r.FileSizeMB, int64(r.Timeout), e.MaxConns, e.MaxOutMB, e.MaxUses, e.MaxLentMB, int64(e.Ask)) < 0 {
		return errors.New("a limit is below 0; want 0 for none")
	}
	if !(r.CPUs >= 0) || math.IsInf(r.CPUs, 0) {
		return fmt.Errorf("cpus %v: want a number, or 0 for no limit", r.CPUs)
	}
	return nil
}

func checkEgress(e bawn.Egress) error {
	_, wrong := readReach(e)
	_, ports := readAll(e.HostPorts, netrule.ParseHostPort)
	_, publish := readAll(e.Ports, netrule.ParsePublish)
	var proxy error
	if e.Proxy != "" {
		_, proxy = netrule.ParseProxy(e.Proxy)
	}
	for _, s := range e.Secrets {
		if s == "" || s != "*" && strings.Contains(s, "*") {
			wrong = errors.Join(wrong, fmt.Errorf("secret %q: want a name, or \"*\" for all", s))
		}
	}
	return errors.Join(wrong, ports, publish, proxy)
}
