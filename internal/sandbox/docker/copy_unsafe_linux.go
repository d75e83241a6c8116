package docker

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/linux/rawproc"
	"github.com/bawn-dev/bawn/internal/sandbox/kernel"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// copied mounts the overlay of a session on a copy in the container's mount namespace,
// where it ends with the container: nothing is mounted on the host, and nothing is left
// there if this process is killed. The container's first process waits meanwhile for what
// it is to do. What enters its namespace for that is no program, and gone before any
// command runs.
func (s *session) copied() error {
	m, inner := layout.CopyIn(slices.Concat(s.plan.Inside.Mounts, s.plan.pins))
	if m == nil {
		return nil
	}
	ns, err := os.Open(fmt.Sprintf("/proc/%d/ns/mnt", s.pid))
	if err != nil {
		return fmt.Errorf("open the container's mount namespace: %w", err)
	}
	defer ns.Close()
	if unix.PidfdSendSignal(s.pidfd, 0, nil, 0) != nil { // its number may be another one's by now
		return &EndedError{"it has gone"}
	}
	c := &copier{Steps: kernel.NewSteps()}
	layer, lower := c.NewSlot(), c.NewSlot()
	c.clone(m.Layer, layer, m.LayerID(), 0)
	c.clone(m.Source, lower, m.ID, unix.MOUNT_ATTR_RDONLY)
	c.Call("enter the container's mount namespace", unix.SYS_SETNS, int(ns.Fd()), unix.CLONE_NEWNS)
	c.attach(layer, layout.CopyPlace)
	c.attach(lower, layout.CopyPlace+"/"+layout.CopyLower)
	c.OverlayInPlace(m.Target, inner)
	err = rawproc.Apart(&c.Program)
	if step := new(rawproc.StepError); errors.As(err, &step) && strings.HasPrefix(step.Step, kernel.OverlayStep) {
		return &kernel.StartError{Err: err, Remedy: kernel.OverlayRemedy(step.Errno)}
	}
	return err
}

// A copier collects the calls.
type copier struct{ kernel.Steps }

// clone opens a part of the host's tree for a mount elsewhere, if it is the planned one.
func (c *copier) clone(path string, fd rawproc.Slot, id layout.Identity, flags uint64) {
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | flags, Propagation: unix.MS_PRIVATE}
	c.Call("clone "+path, unix.SYS_OPEN_TREE, unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_SYMLINK_NOFOLLOW).Into(fd)
	c.ExpectIdentity("find the same "+path+" as before", fd, rawproc.Identity(id))
	c.Call("set flags of "+path, unix.SYS_MOUNT_SETATTR, fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, rawproc.Put(&c.Program, attr), int(unsafe.Sizeof(attr)))
}

func (c *copier) attach(fd rawproc.Slot, target string) {
	c.Call("attach "+target, unix.SYS_MOVE_MOUNT, fd, "", unix.AT_FDCWD, target, unix.MOVE_MOUNT_F_EMPTY_PATH)
}
