package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// statusField returns a field of /proc/self/status.
func statusField(name string) string {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// identityChecks ask who we are and try to become somebody else.
func identityChecks() []Check {
	status := func(name, field, want, why string) Check {
		return Check{Name: name, Why: why, Want: []errno{nothing}, Do: func(Fixtures) error { return found(statusField(field) != want) }}
	}
	caps := func(name, field string) Check {
		return Check{Name: name, Why: "a capability in " + field, Want: []errno{nothing}, RootOnly: field != "CapBnd",
			Do: func(Fixtures) error { return found(strings.Trim(statusField(field), "0") != "") }}
	}
	inheritable := caps("A643", "CapInh")
	inheritable.NoControl, inheritable.RootOnly = "a login has none either", false
	ambient := caps("A644", "CapAmb")
	ambient.NoControl, ambient.RootOnly = "a login has none either", false
	list := []Check{
		status("E143", "NoNewPrivs", "1", "programs may gain privileges"),
		status("E144", "Seccomp", "2", "no system call filter"),
		{Name: "E146", Why: "we are the host's root", Want: []errno{nothing}, RootOnly: true, Do: hostRoot},
		{Name: "E147", Why: "a set-user-ID program changes who we are", Want: []errno{nothing, unix.EACCES, unix.EPERM}, Unavailable: []errno{nothing}, Do: startSetID},
		caps("A640", "CapEff"), caps("A641", "CapPrm"), caps("A642", "CapBnd"), inheritable, ambient,
		{Name: "A645", Why: "take a capability", Want: callRefused, RootOnly: true, Do: takeCapability},
		{Name: "A646", Why: "become root", Want: []errno{unix.EPERM, unix.EINVAL}, RootOnly: true, Do: func(Fixtures) error { return rawErr(unix.SYS_SETUID, 0) }},
		{Name: "A647", Why: "become another user", Want: []errno{unix.EPERM, unix.EINVAL}, RootOnly: true, Do: func(Fixtures) error { return rawErr(unix.SYS_SETRESUID, 4242, 4242, 4242) }},
		{Name: "A648", Why: "become another group", Want: []errno{unix.EPERM, unix.EINVAL}, RootOnly: true, Do: func(Fixtures) error { return rawErr(unix.SYS_SETGID, 4242) }},
		{Name: "A649", Why: "join other groups", Want: []errno{unix.EPERM}, RootOnly: true, Do: func(Fixtures) error { return rawErr(unix.SYS_SETGROUPS, 0, 0) }},
		{Name: "A650", Why: "change the keeping of capabilities", Want: callRefused, RootOnly: true, Do: func(Fixtures) error { return unix.Prctl(unix.PR_SET_SECUREBITS, 1, 0, 0, 0) }},
		{Name: "A651", Why: "change the user mapping", Want: magicRefused, NoControl: "a mapping is written once, and the first namespace has one",
			Do: func(Fixtures) error { return writeText("/proc/self/uid_map", "0 0 1\n") }},
		{Name: "A652", Why: "raise a limit", Want: []errno{unix.EPERM, unix.EINVAL}, RootOnly: true, Unavailable: []errno{unix.EPERM}, Do: raiseLimit},
		{Name: "A653", Why: "a higher priority", Want: []errno{unix.EPERM, unix.EACCES}, RootOnly: true, Do: func(Fixtures) error { return unix.Setpriority(unix.PRIO_PROCESS, 0, -5) }},
		{Name: "A654", Why: "less memory protection", Want: callRefused, Do: func(Fixtures) error {
			const readImpliesExec = 0x0400000
			return rawErr(unix.SYS_PERSONALITY, readImpliesExec)
		}},
	}
	return named("kernel", list)
}

func writeText(p, text string) error {
	fd, err := unix.Open(p, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, []byte(text))
	return err
}

// hostRoot holds where our user is 0 and is 0 outside, too.
func hostRoot(Fixtures) error {
	text, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return broken(err)
	}
	fields := strings.Fields(string(text))
	return found(os.Getuid() == 0 && len(fields) > 1 && fields[1] == "0")
}

// startSetID runs a copy of this program that another user has marked.
func startSetID(fx Fixtures) error {
	if fx.SetID == "" {
		return nothing
	}
	pid, err := syscall.ForkExec(fx.SetID, []string{"victim", "whoami", itoa(os.Geteuid())}, &syscall.ProcAttr{Files: []uintptr{0, 1, 2}})
	return exitErrno(pid, err)
}

func takeCapability(Fixtures) error {
	h := &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	all := &[2]unix.CapUserData{}
	all[0].Effective, all[0].Permitted = 1<<unix.CAP_CHOWN, 1<<unix.CAP_CHOWN
	return unix.Capset(h, &all[0])
}

func raiseLimit(Fixtures) error {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &l); err != nil {
		return broken(err)
	}
	if l.Max == unix.RLIM_INFINITY {
		return unix.EPERM
	}
	l.Max++
	return unix.Setrlimit(unix.RLIMIT_MEMLOCK, &l)
}

// setIDChecks leave a program in the workspace that runs with its owner's
// rights when somebody else starts it on the host.
func setIDChecks() []Check {
	mode := func(name, why string, bits uint32, do func(p string, mode uint32) error) Check {
		return Check{Name: name, Why: why, Want: append([]errno{nothing}, callRefused...), Changes: true, Do: func(Fixtures) error { return setMode(bits, do) }}
	}
	list := []Check{
		mode("E148", "chmod with the set-user-ID bit", unix.S_ISUID, func(p string, m uint32) error { return thenChmod(p, func() error { return unix.Chmod(p, m) }) }),
		mode("A660", "chmod with the set-group-ID bit", unix.S_ISGID, func(p string, m uint32) error { return thenChmod(p, func() error { return unix.Chmod(p, m) }) }),
		mode("A661", "fchmod", unix.S_ISUID, chmodDescriptor),
		mode("A662", "fchmodat2", unix.S_ISUID, func(p string, m uint32) error {
			return thenChmod(p, func() error { return rawErr(sysFchmodat2, atCWD, cstring(p), uintptr(m), 0) })
		}),
		mode("A663", "open with the bit", unix.S_ISUID, func(p string, m uint32) error { return openMode(p, m, unix.O_CREAT|unix.O_WRONLY) }),
		mode("A664", "mknod with the bit", unix.S_ISUID, func(p string, m uint32) error { return unix.Mknod(p, unix.S_IFREG|m, 0) }),
		mode("A665", "open for reading with the bit", unix.S_ISUID, func(p string, m uint32) error { return openMode(p, m, unix.O_CREAT|unix.O_RDONLY) }),
		mode("A666", "openat2 with the bit", unix.S_ISUID, func(p string, m uint32) error {
			_, err := unix.Openat2(unix.AT_FDCWD, p, &unix.OpenHow{Flags: unix.O_CREAT | unix.O_WRONLY, Mode: uint64(m)})
			return err
		}),
		mode("A667", "a nameless file with the bit", unix.S_ISUID, namelessMode),
	}
	list[3].Unavailable = []errno{unix.ENOSYS}
	list = append(list,
		Check{Name: "A668", Why: "a file that carries a capability", Want: append([]errno{unix.EOPNOTSUPP}, writeRefused...), RootOnly: true, Unavailable: []errno{unix.EOPNOTSUPP}, Do: fileCapability},
		Check{Name: "A669", Why: "give a file of the workspace away", Want: []errno{unix.EPERM, unix.EINVAL, unix.EACCES}, RootOnly: true, Do: giveAway})
	return named("kernel", list)
}

// setMode judges by the mode that the file has in the end. The file lies in
// the workspace itself, where the harness looks for it.
func setMode(bits uint32, do func(p string, mode uint32) error) error {
	p := filepath.Join(filepath.Dir(scratch), "set-id")
	onUndo(func() { os.Remove(p) })
	if err := do(p, 0o755|bits); err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Stat(p, &st); err != nil {
		return broken(err)
	}
	return found(st.Mode&bits != 0)
}

func thenChmod(p string, chmod func() error) error {
	if err := os.WriteFile(p, evilText, 0o755); err != nil {
		return broken(err)
	}
	return chmod()
}

func chmodDescriptor(p string, m uint32) error {
	f, err := os.Create(p)
	if err != nil {
		return broken(err)
	}
	defer f.Close()
	return unix.Fchmod(int(f.Fd()), m)
}

func openMode(p string, m uint32, flags int) error {
	fd, err := unix.Open(p, flags|unix.O_CLOEXEC, m)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func namelessMode(p string, m uint32) error {
	fd, err := unix.Open(filepath.Dir(p), unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, m)
	if err != nil {
		return err
	}
	return unix.Linkat(unix.AT_FDCWD, fdPath(fd), unix.AT_FDCWD, p, unix.AT_SYMLINK_FOLLOW)
}

func fileCapability(Fixtures) error {
	p, err := evilFile()
	if err != nil {
		return err
	}
	// struct vfs_cap_data, version 2, CAP_SYS_ADMIN permitted and effective
	data := []byte{1, 0, 0, 2, 0, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	return unix.Setxattr(p, "security.capability", data, 0)
}

func giveAway(Fixtures) error {
	p, err := evilFile()
	if err != nil {
		return err
	}
	return unix.Chown(p, 4242, 4242)
}
