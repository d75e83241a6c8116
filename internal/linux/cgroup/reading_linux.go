package cgroup

import (
	"fmt"
	"slices"
)

// A Reading is the control groups of a process that somebody else has put
// there. It is only ever read.
type Reading struct {
	dirs   []dir
	limits Limits
}

// Of finds the groups of memory, processes and processor time that a process
// is in, which must be visible here.
func Of(pid int) (*Reading, error) {
	trees, err := treesOf(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return nil, err
	}
	r := &Reading{}
	for _, c := range []string{memory, pids, cpu} {
		h, err := find(trees, c)
		if err != nil {
			return nil, fmt.Errorf("control group %q of process %d: %w", c, pid, err)
		}
		r.add(h, c)
	}
	for _, d := range r.dirs {
		l, err := d.limits()
		if err != nil {
			return nil, err
		}
		r.limits = r.limits.clamp(l)
	}
	return r, nil
}

func (r *Reading) add(h *hierarchy, controller string) {
	i := slices.IndexFunc(r.dirs, func(d dir) bool { return d.path == h.own })
	if i < 0 {
		i = len(r.dirs)
		r.dirs = append(r.dirs, dir{version: h.version, path: h.own})
	}
	r.dirs[i].has = append(r.dirs[i].has, controller)
}

// limits reads what holds for one group itself.
func (d dir) limits() (Limits, error) {
	if d.version == 2 {
		return readV2(d.path)
	}
	return readV1(d)
}

// Limits are those of the groups themselves; there may be tighter ones around
// them.
func (r *Reading) Limits() Limits { return r.limits }

// Stats reads what was used.
func (r *Reading) Stats() (Stats, error) { return (&Group{dirs: r.dirs}).Stats() }
