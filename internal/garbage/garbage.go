// Package garbage gives memory back that a process has used for its start and does not
// need while it waits.
package garbage

import (
	"runtime"
	"runtime/debug"
)

// worth is how many bytes a heap has before it is collected for a process that waits.
// A first collection makes lists of Go's runtime, of which each takes a page or two:
// half a MiB in all. And from then on the runtime collects every two minutes, whether
// the process has done anything or not.
const worth = 5 << 19

// Release collects a heap that is large enough, and gives the memory back.
func Release() {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if m.NumGC > 0 || m.HeapAlloc >= worth {
		debug.FreeOSMemory()
	}
}
