package main

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// mountPlace makes a directory to mount on and cleans up after f.
func mountPlace(f func(dir string) error) func(Fixtures) error {
	return func(Fixtures) error {
		dir, err := scratchFile("mnt")
		if err != nil {
			return err
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return broken(err)
		}
		if err := f(dir); err != nil {
			return err
		}
		for unix.Unmount(dir, unix.MNT_DETACH) == nil {
		}
		return nil
	}
}

// mountChecks use the old mount calls. The harness has put us into a mount
// namespace of our own, so that they change nothing for anybody else.
func mountChecks() []Check {
	mount := func(fstype, data string) func(Fixtures) error {
		return mountPlace(func(dir string) error { return unix.Mount("probe", dir, fstype, 0, data) })
	}
	noType := []errno{unix.ENODEV, unix.EINVAL}
	list := []Check{
		{Name: "E137", Why: "a process file system of our own", Do: mount("proc", "")},
		{Name: "E162", Why: "the control groups", Do: mount("cgroup2", ""), Unavailable: append(noType, unix.EBUSY)},
		{Name: "A610", Why: "an empty file system", Do: mount("tmpfs", "")},
		{Name: "A611", Why: "the system's settings", Do: mount("sysfs", "")},
		{Name: "A612", Why: "a control group hierarchy", Do: mount("cgroup", "none,name=bawnprobe"), Unavailable: append(noType, unix.EBUSY)},
		{Name: "A613", Why: "terminals", Do: mount("devpts", "newinstance"), Unavailable: noType},
		{Name: "A614", Why: "message queues", Do: mount("mqueue", ""), Unavailable: noType},
		{Name: "A615", Why: "the kernel's debug files", Do: mount("debugfs", ""), Unavailable: noType},
		{Name: "A616", Why: "an overlay", Do: mountPlace(overlay), Unavailable: noType},
		{Name: "A617", Why: "a second view of a directory", Do: mountPlace(func(dir string) error { return unix.Mount(scratch, dir, "", unix.MS_BIND, "") })},
		{Name: "A618", Why: "make a read-only place writable again", Do: func(Fixtures) error { return unix.Mount("", "/", "", unix.MS_REMOUNT|unix.MS_BIND, "") }},
		{Name: "A619", Why: "let mounts spread", Do: func(Fixtures) error { return unix.Mount("", "/", "", unix.MS_SLAVE|unix.MS_REC, "") }},
		{Name: "A620", Why: "move a mount", Do: mountPlace(moveMount)},
		{Name: "E138", Why: "take a mount away", Do: func(Fixtures) error { return unix.Unmount("/proc", unix.MNT_DETACH) }},
		{Name: "A621", Why: "take what hides a directory away", Do: func(fx Fixtures) error { return uncover(filepath.Dir(fx.Secret)) }},
		{Name: "A622", Why: "take what hides a file away", Do: func(fx Fixtures) error { return uncover(fx.Denied) }},
		{Name: "E140", Why: "another root", Do: func(Fixtures) error { return unix.Chroot(".") }},
		{Name: "E141", Why: "put another root in place", Do: func(Fixtures) error {
			_, e := raw(unix.SYS_PIVOT_ROOT, cstring("."), cstring("."))
			return reached(e)
		}},
	}
	for i := range list {
		list[i].Want, list[i].RootOnly = append([]errno{unix.EACCES}, callRefused...), true
	}
	return named("kernel", list)
}

func overlay(dir string) error {
	for _, d := range []string{"upper", "work", "lower"} {
		if err := os.MkdirAll(filepath.Join(scratch, d), 0o755); err != nil {
			return broken(err)
		}
	}
	return unix.Mount("overlay", dir, "overlay", 0, "lowerdir="+scratch+"/lower,upperdir="+scratch+"/upper,workdir="+scratch+"/work")
}

func moveMount(dir string) error {
	if err := unix.Mount("probe", dir, "tmpfs", 0, ""); err != nil {
		return err
	}
	to := dir + "2"
	if err := os.MkdirAll(to, 0o755); err != nil {
		return broken(err)
	}
	if err := unix.Mount(dir, to, "", unix.MS_MOVE, ""); err != nil {
		return err
	}
	return broken(unix.Unmount(to, unix.MNT_DETACH))
}

// uncover reaches the kernel where it says that there is no mount.
func uncover(p string) error {
	err := unix.Unmount(p, unix.MNT_DETACH)
	if err == unix.EINVAL {
		return nil
	}
	return err
}

const sysOpenTreeAttr = 467 // on every architecture

// mountAPIChecks use the new mount calls, one by one.
func mountAPIChecks() []Check {
	look := func(nr int, args ...uintptr) func(Fixtures) error {
		return func(Fixtures) error {
			_, e := raw(nr, args...)
			return reached(e)
		}
	}
	dot, bad := cstring("."), ^uintptr(0)
	list := []Check{
		{Name: "E139", Why: "the first step of each of the new calls", RootOnly: true, Do: newMountCalls},
		{Name: "A630", Why: "open_tree with a copy", RootOnly: true, Do: look(unix.SYS_OPEN_TREE, atCWD, dot, unix.OPEN_TREE_CLONE)},
		{Name: "A631", Why: "fsopen", RootOnly: true, Do: look(unix.SYS_FSOPEN, cstring("tmpfs"), 0)},
		{Name: "A632", Why: "fspick", RootOnly: true, Do: look(unix.SYS_FSPICK, atCWD, cstring("/"), 0)},
		{Name: "A633", Why: "mount_setattr", RootOnly: true, Do: look(unix.SYS_MOUNT_SETATTR, atCWD, dot, 0, address(&unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}), unix.MOUNT_ATTR_SIZE_VER0)},
		{Name: "A634", Why: "fsconfig", Do: look(unix.SYS_FSCONFIG, bad, 6, 0, 0, 0)},
		{Name: "A635", Why: "fsmount", RootOnly: true, Do: look(unix.SYS_FSMOUNT, bad, 0, 0)},
		{Name: "A636", Why: "move_mount", RootOnly: true, Do: look(unix.SYS_MOVE_MOUNT, bad, dot, bad, dot, 0)},
		{Name: "A637", Why: "open_tree_attr", RootOnly: true, Unavailable: []errno{unix.ENOSYS}, Do: look(sysOpenTreeAttr, atCWD, dot, unix.OPEN_TREE_CLONE, 0, 0)},
	}
	for i := range list {
		list[i].Want = append([]errno{unix.EACCES}, callRefused...)
	}
	return named("kernel", list)
}

func newMountCalls(Fixtures) error {
	var last error
	for nr, args := range map[int][]uintptr{
		unix.SYS_OPEN_TREE:     {atCWD, cstring("/"), unix.OPEN_TREE_CLONE},
		unix.SYS_FSOPEN:        {cstring("tmpfs"), 0},
		unix.SYS_FSPICK:        {atCWD, cstring("/"), 0},
		unix.SYS_MOUNT_SETATTR: {atCWD, cstring("/"), 0, 0, 0},
	} {
		_, e := raw(nr, args...)
		if err := reached(e); err != nil {
			last = err
		} else {
			return nil
		}
	}
	return last
}
