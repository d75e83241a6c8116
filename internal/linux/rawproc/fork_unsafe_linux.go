package rawproc

import (
	"syscall"
	_ "unsafe" // for go:linkname

	"golang.org/x/sys/unix"
)

// The runtime's own hooks around fork, the ones package syscall uses: they
// block signals in this thread. They are on the runtime's list of names kept
// for outside use.

//go:linkname beforeFork syscall.runtime_BeforeFork
func beforeFork()

//go:linkname afterFork syscall.runtime_AfterFork
func afterFork()

// errnoElsewhere is no errno of the kernel's: nothing was forked.
const errnoElsewhere = syscall.Errno(1 << 12)

// forkInit forks the child into the namespaces in flags, with the memory in own
// and without that in drop. A page that both had would be copied as soon as
// either writes to it, and the guest's first process must not hold it. With
// onMain it forks from the main thread only; between beforeFork and afterFork the
// goroutine stays on its thread.
//
//go:noinline
//go:norace
//go:nocheckptr
func forkInit(flags, stack, tls, g uintptr, own extent, drop []extent, onMain bool) (pid uintptr, err syscall.Errno) {
	beforeFork()
	if onMain && !mainThread() {
		afterFork()
		return 0, errnoElsewhere
	}
	advise(drop, unix.MADV_DONTFORK)
	adviseOne(own, unix.MADV_DOFORK)
	var got forked
	if threadsOfLibc {
		cloneApart(flags|uintptr(unix.SIGCHLD), stack, tls, g, &got)
	} else {
		got.pid, got.errno = clone(flags|uintptr(unix.SIGCHLD), stack, tls, g)
	}
	adviseOne(own, unix.MADV_DONTFORK)
	advise(drop, unix.MADV_DOFORK)
	afterFork()
	return got.pid, syscall.Errno(got.errno)
}

// mainThread reports whether the calling thread is the process's first.
//
//go:nosplit
//go:norace
func mainThread() bool {
	pid, _, _ := syscall.RawSyscall(unix.SYS_GETPID, 0, 0, 0)
	tid, _, _ := syscall.RawSyscall(unix.SYS_GETTID, 0, 0, 0)
	return pid == tid
}

// forked is what clone returned.
type forked struct{ pid, errno uintptr }

// cloneApart is clone by way of a process that ends at once. A C library
// registers memory of each thread with the kernel, which writes there whenever
// the thread resumes (rseq(2)). A forked child inherits the registration
// without the memory, and would be killed at its first step. A process that
// shares its parent's memory does not inherit it, nor do its children, and with
// CLONE_PARENT the calling thread is their parent all the same.
//
//go:noinline
//go:nosplit
//go:norace
//go:nocheckptr
func cloneApart(flags, stack, tls, g uintptr, got *forked) {
	between, errno := vfork(unix.CLONE_VM | unix.CLONE_VFORK | uintptr(unix.SIGCHLD))
	if errno != 0 {
		got.errno = errno
		return
	}
	if between == 0 {
		got.pid, got.errno = clone(flags|unix.CLONE_PARENT, stack, tls, g)
		exit(0)
	}
	for {
		_, _, err := syscall.RawSyscall6(unix.SYS_WAIT4, between, 0, 0, 0, 0, 0)
		if err != unix.EINTR {
			return
		}
	}
}

// advise gives one advice about all of list. The kernel follows it in the
// mapped parts of an extent with holes, although it answers ENOMEM (madvise(2)).
//
//go:nosplit
//go:norace
func advise(list []extent, advice uintptr) {
	for i := range list {
		adviseOne(list[i], advice)
	}
}

//go:nosplit
//go:norace
func adviseOne(e extent, advice uintptr) {
	syscall.RawSyscall(unix.SYS_MADVISE, e.start, e.end-e.start, advice)
}
