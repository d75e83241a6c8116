package dockerapi

import (
	"math"
	"strings"
)

// setLimits takes the limits that are asked for.
func (w *wanted) setLimits(r *createRequest) error {
	h := &r.HostConfig
	pids := int64(0)
	if h.PidsLimit != nil {
		pids = *h.PidsLimit
	}
	for _, n := range []int64{h.Memory, h.NanoCpus, h.CPUShares, h.CPUPeriod, h.CPUQuota, h.ShmSize, h.MemoryReservation} {
		if n < 0 {
			return bad("a limit can't be negative")
		}
	}
	switch {
	case h.MemorySwappiness != nil && *h.MemorySwappiness != -1:
		return bad("HostConfig.MemorySwappiness is not served; leave it out")
	case h.MemorySwap > h.Memory && h.Memory > 0:
		return refuse(RuleLimit, "leave HostConfig.MemorySwap out", "swap beyond the memory's limit")
	}
	nano := h.NanoCpus
	if h.CPUQuota > 0 {
		period := h.CPUPeriod
		if period == 0 {
			period = 100_000 // the engine's, in microseconds
		}
		if period < 1000 || h.CPUQuota > math.MaxInt64/billion || nano > 0 {
			return bad("HostConfig.CPUPeriod and CpuQuota can't be had so; use NanoCpus")
		}
		nano = h.CPUQuota * billion / period
	}
	w.share = share{memory: h.Memory, nano: nano, pids: max(pids, 0)} // -1 is "unlimited": a part, then
	w.body.HostConfig.CPUShares = min(h.CPUShares, 1024)              // no more than others' default
	w.body.HostConfig.ShmSize = h.ShmSize
	return w.setUlimits(h.Ulimits)
}

// maxUlimit bounds what may be raised: the kernel's default for descriptors
// (fs.nr_open).
const maxUlimit = 1 << 20

func (w *wanted) setUlimits(list []ulimit) error {
	seen := map[string]bool{}
	for _, u := range list {
		if !oneOf(u.Name, "nofile", "core", "stack", "fsize", "cpu", "nproc") || seen[u.Name] {
			return refuse(RuleLimit, "leave it out", "the ulimit %.50q, or there are two", u.Name)
		}
		seen[u.Name] = true
		if strings.HasPrefix(u.Name, "n") && (u.Soft < 0 || u.Hard < 0 || u.Hard > maxUlimit) {
			return refuse(RuleLimit, "", "the ulimit %q can be %d at most", u.Name, maxUlimit)
		}
	}
	w.body.HostConfig.Ulimits = list
	return nil
}
