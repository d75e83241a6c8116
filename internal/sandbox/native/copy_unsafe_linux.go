package native

import (
	"crypto/rand"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/linux/rawproc"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// copyStep begins the name of the step that mounts the overlay.
const copyStep = "mount overlay on "

// assembled is where the parts of an overlay are while it is mounted.
const assembled = "/dev/shm"

// copied mounts an overlay of the workspace and a layer of the session's. Both are
// pinned before, and found by names of our own below the working directory: no path of
// the host becomes part of the options. The overlay keeps what it needs, so that the
// layer is nowhere in the guest's tree. "volatile" spares an fsync for each file that is
// changed first; such an overlay wants a work directory that none has had before.
func (c *program) copied(m layout.Mount) {
	if c.taken != nil {
		c.take(m)
		return
	}
	layer := layout.Mount{Kind: layout.KindPool, Source: m.Layer, Target: assembled, ID: m.LayerID()}
	c.bind(layer)
	c.Call("enter the layer", unix.SYS_CHDIR, at(assembled))
	lower := m
	lower.Kind, lower.Target = layout.KindBindRO, assembled+"/lower"
	c.bind(lower)
	work := "work-" + strings.ToLower(rand.Text())
	c.Call("make the layer's work directory", unix.SYS_MKDIRAT, unix.AT_FDCWD, work, 0o700)
	c.Call(copyStep+m.Target, unix.SYS_MOUNT, "overlay", at(m.Target), "overlay", unix.MS_NOSUID|unix.MS_NODEV, "lowerdir=lower,upperdir=upper,workdir="+work+",userxattr,volatile")
	c.Call("leave the layer", unix.SYS_CHDIR, "/")
	c.Call("let go of the layer", unix.SYS_UMOUNT2, at(assembled), unix.MNT_DETACH)
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

// copyRemedy says what to do where the kernel mounts no overlay.
func copyRemedy(step *rawproc.StepError) string {
	const live = "; without --copy the session changes the workspace itself, and \"bawn undo\" takes it back"
	switch step.Errno {
	case unix.EPERM, unix.ENODEV:
		return "this kernel mounts no overlay in a user namespace (Linux 5.11 or newer does, where no security module objects)" + live
	case unix.EINVAL:
		return "the workspace must hold no other file system, and that of Bawn's state directory (XDG_STATE_HOME) must have user.* attributes" + live
	}
	return "\"bawn doctor\" shows what this machine can enforce" + live
}
