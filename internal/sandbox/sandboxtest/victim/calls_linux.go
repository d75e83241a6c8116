package main

import (
	"golang.org/x/sys/unix"
)

// A call is a system call that no guest needs, with arguments by which the
// kernel refuses to do anything once it has looked at them.
type call struct {
	name, why string
	nr        int
	args      []uintptr
	root      bool // the kernel asks for a capability first
}

// callChecks want that the calls never reach the kernel's own code.
func callChecks() []Check {
	var list []Check
	for _, c := range append(kernelCalls(), machineCalls()...) {
		list = append(list, Check{Name: c.name, Why: c.why, Want: append([]errno{unix.EACCES}, callRefused...), Unavailable: []errno{unix.ENOSYS, unix.EACCES}, RootOnly: c.root,
			Do: func(Fixtures) error {
				_, e := raw(c.nr, c.args...)
				return reached(e)
			}})
	}
	list = append(list, Check{Name: "E153", Why: "every call of the machine's own", Want: append([]errno{unix.EACCES}, callRefused...), RootOnly: true, Do: everyMachineCall})
	return named("kernel", list)
}

func everyMachineCall(Fixtures) error {
	last := error(unix.ENOSYS)
	for _, c := range machineCalls() {
		_, e := raw(c.nr, c.args...)
		if reached(e) == nil {
			return nil
		}
		last = e
	}
	return last
}

const (
	bad       = ^uintptr(0)
	paramSize = 256
)

func kernelCalls() []call {
	zeroes := func() uintptr { return addressOf(make([]byte, paramSize)) }
	return []call{
		{"E149", "io_uring, which passes by the filter", unix.SYS_IO_URING_SETUP, []uintptr{8, zeroes()}, false},
		{"A670", "io_uring_enter", unix.SYS_IO_URING_ENTER, []uintptr{bad, 0, 0, 0}, false},
		{"A671", "io_uring_register", unix.SYS_IO_URING_REGISTER, []uintptr{bad, 0, 0, 0}, false},
		{"E150", "programs in the kernel", unix.SYS_BPF, []uintptr{0, zeroes(), 72}, true},
		{"A672", "performance counters", unix.SYS_PERF_EVENT_OPEN, []uintptr{0, 0, bad, bad, 0}, false},
		{"A673", "page faults in user space", unix.SYS_USERFAULTFD, []uintptr{unix.O_CLOEXEC | 1}, false},
		{"A674", "memory hidden from the kernel", sysMemfdSecret, []uintptr{unix.O_CLOEXEC}, false},
		{"A675", "watch every file", unix.SYS_FANOTIFY_INIT, []uintptr{unix.FAN_CLASS_NOTIF | unix.FAN_REPORT_FID, unix.O_RDONLY}, false},
		{"A676", "the kernel's log", unix.SYS_SYSLOG, []uintptr{10, 0, 0}, true},
		{"A677", "move pages of a process", unix.SYS_MOVE_PAGES, []uintptr{0, 0, 0, 0, 0, 0}, false},
		{"A678", "migrate a process", unix.SYS_MIGRATE_PAGES, []uintptr{0, 8, zeroes(), zeroes()}, false},
		{"A679", "another process's advice", unix.SYS_PROCESS_MADVISE, []uintptr{bad, 0, 0, 0, 0}, false},
		{"A680", "reap another process's memory", unix.SYS_PROCESS_MRELEASE, []uintptr{bad, 0}, false},
	}
}

const sysMemfdSecret = 447 // on amd64 and arm64

// machineCalls are those of E153. As called here, none of them changes
// anything.
func machineCalls() []call {
	list := []call{
		{"A690", "load a kernel", unix.SYS_KEXEC_LOAD, []uintptr{0, 0, 0, bad}, true},
		{"A691", "load a kernel from a file", unix.SYS_KEXEC_FILE_LOAD, []uintptr{bad, bad, 0, 0, bad}, true},
		{"A692", "load a module", unix.SYS_INIT_MODULE, []uintptr{0, 0, 0}, true},
		{"A693", "load a module from a file", unix.SYS_FINIT_MODULE, []uintptr{bad, 0, bad}, true},
		{"A694", "remove a module", unix.SYS_DELETE_MODULE, []uintptr{0, 0}, true},
		{"A695", "restart the machine", unix.SYS_REBOOT, []uintptr{0, 0, 0, 0}, true},
		{"A696", "add swap", unix.SYS_SWAPON, []uintptr{0, 0}, true},
		{"A697", "take swap away", unix.SYS_SWAPOFF, []uintptr{0}, true},
		{"A698", "accounting", unix.SYS_ACCT, []uintptr{cstring("/nonexistent/probe")}, true},
		{"A700", "set the clock", unix.SYS_CLOCK_SETTIME, []uintptr{unix.CLOCK_REALTIME, 0}, false},
		{"A701", "set the time of day", unix.SYS_SETTIMEOFDAY, []uintptr{0, 0}, true},
		{"A702", "adjust the clock", unix.SYS_ADJTIMEX, []uintptr{0}, false},
		{"A703", "adjust a clock", unix.SYS_CLOCK_ADJTIME, []uintptr{unix.CLOCK_REALTIME, 0}, false},
		{"A704", "the machine's name", unix.SYS_SETHOSTNAME, []uintptr{0, bad}, true},
		{"A705", "the machine's domain", unix.SYS_SETDOMAINNAME, []uintptr{0, bad}, true},
		{"A706", "disk quotas", unix.SYS_QUOTACTL, []uintptr{0x80000400, cstring("/nonexistent/probe"), 0, 0}, false},
		{"A707", "hang up the terminal", unix.SYS_VHANGUP, nil, true},
	}
	return append(list, portCalls()...)
}
