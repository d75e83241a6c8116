package egressd

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// maxMemory is how many bytes the process may allocate for all that a guest sends and
// receives. Each kind of connection has limits of its own, far below. A guest that finds
// a way around them ends its own network, and not the machine's other programs.
const maxMemory = 2 << 30

// boundMemory has the kernel refuse the process more than most bytes, whereupon Go's
// runtime ends it (RLIMIT_DATA, getrlimit(2)). At half of that it collects
// garbage as often as it must.
func boundMemory(most uint64) error {
	debug.SetMemoryLimit(min(int64(most/2), debug.SetMemoryLimit(-1)))
	var limit unix.Rlimit
	err := unix.Getrlimit(unix.RLIMIT_DATA, &limit)
	if err == nil {
		limit.Cur = min(limit.Cur, most)
		err = unix.Setrlimit(unix.RLIMIT_DATA, &limit)
	}
	if err != nil {
		return fmt.Errorf("bound the memory of the network process: %w", err)
	}
	return nil
}

// worth is how many bytes a heap has before it is collected for a process that waits.
// A first collection makes lists of Go's runtime, of which each takes a page or two:
// half a MiB in all. And from then on the runtime collects every two minutes, whether
// the process has done anything or not.
const worth = 5 << 19

// releaseMemory gives memory back that the start has used, if it is much.
func releaseMemory() {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if m.NumGC > 0 || m.HeapAlloc >= worth {
		debug.FreeOSMemory()
	}
}
