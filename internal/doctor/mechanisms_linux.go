package doctor

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/linux/landlock"
	"github.com/bawn-dev/bawn/internal/linux/rawproc"
	"github.com/bawn-dev/bawn/internal/sandbox/native"
)

// Examine tries everything. It changes nothing that lasts.
func Examine() Report {
	var u unix.Utsname
	_ = unix.Uname(&u) // EFAULT only
	r := Report{
		System: "Linux " + unix.ByteSliceToString(u.Release[:]) + " " + unix.ByteSliceToString(u.Machine[:]),
		User:   fmt.Sprintf("uid %d", os.Geteuid()),
		Checks: []Check{userNamespace(), namespaces(), mounts(), procfs(), sysfs(), devpts(), landlockABI(), notifications()},
	}
	r.Checks = append(r.Checks, devices()...)
	r.Checks = append(r.Checks, whole())
	p := native.New("")
	r.Provider, r.Capabilities = p.Name(), p.Capabilities()
	return r
}

// try runs a program in fresh namespaces and ends it.
func try(flags uintptr, add func(*rawproc.Program)) error {
	p := &rawproc.Program{}
	uid, gid := os.Geteuid(), os.Getegid()
	writeFile(p, "setgroups", "deny")
	writeFile(p, "uid_map", fmt.Sprintf("%d %d 1", uid, uid))
	writeFile(p, "gid_map", fmt.Sprintf("%d %d 1", gid, gid))
	if add != nil {
		add(p)
	}
	in, err := rawproc.Start(rawproc.Config{Namespaces: unix.CLONE_NEWUSER | flags, Program: p})
	if err != nil {
		return err
	}
	in.Kill()
	return nil
}

func writeFile(p *rawproc.Program, name, text string) {
	fd := rawproc.Slot(0)
	if p.Len() == 0 {
		fd = p.NewSlot()
	}
	file := "/proc/self/" + name
	p.Call("open "+file, unix.SYS_OPENAT, unix.AT_FDCWD, file, unix.O_WRONLY|unix.O_CLOEXEC).Into(fd)
	p.Call("write "+file, unix.SYS_WRITE, fd, []byte(text), len(text))
	p.Call("close "+file, unix.SYS_CLOSE, fd)
}

// check turns the outcome of a trial into a line of the report.
func check(name string, err error, good, remedy string) Check {
	if err != nil {
		return Check{Name: name, Needed: true, Detail: err.Error(), Remedy: remedy}
	}
	return Check{Name: name, Needed: true, OK: true, Detail: good}
}

func userNamespace() Check {
	return check("user namespace", try(0, nil), "created and mapped", native.UsernsRemedy())
}

// namespaces tries each kind by itself, so that the missing one is named.
func namespaces() Check {
	kinds := []struct {
		name string
		flag uintptr
	}{
		{"mount", unix.CLONE_NEWNS}, {"pid", unix.CLONE_NEWPID}, {"net", unix.CLONE_NEWNET}, {"ipc", unix.CLONE_NEWIPC},
		{"uts", unix.CLONE_NEWUTS}, {"cgroup", unix.CLONE_NEWCGROUP},
	}
	var missing []error
	var have []string
	for _, k := range kinds {
		if err := try(k.flag, nil); err != nil {
			missing = append(missing, fmt.Errorf("%s: %w", k.name, err))
		} else {
			have = append(have, k.name)
		}
	}
	return check("other namespaces", errors.Join(missing...), strings.Join(have, ", "), native.UsernsRemedy())
}

// mounts tries the calls by which the guest's root is built.
func mounts() Check {
	err := try(unix.CLONE_NEWNS|unix.CLONE_NEWPID, func(p *rawproc.Program) {
		fd := p.NewSlot()
		attr := mountAttr(p, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID)
		p.Call("clone / (open_tree)", unix.SYS_OPEN_TREE, unix.AT_FDCWD, "/", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE).Into(fd)
		p.Call("make it read-only (mount_setattr)", unix.SYS_MOUNT_SETATTR, fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, attr, int(sizeofMountAttr))
		p.Call("attach it (move_mount)", unix.SYS_MOVE_MOUNT, fd, "", unix.AT_FDCWD, "/proc", unix.MOVE_MOUNT_F_EMPTY_PATH)
		p.Call("mount tmpfs", unix.SYS_MOUNT, "tmpfs", "/proc/tmp", "tmpfs", 0, "size=1m")
		p.Call("enter it", unix.SYS_CHDIR, "/proc")
		p.Call("pivot_root", unix.SYS_PIVOT_ROOT, ".", ".")
	})
	return check("mounts", err, "cloned, read-only, pivoted", "Linux 5.12 or newer is needed; inside a container it needs the mount calls (docker run --security-opt seccomp=unconfined)")
}

func procfs() Check {
	err := try(unix.CLONE_NEWNS|unix.CLONE_NEWPID, func(p *rawproc.Program) {
		p.Call("mount proc", unix.SYS_MOUNT, "proc", "/proc", "proc", unix.MS_RDONLY, "")
	})
	return check("/proc of its own", err, "mounted", "inside a container, start it with an unmasked /proc (docker run --security-opt systempaths=unconfined)")
}

func sysfs() Check {
	err := try(unix.CLONE_NEWNS|unix.CLONE_NEWNET, func(p *rawproc.Program) {
		p.Call("mount sysfs", unix.SYS_MOUNT, "sysfs", "/sys", "sysfs", unix.MS_RDONLY, "")
	})
	return check("/sys of its own", err, "mounted", "inside a container, start it with an unmasked /sys (docker run --security-opt systempaths=unconfined)")
}

func devpts() Check {
	err := try(unix.CLONE_NEWNS, func(p *rawproc.Program) {
		p.Call("mount devpts", unix.SYS_MOUNT, "devpts", "/dev", "devpts", 0, "newinstance,ptmxmode=0666")
	})
	return check("terminals of its own", err, "devpts mounted", "the kernel needs CONFIG_UNIX98_PTYS")
}

func landlockABI() Check {
	abi, err := landlock.ABI()
	c := check("Landlock", err, fmt.Sprintf("ABI %d", abi), "boot with lsm=landlock,... or use Linux 5.13 or newer")
	c.Needed = false
	switch {
	case err != nil:
		c.Detail += ": the read-only mounts stand alone"
	case abi < 6:
		c.Detail += ": it does not confine signals and abstract sockets; the namespaces do"
	}
	return c
}

// devices are the host's nodes that a guest's /dev is made of.
func devices() []Check {
	var list []Check
	for _, d := range []string{"null", "zero", "random", "urandom"} {
		if _, err := os.Stat("/dev/" + d); err != nil {
			list = append(list, Check{Name: "/dev/" + d, Needed: true, Detail: err.Error(), Remedy: "sudo mknod -m 666 /dev/" + d + " c 1 " + map[string]string{"null": "3", "zero": "5", "random": "8", "urandom": "9"}[d]})
		}
	}
	return list
}
