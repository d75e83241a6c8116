package main

import (
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// namespaceFlags are the kinds of namespace, by the name in /proc/PID/ns.
var namespaceFlags = []struct {
	name string
	flag uintptr
}{
	{"user", unix.CLONE_NEWUSER}, {"mnt", unix.CLONE_NEWNS}, {"pid", unix.CLONE_NEWPID}, {"net", unix.CLONE_NEWNET},
	{"ipc", unix.CLONE_NEWIPC}, {"uts", unix.CLONE_NEWUTS}, {"cgroup", unix.CLONE_NEWCGROUP}, {"time", unix.CLONE_NEWTIME},
}

// namespaceChecks nest namespaces, in which a guest would be root and reach
// parts of the kernel that ordinary users do not, and enter others.
func namespaceChecks() []Check {
	noSpace := []errno{unix.ENOSPC, unix.EINVAL, unix.ENOSYS} // switched off, or not built
	var list []Check
	for _, n := range namespaceFlags {
		alone := n.name != "user"
		list = append(list,
			Check{Name: "A600:" + n.name, Why: "unshare", RootOnly: alone, Unavailable: noSpace, Do: func(Fixtures) error { return unshareIn(n.flag) }},
			Check{Name: "A603:" + n.name, Why: "enter the namespace of PID 1", RootOnly: true, Unavailable: append(noSpace, notOurs...), Do: func(Fixtures) error { return enter("/proc/1/ns/" + n.name) }},
			Check{Name: "A604:" + n.name, Why: "enter our own namespace again", RootOnly: true, Unavailable: noSpace, Do: func(Fixtures) error { return enter("/proc/self/ns/" + n.name) }},
		)
		if n.name == "time" {
			continue // its bit is part of the exit signal in clone(2)
		}
		list = append(list,
			Check{Name: "A601:" + n.name, Why: "clone", RootOnly: alone, Do: func(Fixtures) error { return orNil(cloneRaw(n.flag)) }},
			Check{Name: "A602:" + n.name, Why: "clone3, whose flags no filter sees", RootOnly: alone, Do: func(Fixtures) error { return orNil(clone3Raw(uint64(n.flag))) }},
		)
		if alone {
			list = append(list, Check{Name: "A605:" + n.name, Why: "clone, with a user namespace", Do: func(Fixtures) error { return orNil(cloneRaw(n.flag | unix.CLONE_NEWUSER)) }})
		}
	}
	list = append(list,
		Check{Name: "E133", Why: "clone3 with a user namespace", Do: func(Fixtures) error { return orNil(clone3Raw(unix.CLONE_NEWUSER)) }},
		Check{Name: "E134", Why: "network administration in a user namespace", Do: func(Fixtures) error { return inUserNamespace(unix.CLONE_NEWNET, "loopback") }},
		Check{Name: "E135", Why: "mounts in a user namespace", Do: func(Fixtures) error { return inUserNamespace(unix.CLONE_NEWNS, "mount") }},
		Check{Name: "E142", Why: "enter the mount and network namespaces of PID 1", RootOnly: true, Unavailable: notOurs, Do: enterBoth},
		Check{Name: "A606", Why: "enter by a process handle", RootOnly: true, Unavailable: notOurs, Do: enterByHandle},
	)
	for i := range list {
		list[i].Want = append([]errno{unix.EACCES, unix.ENOENT}, callRefused...)
	}
	return named("kernel", list)
}

// unshareIn unshares in a process of its own: a process with threads can't
// have a new user namespace.
func unshareIn(flag uintptr) error {
	if flag != unix.CLONE_NEWUSER {
		return unix.Unshare(int(flag))
	}
	_, err := syscall.ForkExec(self, []string{"victim", "nothing"}, &syscall.ProcAttr{Sys: &syscall.SysProcAttr{Unshareflags: flag}})
	return err
}

func enter(p string) error {
	fd, err := unix.Open(p, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	_, e := raw(unix.SYS_SETNS, uintptr(fd), 0)
	return reached(e) // EINVAL: it knows the namespace, but not for us
}

func enterBoth(Fixtures) error {
	if err := enter("/proc/1/ns/net"); err != nil {
		return err
	}
	return enter("/proc/1/ns/mnt")
}

func enterByHandle(Fixtures) error {
	fd, err := unix.PidfdOpen(1, 0)
	if err != nil {
		return err
	}
	_, e := raw(unix.SYS_SETNS, uintptr(fd), unix.CLONE_NEWUTS)
	return reached(e)
}

// inUserNamespace starts an actor as root of new namespaces.
func inUserNamespace(flags uintptr, actor string) error {
	own := func(id int) []syscall.SysProcIDMap {
		return []syscall.SysProcIDMap{{ContainerID: 0, HostID: id, Size: 1}}
	}
	attr := &syscall.ProcAttr{Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWUSER | flags, UidMappings: own(os.Getuid()), GidMappings: own(os.Getgid()),
	}}
	return exitErrno(syscall.ForkExec(self, []string{"victim", actor}, attr))
}

// mountPoint is a line of /proc/self/mountinfo, see proc_pid_mountinfo(5).
type mountPoint struct{ target, fstype, options string }

func mountPoints() []mountPoint {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	var list []mountPoint
	for line := range strings.Lines(string(text)) {
		before, after, ok := strings.Cut(strings.TrimSpace(line), " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if ok && len(left) > 5 && len(right) > 0 {
			list = append(list, mountPoint{unescape(left[4]), right[0], left[5]})
		}
	}
	return list
}

// unescape undoes the octal spelling of space, tab, newline and backslash.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}
