package bwrap

import (
	"fmt"
	"os"
	"path"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/linux/rawproc"
	"github.com/bawn-dev/bawn/internal/sandbox/kernel"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// settle does to the guest's mounts what bwrap can't or does not do. It makes
// them private: bwrap lets the host's later mounts in, writable ones too. It sets
// their flags as a whole: bwrap sets them one by one, by path, and leaves out
// what comes meanwhile and what it can't reach. And it mounts pseudo-terminals of
// the guest's own. It also lets the guest bind every port of its own network. first is
// the sandbox's first process, which the caller keeps from being another one. What enters the guest's namespaces for that is no program, and
// gone before any command runs.
func (p *Plan) settle(mounts *os.File, first int) error {
	user, err := unix.IoctlRetInt(int(mounts.Fd()), unix.NS_GET_USERNS)
	if err != nil {
		return fmt.Errorf("find the guest's user namespace: %w", err)
	}
	defer unix.Close(user)
	s := &settler{kernel.NewSteps()}
	s.Call("enter the guest's user namespace", unix.SYS_SETNS, user, unix.CLONE_NEWUSER)
	if net, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", first)); err == nil && p.Loopback {
		defer net.Close()
		s.Call("enter the guest's network namespace", unix.SYS_SETNS, int(net.Fd()), unix.CLONE_NEWNET)
		s.AnyPort() // by the host's /proc, before the guest's, which nobody writes
	}
	s.Call("enter the guest's mount namespace", unix.SYS_SETNS, int(mounts.Fd()), unix.CLONE_NEWNS)
	s.attr("/", unix.AT_RECURSIVE, unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV, Propagation: unix.MS_PRIVATE})
	for _, m := range p.Mounts {
		s.mount(m)
	}
	s.Call("mount devpts on /dev/pts", unix.SYS_MOUNT, "devpts", "/dev/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620")
	return rawproc.Apart(&s.Program)
}

// settler collects the calls.
type settler struct{ kernel.Steps }

// mount opens the writable places, and closes the narrower ones in them again.
func (s *settler) mount(m layout.Mount) {
	switch m.Kind {
	case layout.KindBind, layout.KindPool:
		s.writable(m.Target, 0)
		s.writable(m.Target, unix.AT_RECURSIVE)
	case layout.KindTmpfs, layout.KindCopy:
		s.writable(m.Target, 0)
	case layout.KindBindRO, layout.KindHide, layout.KindHideDir:
		s.attr(m.Target, unix.AT_RECURSIVE, unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	case layout.KindDev:
		s.writable(path.Join(m.Target, "shm"), 0)
		for _, d := range m.Devices {
			s.attr(path.Join(m.Target, d), unix.AT_RECURSIVE, unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NODEV})
		}
	}
}

// writable does nothing where the host's own mount is read-only, or one below it
// if flags say AT_RECURSIVE: nobody in a user namespace may change that.
func (s *settler) writable(target string, flags int) {
	s.attr(target, flags, unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}).Ignoring(unix.EPERM)
}

// attr changes flags of the mount at a place, where nothing follows a link
// (mount_setattr(2)).
func (s *settler) attr(target string, flags int, attr unix.MountAttr) rawproc.Step {
	return s.Call("set flags of "+target, unix.SYS_MOUNT_SETATTR, unix.AT_FDCWD, target, unix.AT_SYMLINK_NOFOLLOW|flags,
		rawproc.Put(&s.Program, attr), int(unsafe.Sizeof(attr)))
}
