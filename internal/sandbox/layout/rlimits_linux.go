package layout

import (
	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/linux/landlock"
)

// A Rlimit is one limit of every process of a guest, soft and hard
// (getrlimit(2)).
type Rlimit struct {
	Name     string // what an error will show
	Resource int    // RLIMIT_…
	Value    uint64
}

// Rlimits express resources as rlimits, with no core dumps: never above the
// caller's own.
func Rlimits(r bawn.Resources) []Rlimit {
	list := []Rlimit{{"core size", unix.RLIMIT_CORE, 0}}
	for _, l := range []struct {
		name     string
		resource int
		value    int64
		shift    uint
	}{
		{"open files", unix.RLIMIT_NOFILE, r.OpenFiles, 0}, {"file size", unix.RLIMIT_FSIZE, r.FileSizeMB, 20},
		{"processes", unix.RLIMIT_NPROC, r.PIDs, 0}, {"data", unix.RLIMIT_DATA, r.MemoryMB, 20},
	} {
		if l.value <= 0 {
			continue
		}
		list = append(list, Rlimit{l.name, l.resource, atMost(l.resource, uint64(l.value)<<l.shift)})
	}
	return list
}

// Pending bounds the signals that wait, which gVisor has no limit for.
func Pending() Rlimit {
	return Rlimit{"pending signals", unix.RLIMIT_SIGPENDING, atMost(unix.RLIMIT_SIGPENDING, maxPending)}
}

// maxPending is how many signals may wait for a guest's processes. The kernel
// counts them for the user, whose other programs could have none and no timer
// while a guest had taken all (getrlimit(2), RLIMIT_SIGPENDING).
const maxPending = 4096

// atMost is n, or the caller's own limit if that is lower.
func atMost(resource int, n uint64) uint64 {
	var have unix.Rlimit
	if unix.Getrlimit(resource, &have) == nil {
		n = min(n, have.Max)
	}
	return n
}

// A LandlockRule grants rights below a path (landlock(7)).
type LandlockRule struct {
	Path   string
	Rights uint64 // LANDLOCK_ACCESS_FS_…; bits that the ABI does not know must be left out
}

// Rules are the grants of a ruleset that handles every right of the file
// system. On a path that is no directory only landlock.FileRights may be
// granted.
func (l Landlock) Rules() []LandlockRule {
	root := uint64(landlock.ReadOnly)
	if l.Readable != nil {
		root = landlock.ReadDir
	}
	list := []LandlockRule{{"/", root}}
	for _, p := range l.Readable {
		list = append(list, LandlockRule{p, landlock.ReadOnly})
	}
	for _, p := range l.Writable {
		list = append(list, LandlockRule{p, ^uint64(0)})
	}
	return list
}
