package supervise

import (
	"sync"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// gitMounts are the mounts of private git directories in a guest, by their mount
// IDs. Files on one of them are the guest's own: no program of the host reads
// them, so no rule on names holds there. The ID decides, not the path: if a host
// program moves or removes the directory below, the mount goes with it, and
// another directory may get the path.
type gitMounts struct {
	lock sync.Mutex
	ids  map[uint64]bool
}

// newGitMounts finds the mounts of the plan in the guest's tree. A mount that
// does not match the plan stays under the rules.
func newGitMounts(root int, mounts []layout.Mount) *gitMounts {
	g := &gitMounts{ids: map[uint64]bool{}}
	for _, m := range mounts {
		if m.Why != layout.WhyPrivateGit {
			continue
		}
		st, err := mountOf(root, "."+m.Target)
		if err == nil && (layout.Identity{Dev: unix.Mkdev(st.Dev_major, st.Dev_minor), Ino: st.Ino}) == m.ID {
			g.ids[st.Mnt_id] = true
		}
	}
	return g
}

func (g *gitMounts) add(id uint64) {
	g.lock.Lock()
	defer g.lock.Unlock()
	g.ids[id] = true
}

func (g *gitMounts) drop(id uint64) {
	g.lock.Lock()
	defer g.lock.Unlock()
	delete(g.ids, id)
}

// knows reports whether a mount is one of them.
func (g *gitMounts) knows(id uint64) bool {
	g.lock.Lock()
	defer g.lock.Unlock()
	return g.ids[id]
}

// holds reports whether an open file lies on such a mount.
func (g *gitMounts) holds(fd int) bool { return g.has(fd, "") }

// isRoot reports whether such a mount lies at a place outside of one.
func (g *gitMounts) isRoot(p place) bool { return g.has(p.dir, p.name) && !g.holds(p.dir) }

func (g *gitMounts) has(fd int, name string) bool {
	g.lock.Lock()
	defer g.lock.Unlock()
	if len(g.ids) == 0 {
		return false
	}
	st, err := mountOf(fd, name)
	return err == nil && g.ids[st.Mnt_id]
}

// mountOf looks at what an open directory holds under name, or at itself if that
// is "". It returns the ID of the mount, which no later mount gets since Linux
// 6.8.
func mountOf(fd int, name string) (st unix.Statx_t, err error) {
	for _, mask := range []int{unix.STATX_MNT_ID_UNIQUE, unix.STATX_MNT_ID} {
		err = unix.Statx(fd, name, unix.AT_EMPTY_PATH|unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, unix.STATX_BASIC_STATS|unix.STATX_BTIME|mask, &st)
		if err != nil || st.Mask&uint32(mask) != 0 {
			return st, err
		}
	}
	return st, unix.ENOSYS
}
