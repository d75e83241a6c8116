package dockerapi

import (
	"math"
	"strings"
	"sync"

	"github.com/bawn-dev/bawn"
)

// A share is what one container may use, and what all of them do.
type share struct {
	memory int64 // bytes
	nano   int64 // billionths of a processor
	pids   int64
}

// Bounds of what a container gets that states nothing: a part of what the
// session may use, so that several fit.
const (
	part       = 4
	leastBytes = 6 << 20 // what engines accept
	leastPIDs  = 8
	leastNano  = 10_000_000
	billion    = 1_000_000_000
	// maxContainers bounds containers that exist at a time.
	maxContainers = 64
	// What a session that states no limit gives to all of its containers.
	unstatedMemory = 8 << 30
	unstatedPIDs   = 8192
)

// A budget shares what a session may use among its containers.
type budget struct {
	mu    sync.Mutex
	total share // 0 processors: no bound
	used  share
	count int
}

// newBudget is that of a session with these limits.
func newBudget(r bawn.Resources) *budget {
	t := share{memory: r.MemoryMB << 20, pids: r.PIDs, nano: int64(r.CPUs * billion)}
	if t.memory <= 0 {
		t.memory = unstatedMemory
	}
	if t.pids <= 0 {
		t.pids = unstatedPIDs
	}
	return &budget{total: t}
}

// take reserves what is asked for, or a part where nothing is.
func (b *budget) take(ask share) (share, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.count >= maxContainers {
		return share{}, refuse(RuleLimit, "remove some", "%d containers of this session exist", b.count)
	}
	got := share{
		memory: fill(ask.memory, b.total.memory, b.total.memory-b.used.memory, leastBytes),
		pids:   fill(ask.pids, b.total.pids, b.total.pids-b.used.pids, leastPIDs),
		nano:   ask.nano,
	}
	if b.total.nano > 0 {
		got.nano = fill(ask.nano, b.total.nano, b.total.nano-b.used.nano, leastNano)
	}
	for _, l := range []struct {
		name             string
		got, used, total int64
		unit             string
		per              int64
	}{
		{"memory", got.memory, b.used.memory, b.total.memory, "MiB", 1 << 20},
		{"processes", got.pids, b.used.pids, b.total.pids, "", 1},
		{"processors", got.nano, b.used.nano, b.total.nano, "thousandths", billion / 1000},
	} {
		if l.total > 0 && l.got > l.total-l.used {
			return share{}, refuse(RuleLimit, "ask for less, remove other containers, or raise the session's limit (--memory, --pids, --cpus)",
				"the container would have %s of %s %s; of the session's %s, %s are other containers'",
				number(l.got/l.per), l.name, l.unit, number(l.total/l.per), number(l.used/l.per))
		}
	}
	b.used = share{b.used.memory + got.memory, b.used.nano + got.nano, b.used.pids + got.pids}
	b.count++
	return got, nil
}

// fill is what is asked for, or a part of the whole, less where less is left,
// but at least what is of use.
func fill(ask, total, left, least int64) int64 {
	if ask > 0 {
		return ask
	}
	return max(min(total/part, left), least)
}

// give returns what take gave.
func (b *budget) give(s share) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used = share{b.used.memory - s.memory, b.used.nano - s.nano, b.used.pids - s.pids}
	b.count--
}

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

// apply writes what the container got into what the engine is told.
func (s share) apply(h *hostBody) {
	h.Memory, h.MemorySwap, h.PidsLimit, h.NanoCpus = s.memory, s.memory, s.pids, s.nano
	if h.ShmSize > s.memory {
		h.ShmSize = s.memory
	}
}
