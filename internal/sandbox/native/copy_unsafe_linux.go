package native

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/linux/rawproc"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// copied mounts an overlay of the workspace and a layer of the session's. Both are
// pinned before.
func (c *program) copied(m layout.Mount) {
	if c.taken != nil {
		c.take(m)
		return
	}
	layer := layout.Mount{Kind: layout.KindPool, Source: m.Layer, Target: layout.CopyPlace, ID: m.LayerID()}
	c.bind(layer)
	c.Call("enter the layer", unix.SYS_CHDIR, at(layout.CopyPlace))
	lower := m
	lower.Kind, lower.Target = layout.KindBindRO, layout.CopyPlace+"/"+layout.CopyLower
	c.bind(lower)
	c.Overlay(m.Target, at(m.Target))
	c.Call("leave the layer", unix.SYS_CHDIR, "/")
	c.Call("let go of the layer", unix.SYS_UMOUNT2, at(layout.CopyPlace), unix.MNT_DETACH)
}

// A takenCopy is the mount of another sandbox, and the gate with which it comes. Without
// one the mount is nil.
type takenCopy struct {
	mount *os.File
	gate  rawproc.Gate
}

// awaitCopy waits for the mount of the copy where another sandbox of the session has made
// it.
func (c *program) awaitCopy(s *sandbox.SharedCopy) (t takenCopy, err error) {
	if s == nil {
		return t, nil
	}
	if t.mount, err = s.Mount(); err == nil && t.mount != nil {
		slot := c.NewSlot()
		c.taken, t.gate = &slot, c.Await("wait for the copy", slot)
	}
	return t, err
}

// give clones the mount of a copy, with nothing of what is mounted in it later, for another
// sandbox of the session.
func (c *program) give(m layout.Mount) {
	mount := c.NewSlot()
	c.Call("clone the copy", unix.SYS_OPEN_TREE, unix.AT_FDCWD, at(m.Target), unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_SYMLINK_NOFOLLOW).Into(mount)
	c.copies = []rawproc.Slot{mount}
}

// take attaches what another sandbox of the session gave.
func (c *program) take(m layout.Mount) {
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV, Propagation: unix.MS_PRIVATE}
	if m.ReadOnly {
		attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	c.Call("set flags of the copy", unix.SYS_MOUNT_SETATTR, *c.taken, "", unix.AT_EMPTY_PATH, rawproc.Put(&c.Program, attr), int(unsafe.Sizeof(attr)))
	c.Call("attach the copy", unix.SYS_MOVE_MOUNT, *c.taken, "", unix.AT_FDCWD, at(m.Target), unix.MOVE_MOUNT_F_EMPTY_PATH)
	c.Call("close the copy", unix.SYS_CLOSE, *c.taken)
}
