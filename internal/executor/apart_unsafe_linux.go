package executor

import (
	"fmt"
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/linux/landlock"
	"github.com/bawn-dev/bawn/internal/linux/seccomp"
)

// A fence is what keeps commands from the executor, for a command that another
// thread starts: it carries it along.
type fence struct {
	filter  []unix.SockFilter
	ruleset int // of Landlock, or -1
}

// standApart makes this process closed to what this thread will start, for
// good (landlock(7), seccomp(2), PR_SET_DUMPABLE in prctl(2)). It must have
// happened before the first command.
func (p *program) standApart() (Ready, error) {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return Ready{}, fmt.Errorf("make the executor undumpable: %w", err)
	}
	// A process that outlives its parent becomes our child, so that the end
	// finds it.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return Ready{}, fmt.Errorf("adopt orphans: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return Ready{}, fmt.Errorf("give up new privileges: %w", err)
	}
	abi, _ := landlock.ABI() // 0 with an error
	f := fence{ruleset: -1}
	var err error
	if abi >= landlock.ScopeABI {
		if f.ruleset, err = landlock.ScopeRuleset(); err == nil { // closed on exec
			err = landlock.ScopeThread()
		}
	}
	if err == nil {
		f.filter, err = guardThread()
	}
	if err != nil {
		return Ready{}, err
	}
	p.jobs.fence = f
	traces, err := mayTrace()
	return Ready{LandlockABI: abi, Apart: abi >= landlock.ScopeABI && !traces}, err
}

// mayTrace reports whether commands may trace anybody: then they may trace this
// thread, which is in their domain, dumpable or not.
func mayTrace() (bool, error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return true, fmt.Errorf("read the capabilities: %w", err)
	}
	return data[0].Permitted&(1<<unix.CAP_SYS_PTRACE) != 0, nil
}

// guardThread closes the ways past the Landlock scope for everything that this
// thread starts. This thread is in the same domain, so calls that aim at one
// thread would reach it, and with it the process. Landlock does not cover
// limits either, and a small one kills. It returns the filter for that.
func guardThread() ([]unix.SockFilter, error) {
	self, thread := uint32(unix.Getpid()), uint32(unix.Gettid())
	eperm := seccomp.Errno(unix.EPERM)
	limits := []seccomp.Call{{Nr: unix.SYS_PRLIMIT64, Name: "prlimit64"}}
	slower, err := slowing()
	if err != nil {
		return nil, err
	}
	filter, err := seccomp.Compile(append(slower, []seccomp.Rule{
		// kill(2) takes the number of any thread for its process, and Landlock
		// looks at the thread's domain.
		{Calls: []seccomp.Call{{Nr: unix.SYS_TKILL, Name: "tkill"}, {Nr: unix.SYS_KILL, Name: "kill"}, {Nr: unix.SYS_RT_SIGQUEUEINFO, Name: "rt_sigqueueinfo"}}, Conds: []seccomp.Cond{seccomp.Equal(0, thread)}, Action: eperm, Why: "the executor's thread"},
		{Calls: []seccomp.Call{{Nr: unix.SYS_TGKILL, Name: "tgkill"}, {Nr: unix.SYS_RT_TGSIGQUEUEINFO, Name: "rt_tgsigqueueinfo"}},
			Conds: []seccomp.Cond{seccomp.Equal(0, self)}, Action: eperm, Why: "the executor's threads"},
		{Calls: []seccomp.Call{{Nr: unix.SYS_PIDFD_OPEN, Name: "pidfd_open"}}, Conds: []seccomp.Cond{seccomp.AnySet(1, pidfdThread)}, Action: seccomp.Errno(unix.EINVAL), Why: "descriptors of threads, as before Linux 6.9"},
		{Calls: []seccomp.Call{{Nr: unix.SYS_FCNTL, Name: "fcntl"}}, Conds: []seccomp.Cond{seccomp.Equal(1, unix.F_SETOWN_EX)}, Action: eperm, Why: "signals to a thread that is named behind a pointer"},
		{Calls: limits, Conds: []seccomp.Cond{seccomp.Equal(0, 0)}, Action: seccomp.Allow, Why: "its own"},
		{Calls: limits, Action: eperm, Why: "limits of another process"},
	}...))
	if err != nil {
		return nil, err
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog))); errno != 0 {
		return nil, fmt.Errorf("guard the executor's thread: %w", errno)
	}
	return filter, nil
}

// slowing closes the ways by which commands would make the executor slower
// (setpriority(2), ioprio_set(2), sched_setscheduler(2), sched_setaffinity(2)).
// It knows the threads that there are now, and that of the process; a command
// may set those of all others, its own among them.
func slowing() ([]seccomp.Rule, error) {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return nil, fmt.Errorf("list the executor's threads: %w", err)
	}
	byThread := []seccomp.Call{
		{Nr: unix.SYS_SCHED_SETSCHEDULER, Name: "sched_setscheduler"}, {Nr: unix.SYS_SCHED_SETATTR, Name: "sched_setattr"},
		{Nr: unix.SYS_SCHED_SETPARAM, Name: "sched_setparam"}, {Nr: unix.SYS_SCHED_SETAFFINITY, Name: "sched_setaffinity"},
	}
	eperm := seccomp.Errno(unix.EPERM)
	var rules []seccomp.Rule
	for _, call := range []struct {
		seccomp.Call
		process uint32 // the value for a process; the next is for groups, then for users
	}{{seccomp.Call{Nr: unix.SYS_SETPRIORITY, Name: "setpriority"}, unix.PRIO_PROCESS}, {seccomp.Call{Nr: unix.SYS_IOPRIO_SET, Name: "ioprio_set"}, ioprioProcess}} {
		one := []seccomp.Call{call.Call}
		rules = append(rules,
			seccomp.Rule{Calls: one, Conds: []seccomp.Cond{seccomp.Equal(0, call.process+1), seccomp.Equal(1, uint32(unix.Getpgrp()))}, Action: eperm, Why: "the executor's process group"},
			seccomp.Rule{Calls: one, Conds: []seccomp.Cond{seccomp.Equal(0, call.process+2)}, Action: eperm, Why: "all of the user, the executor among them"})
		for _, task := range tasks {
			id, _ := strconv.ParseUint(task.Name(), 10, 32) // as the kernel writes it
			rules = append(rules, seccomp.Rule{Calls: one, Conds: []seccomp.Cond{seccomp.Equal(0, call.process), seccomp.Equal(1, uint32(id))}, Action: eperm, Why: "the executor's threads"})
		}
	}
	for _, task := range tasks {
		id, _ := strconv.ParseUint(task.Name(), 10, 32) // as the kernel writes it
		rules = append(rules, seccomp.Rule{Calls: byThread, Conds: []seccomp.Cond{seccomp.Equal(0, uint32(id))}, Action: eperm, Why: "the executor's threads"})
	}
	return rules, nil
}

// ioprioProcess is IOPRIO_WHO_PROCESS of ioprio_set(2).
const ioprioProcess = 1

// pidfdThread is PIDFD_THREAD of linux/pidfd.h.
const pidfdThread = unix.O_EXCL

// childOf returns si_pid, which unix.Siginfo keeps to itself: it follows three
// ints and what aligns the union behind them (linux asm-generic/siginfo.h).
func childOf(info *unix.Siginfo) int {
	const at = 4 * unsafe.Sizeof(int32(0))
	return int(*(*int32)(unsafe.Add(unsafe.Pointer(info), at)))
}
