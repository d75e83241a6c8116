package doctor

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/egress/remote"
	"github.com/bawn-dev/bawn/internal/linux/landlock"
	"github.com/bawn-dev/bawn/internal/linux/rawproc"
	"github.com/bawn-dev/bawn/internal/sandbox/kernel"
	"github.com/bawn-dev/bawn/internal/sandbox/native"
)

// Examine tries everything. It changes nothing that lasts.
func Examine() Report {
	var u unix.Utsname
	_ = unix.Uname(&u) // EFAULT only
	r := Report{
		System: "Linux " + unix.ByteSliceToString(u.Release[:]) + " " + unix.ByteSliceToString(u.Machine[:]),
		User:   fmt.Sprintf("uid %d", os.Geteuid()),
	}
	users, spaces := []string{"user namespace"}, []string{"user namespace", "other namespaces"}
	steps := []step{
		{users[0], nil, userNamespace},
		{spaces[1], users, namespaces},
		{"mounts", spaces, mounts},
		{"/proc of its own", spaces, procfs},
		{"/sys of its own", spaces, sysfs},
		{"terminals of its own", spaces, devpts},
		{"Landlock", nil, landlockABI},
		{"seccomp", nil, notifications},
	}
	all := step{name: "the sandbox as a whole", try: whole}
	for _, s := range steps {
		if s.name != "Landlock" { // where it is missing the mounts stand alone
			all.needs = append(all.needs, s.name)
		}
	}
	r.Checks = examine(append(append(steps, devices()...), all))
	p := native.New("")
	r.Provider, r.Capabilities = p.Name(), relayed(proven(p.Capabilities(), r.Checks[len(r.Checks)-1]), remote.FindEgress)
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
	return carryOut(unix.CLONE_NEWUSER|flags, p)
}

func carryOut(namespaces uintptr, p *rawproc.Program) error {
	in, err := rawproc.Start(rawproc.Config{Namespaces: namespaces, Program: p})
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
func check(err error, good, remedy string) Check {
	if err != nil {
		return Check{Needed: true, Detail: err.Error(), Remedy: remedy}
	}
	return Check{Needed: true, OK: true, Detail: good}
}

func userNamespace() Check {
	err := try(0, nil)
	return check(err, "created and mapped", kernel.NamespaceRemedy(err, "user"))
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
	var remedy string
	for _, k := range kinds {
		err := try(k.flag, nil)
		if err == nil {
			have = append(have, k.name)
			continue
		}
		missing = append(missing, fmt.Errorf("%s: %w", k.name, err))
		if remedy == "" {
			remedy = kernel.NamespaceRemedy(err, k.name)
		}
	}
	return check(errors.Join(missing...), strings.Join(have, ", "), remedy)
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
	return check(err, "cloned, read-only, pivoted", "Linux 5.12 or newer is needed; inside a container it needs the mount calls (docker run --security-opt seccomp=unconfined)")
}

func procfs() Check {
	err := try(unix.CLONE_NEWNS|unix.CLONE_NEWPID, func(p *rawproc.Program) {
		p.Call("mount proc", unix.SYS_MOUNT, "proc", "/proc", "proc", unix.MS_RDONLY, "")
	})
	return check(err, "mounted", "inside a container, start it with an unmasked /proc (docker run --security-opt systempaths=unconfined)")
}

func sysfs() Check {
	err := try(unix.CLONE_NEWNS|unix.CLONE_NEWNET, func(p *rawproc.Program) {
		p.Call("mount sysfs", unix.SYS_MOUNT, "sysfs", "/sys", "sysfs", unix.MS_RDONLY, "")
	})
	return check(err, "mounted", "inside a container, start it with an unmasked /sys (docker run --security-opt systempaths=unconfined)")
}

func devpts() Check {
	err := try(unix.CLONE_NEWNS, func(p *rawproc.Program) {
		p.Call("mount devpts", unix.SYS_MOUNT, "devpts", "/dev", "devpts", 0, "newinstance,ptmxmode=0666")
	})
	return check(err, "devpts mounted", "the kernel needs CONFIG_UNIX98_PTYS")
}

func landlockABI() Check {
	abi, err := landlock.ABI()
	c := check(err, fmt.Sprintf("ABI %d", abi), "boot with lsm=landlock,... or use Linux 5.13 or newer")
	c.Needed = false
	if err != nil {
		c.Detail += ": the read-only mounts stand alone"
	} else {
		c.Detail += landlockGaps(abi)
	}
	return c
}

// landlockGaps names what an older Landlock leaves to the other walls (the
// table of ABIs in Documentation/userspace-api/landlock.rst).
func landlockGaps(abi int) string {
	var gaps []string
	for _, g := range []struct {
		until int
		what  string
	}{
		{2, "it lets no file change its directory"},
		{3, "it does not govern truncate(2); the read-only mounts do"},
		{5, "it does not govern ioctl(2) on devices; a minimal /dev does"},
		{6, "it does not confine signals and abstract sockets; the namespaces do (with --split, a command can end the executor)"},
	} {
		if abi < g.until {
			gaps = append(gaps, g.what)
		}
	}
	if gaps == nil {
		return ""
	}
	return ": " + strings.Join(gaps, "; ")
}

// devices are the host's nodes that a guest's /dev is made of.
func devices() []step {
	var list []step
	for _, d := range []struct{ name, minor string }{{"null", "3"}, {"zero", "5"}, {"random", "8"}, {"urandom", "9"}} {
		file := "/dev/" + d.name
		if _, err := os.Stat(file); err != nil {
			list = append(list, step{name: file, try: func() Check { return check(err, "", "sudo mknod -m 666 "+file+" c 1 "+d.minor) }})
		}
	}
	return list
}
