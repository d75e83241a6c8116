package egressd

import (
	"fmt"
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
