package gvisor

import (
	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/linux/rawproc"
	"github.com/bawn-dev/bawn/internal/sandbox/kernel"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// overlay mounts an overlay of the host's kernel, of a workspace and a layer. gVisor's own
// would keep what is written in a file of its own form.
func (t *tree) overlay(to string) error {
	defer unix.Close(t.fd)
	defer unix.Close(t.layer)
	s := kernel.NewSteps()
	s.Call("show the layer", unix.SYS_MOVE_MOUNT, t.layer, "", unix.AT_FDCWD, copyAt, unix.MOVE_MOUNT_F_EMPTY_PATH)
	s.Call("enter the layer", unix.SYS_CHDIR, copyAt)
	s.Call("show the workspace", unix.SYS_MOVE_MOUNT, t.fd, "", unix.AT_FDCWD, layout.CopyLower, unix.MOVE_MOUNT_F_EMPTY_PATH)
	s.Overlay(t.Target, to)
	s.Call("leave the layer", unix.SYS_CHDIR, "/")
	s.Call("let go of the layer", unix.SYS_UMOUNT2, copyAt, unix.MNT_DETACH)
	return rawproc.Apart(&s.Program)
}
