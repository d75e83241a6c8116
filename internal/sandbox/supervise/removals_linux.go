package supervise

import (
	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// remove carries out unlink(2), unlinkat(2) and rmdir(2).
func (c *call) remove(dirfd int32, addr uint64, flags int) error {
	if c.fastRemove(dirfd, addr, flags) {
		return nil
	}
	p, err := c.placeOf(dirfd, addr)
	if err != nil {
		return named(err, map[bool]unix.Errno{true: unix.EINVAL, false: unix.EISDIR}[flags&unix.AT_REMOVEDIR != 0])
	}
	defer p.close()
	st, err := mountOf(p.dir, p.name)
	if err != nil {
		return err
	}
	if isDir := st.Mode&unix.S_IFMT == unix.S_IFDIR; p.slash && !isDir {
		return unix.ENOTDIR
	}
	if st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0 {
		return c.removeMount(p, flags)
	}
	if !c.s.git.knows(st.Mnt_id) { // it lies on the mount of its directory
		if v := c.rule(layout.OpRemove, p, flags&unix.AT_REMOVEDIR != 0); v.ruling != layout.RulingAllow {
			return c.denied(layout.OpRemove, p.abs, v.rule)
		}
	}
	if err := unix.Unlinkat(p.dir, p.name, flags); err != nil {
		return c.tell(p, err)
	}
	c.s.removed(&st, flags)
	return nil
}

// removed forgets a file whose only name is gone.
func (s *supervisor) removed(st *unix.Statx_t, flags int) {
	if st.Nlink <= 1 || flags&unix.AT_REMOVEDIR != 0 {
		s.forget(idOf(st))
	}
}

// removeMount is remove for a place on which something is mounted. The kernel keeps it
// only for processes of the same mount namespace, of which this one is not.
func (c *call) removeMount(p place, flags int) error {
	if c.s.git.isRoot(p) {
		if ours, err := c.removeGit(p, flags); ours {
			return err
		}
		return unix.EBUSY
	}
	if v := c.ruleAt(layout.OpRemove, p, flags&unix.AT_REMOVEDIR != 0); v.ruling != layout.RulingAllow {
		return c.denied(layout.OpRemove, p.abs, v.rule)
	}
	return unix.EBUSY
}

// forget drops what no name leads to any more.
func (s *supervisor) forget(id fileID) {
	delete(s.sockets.bound, id)
	delete(s.linked, id)
}
