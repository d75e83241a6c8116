package session

import "github.com/bawn-dev/bawn"

// usualShares is the default weight of a group (cgroups v1).
const usualShares = 1024

// meetResources returns the stricter of each limit. Zero states none.
func meetResources(a, b bawn.Resources) bawn.Resources {
	return bawn.Resources{
		CPUShares:  meetShares(a.CPUShares, b.CPUShares),
		CPUs:       lower(a.CPUs, b.CPUs),
		MemoryMB:   lower(a.MemoryMB, b.MemoryMB),
		TmpMB:      lower(a.TmpMB, b.TmpMB),
		PIDs:       lower(a.PIDs, b.PIDs),
		OpenFiles:  lower(a.OpenFiles, b.OpenFiles),
		FileSizeMB: lower(a.FileSizeMB, b.FileSizeMB),
		Timeout:    lower(a.Timeout, b.Timeout),
	}
}

// lower returns the lower limit. Zero means no limit.
func lower[T ~int64 | ~float64](a, b T) T {
	if a == 0 || b == 0 {
		return a + b
	}
	return min(a, b)
}

// meetShares respects that the default weight is not the largest. A weight that
// is the default is left out.
func meetShares(a, b int64) int64 {
	weight := func(n int64) int64 {
		if n == 0 {
			return usualShares
		}
		return n
	}
	n := min(weight(a), weight(b))
	if n == usualShares {
		return 0
	}
	return n
}
