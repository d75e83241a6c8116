package gitstore

import (
	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/sandbox"
)

// sameEntry reports whether the mount point of a repository is unchanged.
func sameEntry(n sandbox.PoolEntry) bool {
	var st unix.Statx_t
	if unix.Statx(unix.AT_FDCWD, n.Path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &st) != nil {
		return false
	}
	born := n.BornSec == 0 || st.Btime.Sec == n.BornSec && int64(st.Btime.Nsec) == n.BornNsec
	return born && st.Ino == n.Ino && unix.Mkdev(st.Dev_major, st.Dev_minor) == n.Dev
}
