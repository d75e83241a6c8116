package cgroup

import (
	"errors"
	"os"
	"path"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// probing is held by one probe at a time: all use one group's name.
var probing sync.Mutex

// Probe tries each controller for real: it makes a group, sets a limit and
// removes the group again. It moves no process. In version 2 it may leave a
// controller enabled in an ancestor's cgroup.subtree_control, as New does.
func Probe() Support {
	probing.Lock()
	defer probing.Unlock()
	return Support{
		Memory: try(memory, Limits{MemoryMB: probeMemory}),
		PIDs:   try(pids, Limits{PIDs: probePIDs}),
		CPU:    try(cpu, Limits{CPUs: probeCPUs, CPUShares: minShares}),
	}
}

func try(controller string, l Limits) Controller {
	g, err := New("probe", l)
	if err != nil {
		var u *Unavailable
		if errors.As(err, &u) {
			return u.Missing[0]
		}
		return unavailable(controller, err)
	}
	d := g.dirs[slices.IndexFunc(g.dirs, func(d dir) bool { return slices.Contains(d.has, controller) })]
	c := Controller{Name: controller, Version: d.version, Dir: path.Dir(d.path)}
	if controller == memory {
		c.Partly, c.Remedy = d.swapGap()
	}
	if err := g.Remove(); err != nil {
		return unavailable(controller, err)
	}
	return c
}

// swapGap says that a guest may go on in swap, where the kernel doesn't count
// swap and the machine has some.
func (d dir) swapGap() (gap, remedy string) {
	if _, err := os.Stat(path.Join(d.path, swapFiles[d.version])); err == nil {
		return "", ""
	}
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err == nil && info.Totalswap == 0 {
		return "", ""
	}
	return "swap is not limited", "boot with swapaccount=1, or swapoff -a"
}
