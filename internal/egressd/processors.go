package egressd

import (
	"runtime"
	"runtime/debug"
)

// crowdGC is how much garbage may come together while many connections live, in
// per cent of the memory in use (GOGC, package runtime): 4 MiB are in use at
// least. It is collected when they have gone.
const crowdGC = 400

// oneProcessor leaves the relay one processor. The goroutines of a connection wait for
// each other. With more processors the runtime wakes a thread for each that could run,
// which costs more than most of them run. The kernel's own work (splice(2)) does not
// count.
func oneProcessor() {
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(100)
}

// crowd gives the relay all processors while many connections live, and takes
// fewer of them for collecting garbage.
func crowd(many bool) {
	if many {
		runtime.SetDefaultGOMAXPROCS()
		debug.SetGCPercent(crowdGC)
	} else {
		oneProcessor()
	}
}
