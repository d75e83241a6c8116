package main

import (
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest/probe"
)

// signalChecks send signals to a process of the host, by every call that does.
// The signal is SIGWINCH, which harms no process that does not ask for it.
func signalChecks() []Check {
	const sig = uintptr(unix.SIGWINCH)
	list := []Check{
		{Name: "E116", Why: "a signal to everybody", Do: everybody},
		{Name: "A420", Why: "kill", Do: againstHost(func(pid int) error { return unix.Kill(pid, unix.SIGWINCH) })},
		{Name: "A421", Why: "kill, only to see whether it is there", Do: againstHost(func(pid int) error { return unix.Kill(pid, 0) })},
		{Name: "A422", Why: "kill with SIGKILL", Changes: true, Do: againstHost(func(pid int) error { return unix.Kill(pid, unix.SIGKILL) })},
		{Name: "A423", Why: "kill the process group", Do: againstHost(func(pid int) error { return unix.Kill(-pid, unix.SIGWINCH) })},
		{Name: "A424", Why: "tkill", Do: numbers(unix.SYS_TKILL, func(p uintptr) []uintptr { return []uintptr{p, sig} })},
		{Name: "A425", Why: "tgkill", Do: numbers(unix.SYS_TGKILL, func(p uintptr) []uintptr { return []uintptr{p, p, sig} })},
		{Name: "A426", Why: "rt_sigqueueinfo", Do: numbers(unix.SYS_RT_SIGQUEUEINFO, func(p uintptr) []uintptr { return []uintptr{p, sig, signalInfo()} })},
		{Name: "A427", Why: "rt_tgsigqueueinfo", Do: numbers(unix.SYS_RT_TGSIGQUEUEINFO, func(p uintptr) []uintptr { return []uintptr{p, p, sig, signalInfo()} })},
		{Name: "A428", Why: "pidfd_send_signal", Do: againstHost(pidfdSignal)},
		{Name: "A429", Why: "a descriptor's owner gets SIGIO", Do: againstHost(ownerSignal)},
	}
	for i := range list {
		list[i].Want = append([]errno{unix.ENOSYS, killed}, procRefused...)
	}
	return named("proc", list)
}

// signalInfo is a siginfo_t that says SI_QUEUE.
func signalInfo() uintptr {
	info := make([]int32, 32)
	info[0], info[2] = int32(unix.SIGWINCH), -1
	return address(&info[0])
}

func pidfdSignal(pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	return unix.PidfdSendSignal(fd, unix.SIGWINCH, nil, 0)
}

// ownerSignal makes the host's process the owner of a pipe that becomes
// readable: the kernel then sends the signal, see fcntl(2).
func ownerSignal(pid int) error {
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return broken(err)
	}
	if _, err := unix.FcntlInt(uintptr(pipe[0]), unix.F_SETOWN, pid); err != nil {
		return err
	}
	if _, err := unix.FcntlInt(uintptr(pipe[0]), unix.F_SETSIG, int(unix.SIGWINCH)); err != nil {
		return broken(err)
	}
	if _, err := unix.FcntlInt(uintptr(pipe[0]), unix.F_SETFL, unix.O_ASYNC); err != nil {
		return broken(err)
	}
	_, err := unix.Write(pipe[1], []byte("x"))
	return err
}

// everybody signals every process, but only where that can't be the host's.
func everybody(fx Fixtures) error {
	if ns, err := os.Readlink("/proc/self/ns/pid"); err != nil || ns == fx.Namespaces["pid"] {
		return againstHost(func(pid int) error { return unix.Kill(pid, unix.SIGWINCH) })(fx)
	}
	_ = unix.Kill(-1, unix.SIGWINCH) // the oracle sees whether it arrived
	return unix.ESRCH
}

// procEntryChecks read what /proc shows of the host's processes.
func procEntryChecks() []Check {
	var list []Check
	for _, entry := range []string{"environ", "cmdline", "maps", "status", "stat", "root/", "cwd/", "fd/", "fdinfo/", "ns/", "task/", "cgroup", "mountinfo"} {
		list = append(list, Check{Name: "A440:" + entry, Why: "what /proc shows of a process of the host", Want: procRefused,
			Do: againstHost(func(pid int) error { return openOnly(filepath.Join("/proc", itoa(pid))+"/"+entry, unix.O_RDONLY) })})
	}
	for _, entry := range []string{"oom_score_adj", "clear_refs", "autogroup"} {
		list = append(list, Check{Name: "A441:" + entry, Why: "settings of a process of the host", Want: append([]errno{unix.EROFS}, procRefused...), Unavailable: []errno{unix.ENOENT},
			Do: againstHost(func(pid int) error { return openOnly("/proc/"+itoa(pid)+"/"+entry, unix.O_WRONLY) })})
	}
	for _, entry := range []string{"environ", "mem", "maps"} {
		list = append(list, Check{Name: "A442:" + entry, Why: "what /proc shows of PID 1", Want: append([]errno{nothing}, procRefused...), RootOnly: true, Unavailable: notOurs,
			Do: func(fx Fixtures) error { return firstProcess(entry) }})
	}
	for _, entry := range []string{"root", "cwd"} {
		list = append(list, Check{Name: "A443:" + entry, Why: "the root of PID 1 is not the host's", Want: append([]errno{nothing}, procRefused...), RootOnly: true, Unavailable: notOurs,
			Do: func(fx Fixtures) error { return hostsFile("/proc/1/"+entry, fx) }})
	}
	list = append(list,
		Check{Name: "A444", Why: "the host's processes in /proc", Want: []errno{nothing, unix.ENOENT, unix.EACCES}, Do: anyHostProcess},
		Check{Name: "A445", Why: "descriptors of whoever started us", Want: append([]errno{nothing}, procRefused...), Do: parentDescriptors})
	return named("proc", list)
}

// firstProcess opens an entry of PID 1. Its environment counts only if it
// holds a secret: a sandbox's own first process may be read.
func firstProcess(entry string) error {
	if entry != "environ" {
		return openOnly("/proc/1/"+entry, unix.O_RDONLY)
	}
	if err := inEnviron("/proc/1/environ"); err != nothing {
		return err
	}
	return sameAsHost()
}

// sameAsHost reports whether PID 1 shows the namespaces of the host, which
// only its own kernel's first processes have.
func sameAsHost() error {
	ns, err := os.Readlink("/proc/1/ns/pid")
	if err != nil {
		return err
	}
	return found(ns == "pid:[4026531836]") // PROC_PID_INIT_INO
}

// hostsFile looks for a hidden file below another's root or directory.
func hostsFile(dir string, fx Fixtures) error {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	inner, err := unix.Openat(fd, "."+fx.Secret, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return tokenIn(inner, fx)
}

func anyHostProcess(fx Fixtures) error {
	list, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(list) == 0 {
		return unix.ENOENT
	}
	for _, p := range list {
		if contains(p, fx.PIDMark) == nil && filepath.Base(filepath.Dir(p)) != itoa(os.Getpid()) && !mentionsWorld(p) {
			return nil
		}
	}
	return nothing
}

// mentionsWorld recognises this program, whose arguments hold the mark too.
func mentionsWorld(p string) bool { return contains(p, "-world") == nil }

func parentDescriptors(fx Fixtures) error {
	list, err := filepath.Glob("/proc/" + itoa(os.Getppid()) + "/fd/*")
	if err != nil {
		return broken(err)
	}
	for _, p := range list {
		if target, err := os.Readlink(p); err == nil && (target == "/" || target == filepath.Join(fx.Out, "leaked")) {
			return openOnly(p, unix.O_RDONLY)
		}
	}
	return nothing
}

// startedChecks start programs, which must be as confined as we are.
func startedChecks() []Check {
	want := append([]errno{unix.ENOENT}, writeRefused...)
	return []Check{
		{Name: "E128", Family: "proc", Why: "a program started under another name of it", Want: want, Changes: true, Do: func(fx Fixtures) error { return startAs(self, fx) }},
		{Name: "E129", Family: "proc", Why: "a copy of a program", Want: want, Changes: true, Do: startCopy},
		{Name: "A450", Family: "proc", Why: "a program in memory only", Want: want, Changes: true, Do: startMemory},
		{Name: "E050", Family: "protected-link", Why: "a program that git starts by its configuration", Want: append([]errno{nothing}, want...), Unavailable: []errno{nothing}, Changes: true, Do: startByGit},
	}
}

// startAs starts a program that appends to the canary and takes its word.
func startAs(program string, fx Fixtures) error {
	canary := filepath.Join(fx.Out, "canary")
	return exitErrno(syscall.ForkExec(program, []string{"victim", "append", canary}, &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}}))
}

// exitErrno waits for a process whose exit status is an errno.
func exitErrno(pid int, err error) error {
	if err != nil {
		return err
	}
	var status syscall.WaitStatus
	for {
		_, err = syscall.Wait4(pid, &status, 0, nil)
		if err != syscall.EINTR {
			break
		}
	}
	if err != nil {
		return broken(err)
	}
	return orNil(errno(status.ExitStatus()))
}

func startCopy(fx Fixtures) error {
	p, err := scratchFile("copy")
	if err != nil {
		return err
	}
	text, err := os.ReadFile(self)
	if err == nil {
		err = os.WriteFile(p, text, 0o755)
	}
	if err != nil {
		return broken(err)
	}
	return startAs(p, fx)
}

func startMemory(fx Fixtures) error {
	text, err := os.ReadFile(self)
	if err != nil {
		return broken(err)
	}
	fd, err := unix.MemfdCreate("victim", 0)
	if err != nil {
		return err
	}
	if _, err := os.NewFile(uintptr(fd), "victim").Write(text); err != nil {
		return broken(err)
	}
	return startAs(fdPath(fd), fx)
}

// startByGit lets git start this program as a file system monitor.
func startByGit(fx Fixtures) error {
	git := firstExecutable("/usr/bin/git", "/bin/git", "/usr/local/bin/git")
	if git == "" {
		return nothing
	}
	program, err := os.Executable()
	if err != nil {
		return broken(err)
	}
	canary := filepath.Join(fx.Out, "canary")
	before, _ := os.ReadFile(canary)
	argv := []string{git, "-c", "safe.directory=*", "-c", "core.fsmonitor='" + program + "' append '" + canary + "';false", "-C", fx.Workspace, "status"}
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return broken(err)
	}
	_ = exitErrno(syscall.ForkExec(git, argv, &syscall.ProcAttr{Env: []string{"HOME=" + fx.Workspace, "PATH=/usr/bin:/bin"}, Files: []uintptr{uintptr(null), uintptr(null), uintptr(null)}}))
	after, _ := os.ReadFile(canary)
	if len(after) > len(before) {
		return nil
	}
	return unix.EACCES
}

func firstExecutable(paths ...string) string {
	for _, p := range paths {
		if unix.Access(p, unix.X_OK) == nil {
			return p
		}
	}
	return ""
}

// settle gives what works behind our back a moment.
func settle() { time.Sleep(50 * time.Millisecond) }

// answered reads what a listener of the host answers.
func answered(fd int) error {
	buf := make([]byte, 16)
	for {
		n, err := unix.Read(fd, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		return found(string(buf[:n]) == probe.Answer)
	}
}
