package inside

import (
	"errors"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/linux/rawproc"
	"github.com/bawn-dev/bawn/internal/sandbox/kernel"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// mount mounts the overlay, has it take the place of the directory, and leaves its parts
// nowhere in the tree. It does nothing for nil.
func (c *Copy) mount() error {
	if c == nil {
		return nil
	}
	s := kernel.NewSteps()
	s.Call("enter the layer", unix.SYS_CHDIR, layout.CopyPlace)
	s.Overlay(c.Target, layout.CopyLower)
	for _, m := range c.Mounts {
		s.Call("move "+m, unix.SYS_MOVE_MOUNT, unix.AT_FDCWD, m, unix.AT_FDCWD, layout.CopyLower+strings.TrimPrefix(m, c.Target), 0)
	}
	s.Call("move the copy to "+c.Target, unix.SYS_MOVE_MOUNT, unix.AT_FDCWD, layout.CopyLower, unix.AT_FDCWD, c.Target, 0)
	s.Call("leave the layer", unix.SYS_CHDIR, "/")
	s.Call("let go of the layer", unix.SYS_UMOUNT2, layout.CopyPlace, unix.MNT_DETACH)
	err := rawproc.Apart(&s.Program)
	var failed *rawproc.StepError
	if errors.As(err, &failed) {
		return step(failed.Step, failed.Errno)
	}
	return step("mount the copy", err)
}
