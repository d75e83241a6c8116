package kernel

import (
	"crypto/rand"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// OverlayStep begins the name of the step that mounts the overlay of a copy.
const OverlayStep = "mount overlay on "

// Overlay adds the steps that mount, on a place, an overlay of the workspace and a layer of
// the session's. Both lie below the working directory, which is the layer: no path of the
// host becomes part of the options. The overlay keeps what it needs, so that the layer can
// be nowhere in the guest's tree. "volatile" spares an fsync for each file that is changed
// first; such an overlay wants a work directory that none has had before.
func (c *Steps) Overlay(workspace, place string) {
	work := "work-" + strings.ToLower(rand.Text())
	c.Call("make the layer's work directory", unix.SYS_MKDIRAT, unix.AT_FDCWD, work, 0o700)
	c.Call(OverlayStep+workspace, unix.SYS_MOUNT, "overlay", place, "overlay", unix.MS_NOSUID|unix.MS_NODEV, "lowerdir="+layout.CopyLower+",upperdir=upper,workdir="+work+",userxattr,volatile")
}

// OverlayInPlace adds the steps that have such an overlay take the place of a workspace on
// which mounts lie, the outermost of which are named: they move onto the overlay. The parts
// are at layout.CopyPlace before, and nowhere in the tree after.
func (c *Steps) OverlayInPlace(workspace string, mounts []string) {
	c.Call("enter the layer", unix.SYS_CHDIR, layout.CopyPlace)
	c.Overlay(workspace, layout.CopyLower)
	for _, m := range mounts {
		c.Call("move "+m, unix.SYS_MOVE_MOUNT, unix.AT_FDCWD, m, unix.AT_FDCWD, layout.CopyLower+strings.TrimPrefix(m, workspace), 0)
	}
	c.Call("move the copy to "+workspace, unix.SYS_MOVE_MOUNT, unix.AT_FDCWD, layout.CopyLower, unix.AT_FDCWD, workspace, 0)
	c.Call("leave the layer", unix.SYS_CHDIR, "/")
	c.Call("let go of the layer", unix.SYS_UMOUNT2, layout.CopyPlace, unix.MNT_DETACH)
}

// OverlayRemedy says what to do where the kernel mounts no overlay.
func OverlayRemedy(errno syscall.Errno) string {
	const live = "; without --copy the session changes the workspace itself, and \"bawn undo\" takes it back"
	switch errno {
	case unix.EPERM, unix.ENODEV:
		return "this kernel mounts no overlay in a user namespace (Linux 5.11 or newer does, where no security module objects)" + live
	case unix.EINVAL:
		return "the workspace must hold no other file system, and that of Bawn's state directory (XDG_STATE_HOME) must have user.* attributes" + live
	}
	return "\"bawn doctor\" shows what this machine can enforce" + live
}
