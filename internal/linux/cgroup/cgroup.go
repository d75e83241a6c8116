// Package cgroup limits the memory, processes and processor time of a session
// with a control group of its own. It uses version 1 or 2 of the interface,
// whichever holds the controller on this machine (cgroups(7)).
//
// In version 1 a group is made below Bawn's own group. In version 2 it is made
// below the nearest ancestor whose children may have controllers, because a
// group with processes in it can't pass controllers on. No process but the
// guest's is ever moved, and the guest moves itself: it writes "0" into each of
// [Group.ProcFiles] before it does anything else.
package cgroup

import (
	"errors"
	"fmt"
	"math"
	"strings"
)

// ErrUnsupported is returned by systems that have no control groups.
var ErrUnsupported = errors.New("control groups exist on Linux only")

// Limits are those of a group. A zero field states no limit; Limits without any
// limit are refused by New.
type Limits struct {
	MemoryMB  int64   // MiB of memory; swap counts as memory or is closed
	PIDs      int64   // processes and threads
	CPUShares int64   // weight against other groups, 2 to 262144; 1024 is everybody's
	CPUs      float64 // cores, at least 0.01
}

// The controllers' names as the kernel spells them.
const (
	memory = "memory"
	pids   = "pids"
	cpu    = "cpu"
)

// Limits of the values that can be written; larger ones would overflow the
// kernel's.
const (
	maxMemoryMB  = math.MaxInt64 >> 20
	maxPIDs      = 1 << 22 // PID_MAX_LIMIT
	minShares    = 2
	maxShares    = 1 << 18
	minCPUs      = 0.01
	maxCPUs      = 1 << 16
	bytesPerMB   = 1 << 20
	cfsPeriod    = 100_000 // µs, the kernel's default
	probeMemory  = 64      // MiB
	probePIDs    = 64
	probeCPUs    = 0.5
	maxNameBytes = 64
)

func (l Limits) check() error {
	switch {
	case l == Limits{}:
		return errors.New("no limit is stated; state one or use no group")
	case l.MemoryMB < 0 || l.MemoryMB > maxMemoryMB:
		return fmt.Errorf("memory limit %d MiB is out of range; use 1 to %d", l.MemoryMB, int64(maxMemoryMB))
	case l.PIDs < 0 || l.PIDs > maxPIDs:
		return fmt.Errorf("process limit %d is out of range; use 1 to %d", l.PIDs, maxPIDs)
	case l.CPUShares != 0 && (l.CPUShares < minShares || l.CPUShares > maxShares):
		return fmt.Errorf("cpu shares %d are out of range; use %d to %d", l.CPUShares, minShares, maxShares)
	case l.CPUs != 0 && !(l.CPUs >= minCPUs && l.CPUs <= maxCPUs):
		return fmt.Errorf("cpu limit %v is out of range; use %v to %d cores", l.CPUs, minCPUs, maxCPUs)
	}
	return nil
}

// controllers returns those that l needs.
func (l Limits) controllers() []string {
	var need []string
	if l.MemoryMB != 0 {
		need = append(need, memory)
	}
	if l.PIDs != 0 {
		need = append(need, pids)
	}
	if l.CPUShares != 0 || l.CPUs != 0 {
		need = append(need, cpu)
	}
	return need
}

// clamp returns l with every field at most o's, where o states it.
func (l Limits) clamp(o Limits) Limits {
	return Limits{
		MemoryMB:  lower(l.MemoryMB, o.MemoryMB),
		PIDs:      lower(l.PIDs, o.PIDs),
		CPUShares: lower(l.CPUShares, o.CPUShares),
		CPUs:      lower(l.CPUs, o.CPUs),
	}
}

// lower returns the smaller of two limits. Zero means no limit.
func lower[T int64 | float64](a, b T) T {
	if a == 0 || b == 0 {
		return a + b
	}
	return min(a, b)
}

// A Controller says whether one controller can be used here.
type Controller struct {
	Name    string // "memory", "pids" or "cpu"
	Version int    // 1 or 2; 0 where it can't be used
	Dir     string // where groups are made
	Partly  string // the resources that are not limited although the controller works
	Why     string // why not, where Version is 0
	Remedy  string // what to do about it
}

// Support is what [Probe] found out by trying.
type Support struct {
	Memory, PIDs, CPU Controller
}

// Unavailable is the error of limits that can't be enforced here. Callers may
// drop them (or set rlimits instead, where the policy accepts that) and call
// New again with the rest.
type Unavailable struct {
	Missing []Controller // never empty
}

func (u *Unavailable) Error() string {
	var b strings.Builder
	for i, c := range u.Missing {
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "no control group for %q: %s", c.Name, c.Why)
	}
	return b.String()
}

// Stats is a group's use of resources so far.
type Stats struct {
	MemoryFull  bool  // the group's own limit left no memory; told where a process was killed for that
	OOMKills    int64 // processes killed for want of memory, the group's or the machine's
	PIDsMaxHits int64 // forks refused, by the group's limit or one of a group around it
}
