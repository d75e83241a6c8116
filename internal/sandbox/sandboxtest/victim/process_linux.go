package main

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// onHost returns ESRCH where the fixture's process id belongs to a process of
// the sandbox's own, so that a check never mistakes that one for the host's.
func onHost(fx Fixtures) error {
	text, err := os.ReadFile("/proc/" + itoa(fx.PID) + "/cmdline")
	if line := string(text); err == nil && (!strings.Contains(line, fx.PIDMark) || strings.Contains(line, "-world")) {
		return unix.ESRCH
	}
	return nil
}

// againstHost does f to the process of the host.
func againstHost(f func(pid int) error) func(fx Fixtures) error {
	return func(fx Fixtures) error {
		if err := onHost(fx); err != nil {
			return err
		}
		return f(fx.PID)
	}
}

// numbers makes a check's action of a system call whose arguments follow from
// the process id.
func numbers(nr int, args func(pid uintptr) []uintptr) func(fx Fixtures) error {
	return againstHost(func(pid int) error { return rawErr(nr, args(uintptr(pid))...) })
}

// processChecks reach for a process of the host other than by a signal.
func processChecks() []Check {
	list := []Check{
		{Name: "E120", Why: "trace whoever started us", Do: func(Fixtures) error { return seize(os.Getppid()) }},
		{Name: "A400", Why: "trace a process of the host", Do: againstHost(seize)},
		{Name: "A401", Why: "attach to a process of the host", Do: numbers(unix.SYS_PTRACE, func(p uintptr) []uintptr { return []uintptr{unix.PTRACE_ATTACH, p} })},
		{Name: "E121", Why: "the memory of a process of the host", Do: againstHost(func(pid int) error { return openOnly("/proc/"+itoa(pid)+"/mem", unix.O_RDWR) })},
		{Name: "E123", Why: "read the memory of a process of the host", Do: vmAccess(unix.SYS_PROCESS_VM_READV)},
		{Name: "A402", Why: "write the memory of a process of the host", Do: vmAccess(unix.SYS_PROCESS_VM_WRITEV)},
		{Name: "A403", Why: "a handle of a process of the host", Do: againstHost(func(pid int) error { _, err := unix.PidfdOpen(pid, 0); return err })},
		{Name: "A404", Why: "take a descriptor of a process of the host", Do: againstHost(takeDescriptor)},
		{Name: "A405", Why: "compare with a process of the host", Unavailable: []errno{unix.ENOSYS}, Do: numbers(unix.SYS_KCMP, func(p uintptr) []uintptr { return []uintptr{uintptr(os.Getpid()), p, 0, 0, 0} })},
		{Name: "A406", Why: "the priority of a process of the host", Do: numbers(unix.SYS_SETPRIORITY, func(p uintptr) []uintptr { return []uintptr{unix.PRIO_PROCESS, p, 1} })},
		{Name: "A407", Why: "where a process of the host may run", Do: againstHost(pinHost)},
		{Name: "A408", Why: "read the limits of a process of the host", Do: againstHost(func(pid int) error { var l unix.Rlimit; return unix.Prlimit(pid, unix.RLIMIT_CORE, nil, &l) })},
		{Name: "A409", Why: "the scheduling of a process of the host", Do: numbers(unix.SYS_SCHED_SETSCHEDULER, func(p uintptr) []uintptr { return []uintptr{p, 0, address(new(int32))} })},
		{Name: "A410", Why: "the session of a process of the host", Do: againstHost(func(pid int) error { _, err := unix.Getsid(pid); return err })},
		{Name: "A411", Why: "the process group of a process of the host", Do: againstHost(func(pid int) error { _, err := unix.Getpgid(pid); return err })},
		{Name: "A412", Why: "the locks of a process of the host", Do: numbers(unix.SYS_GET_ROBUST_LIST, func(p uintptr) []uintptr { return []uintptr{p, address(new(uintptr)), address(new(uintptr))} })},
		{Name: "A413", Why: "the disk priority of a process of the host", Do: numbers(unix.SYS_IOPRIO_SET, func(p uintptr) []uintptr { return []uintptr{1, p, 2<<13 | 4} })},
		{Name: "A414", Why: "what a process of the host does with the processor", Unavailable: []errno{unix.ENOSYS, unix.EACCES}, Do: againstHost(watchHost)},
	}
	for i := range list {
		list[i].Want = append([]errno{unix.ENOSYS, killed}, procRefused...)
		list[i].Unavailable = append(list[i].Unavailable, unix.ENOSYS)
	}
	return named("proc", list)
}

const ptraceSeize = 0x4206 // PTRACE_SEIZE

func seize(pid int) error { return rawErr(unix.SYS_PTRACE, ptraceSeize, uintptr(pid), 0, 0) }

// vmAccess reads or writes at an unmapped address: EFAULT means that the kernel
// would have done it.
func vmAccess(nr int) func(fx Fixtures) error {
	return againstHost(func(pid int) error {
		buf := make([]byte, 8)
		local := &[2]uintptr{addressOf(buf), 8}
		remote := &[2]uintptr{8, 8}
		err := rawErr(nr, uintptr(pid), address(local), 1, address(remote), 1, 0)
		if err == unix.EFAULT {
			return nil
		}
		return err
	})
}

func takeDescriptor(pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	_, err = unix.PidfdGetfd(fd, 1, 0)
	return err
}

// pinHost sets the set that it is in already.
func pinHost(pid int) error {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(pid, &set); err != nil {
		return err
	}
	return unix.SchedSetaffinity(pid, &set)
}

func watchHost(pid int) error {
	attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK, Bits: unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv}
	_, err := unix.PerfEventOpen(&attr, pid, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	return err
}
