package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// A place is a group below which a session's group can be made.
type place struct {
	version     int
	controllers []string // what it is for
	dir         string
	skipped     []string // version 2: our own group and its ancestors up to dir
}

// choose finds a place for every controller: one for each hierarchy.
func choose(trees []hierarchy, need []string) ([]place, []Controller) {
	var places []place
	var missing []Controller
	var unified []string
	var v2 *hierarchy
	for _, c := range need {
		h, err := find(trees, c)
		switch {
		case err != nil:
			missing = append(missing, unavailable(c, err))
		case h.version == 2:
			v2, unified = h, append(unified, c)
		default:
			places = addV1(places, h.own, c)
		}
	}
	if v2 == nil {
		return places, missing
	}
	p, err := chooseV2(v2, unified)
	if err != nil {
		return nil, append(missing, blame(v2, unified, err)...)
	}
	return append(places, p), missing
}

// addV1 puts a controller into the place of its hierarchy, which may be
// shared (cpu,cpuacct).
func addV1(places []place, dir, controller string) []place {
	for i := range places {
		if places[i].dir == dir {
			places[i].controllers = append(places[i].controllers, controller)
			return places
		}
	}
	return append(places, place{version: 1, controllers: []string{controller}, dir: dir})
}

// blame says which of several controllers version 2 has no place for: those
// without one alone, or all of them if only the combination has none.
func blame(h *hierarchy, need []string, err error) []Controller {
	var missing, all []Controller
	for _, c := range need {
		all = append(all, unavailable(c, err))
		if _, err := chooseV2(h, []string{c}); err != nil {
			missing = append(missing, unavailable(c, err))
		}
	}
	if missing == nil {
		return all
	}
	return missing
}

// chooseV2 walks from our own group upwards to the first whose children can
// have the controllers. It may switch controllers on there and never switches
// one off: another session may have come to rely on it.
func chooseV2(h *hierarchy, need []string) (place, error) {
	var why []error
	list := h.ancestors()
	for i, dir := range list {
		err := usable(dir, need)
		if err == nil {
			return place{version: 2, controllers: need, dir: dir, skipped: list[:i]}, nil
		}
		why = append(why, err)
	}
	// An error of our own group tells more than that others are not ours.
	i := slices.IndexFunc(why, func(err error) bool { return !errors.Is(err, unix.EACCES) && !errors.Is(err, unix.EPERM) })
	return place{}, why[max(i, 0)]
}

// errAbsent means that the group above has not passed a controller on.
var errAbsent = errors.New("group has no controller")

// usable reports why no group with the controllers can be made below dir, and
// enables them there where that is all that is missing.
func usable(dir string, need []string) error {
	// Moving a process needs write access to cgroup.procs of the common
	// ancestor of where it was and where it goes, which is dir.
	for _, name := range []string{dir, path.Join(dir, "cgroup.procs")} {
		if err := unix.Faccessat(unix.AT_FDCWD, name, unix.W_OK, unix.AT_EACCESS); err != nil {
			return fmt.Errorf("%q is not ours to write: %w", name, err)
		}
	}
	if err := empty(dir); err != nil {
		return err
	}
	enabled, err := words(path.Join(dir, "cgroup.subtree_control"))
	if err != nil {
		return err
	}
	lack := without(need, enabled)
	if len(lack) == 0 {
		return nil
	}
	there, err := words(path.Join(dir, "cgroup.controllers"))
	if err != nil {
		return err
	}
	if absent := without(lack, there); len(absent) != 0 {
		return fmt.Errorf("%q: %w %q", dir, errAbsent, absent)
	}
	return writeCgroup(path.Join(dir, "cgroup.subtree_control"), "+"+strings.Join(lack, " +"))
}

// empty reports that dir has processes in it, which only the root may have
// beside children with controllers. The kernel refuses that (EBUSY) for memory
// only. Enabling cpu or pids would succeed and turn dir into the root of a
// threaded tree, whose children no process can join.
func empty(dir string) error {
	if _, err := os.Stat(path.Join(dir, "cgroup.type")); errors.Is(err, unix.ENOENT) {
		return nil // only the root has no type
	}
	processes, err := words(path.Join(dir, "cgroup.procs"))
	if err == nil && len(processes) != 0 {
		err = fmt.Errorf("%q has processes in it, so its children can't have controllers: %w", dir, unix.EBUSY)
	}
	return err
}

func words(name string) ([]string, error) {
	b, err := ReadFile(name)
	return strings.Fields(b), err
}

func without(list, remove []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(remove, s) })
}

// bounds returns the limits which the guest would escape by not being below
// our own group, or which its own may not exceed.
func (p place) bounds() (Limits, error) {
	if p.version == 1 {
		return quotaAbove(p)
	}
	var all Limits
	for _, dir := range p.skipped {
		l, err := readV2(dir)
		if err != nil {
			return Limits{}, err
		}
		all = all.clamp(l)
	}
	return all, nil
}

// readV2 reads the limits of one group, of the controllers that it has.
func readV2(dir string) (Limits, error) {
	var l Limits
	bytes, err1 := limitFile(path.Join(dir, "memory.max"), parseMax)
	number, err2 := limitFile(path.Join(dir, "pids.max"), parseMax)
	cores, err3 := limitFile(path.Join(dir, "cpu.max"), parseCPUMax)
	l.MemoryMB = (bytes + bytesPerMB - 1) / bytesPerMB
	l.PIDs = number
	if cores != 0 {
		l.CPUs = max(cores, minCPUs)
	}
	return l, errors.Join(err1, err2, err3)
}

// quotaAbove reads the processor quota of our own group: in version 1 a
// child's may not be larger (EINVAL).
func quotaAbove(p place) (Limits, error) {
	if !slices.Contains(p.controllers, cpu) {
		return Limits{}, nil
	}
	quota, err1 := limitFile(path.Join(p.dir, "cpu.cfs_quota_us"), parseMax)
	period, err2 := limitFile(path.Join(p.dir, "cpu.cfs_period_us"), parseMax)
	if err := errors.Join(err1, err2); err != nil || quota == 0 || period == 0 {
		return Limits{}, err
	}
	return Limits{CPUs: max(float64(quota)/float64(period), minCPUs)}, nil
}

// readV1 is readV2 for version 1.
func readV1(d dir) (Limits, error) {
	bytes, err1 := limitFile(path.Join(d.path, "memory.limit_in_bytes"), parseMax)
	number, err2 := limitFile(path.Join(d.path, "pids.max"), parseMax)
	l, err3 := quotaAbove(place{version: 1, controllers: d.has, dir: d.path})
	l.MemoryMB, l.PIDs = (bytes+bytesPerMB-1)/bytesPerMB, number
	return l, errors.Join(err1, err2, err3)
}

// limitFile reads one limit; an absent file states no limit.
func limitFile[T int64 | float64](name string, parse func(string) (T, error)) (T, error) {
	b, err := ReadFile(name)
	if errors.Is(err, unix.ENOENT) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	n, err := parse(b)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return n, nil
}

func (p place) unavailable(err error) []Controller {
	var list []Controller
	for _, c := range p.controllers {
		u := unavailable(c, err)
		if p.version == 1 {
			u.Remedy = remedyV1(err)
		}
		list = append(list, u)
	}
	return list
}

func unavailable(controller string, err error) Controller {
	return Controller{Name: controller, Why: err.Error(), Remedy: remedy(err)}
}

// remedyV1 is remedy where the controller is in version 1, of which systemd
// delegates nothing to ordinary users.
func remedyV1(err error) string {
	if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
		return "only root may make groups of version 1; boot with version 2: systemd.unified_cgroup_hierarchy=1 on the kernel's command line"
	}
	return remedy(err)
}

// remedy names the one thing that helps, where there is one.
func remedy(err error) string {
	switch {
	case errors.Is(err, unix.EROFS):
		return "give the container a writable control group tree, for example docker run --cgroupns=private with /sys/fs/cgroup mounted read-write"
	case errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM):
		return "run it in a delegated scope: systemd-run --user --scope -p Delegate=yes bawn run …"
	case errors.Is(err, errAbsent):
		return "delegate it: systemctl edit user@.service, [Service] Delegate=cpu cpuset io memory pids"
	case errors.Is(err, unix.EBUSY):
		return "start the service with DelegateSubgroup= (systemd 254) or move its processes into a group of their own"
	}
	return ""
}
