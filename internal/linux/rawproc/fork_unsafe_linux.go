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

// forkInit forks the child into the namespaces in flags, without the memory in
// drop: a page that both had would have to be copied as soon as either writes
// to it, and the guest's first process has no business with what is there.
//
//go:noinline
//go:norace
//go:nocheckptr
func forkInit(flags, stack, tls, g uintptr, drop []extent) (pid uintptr, err syscall.Errno) {
	beforeFork()
	advise(drop, unix.MADV_DONTFORK)
	var got forked
	if threadsOfLibc {
		cloneApart(flags|uintptr(unix.SIGCHLD), stack, tls, g, &got)
	} else {
		got.pid, got.errno = clone(flags|uintptr(unix.SIGCHLD), stack, tls, g)
	}
	advise(drop, unix.MADV_DOFORK)
	afterFork()
	return got.pid, syscall.Errno(got.errno)
}

// forked is what clone returned.
type forked struct{ pid, errno uintptr }

// cloneApart is clone by way of a process that ends at once. A C library
// registers memory of each thread with the kernel, which writes there whenever
// the thread goes on (rseq(2)); a forked child inherits that, and would be
// killed at its first step, since it lacks the memory. A process that shares
// its parent's memory does not inherit it, nor do its children, and with
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
		syscall.RawSyscall(unix.SYS_MADVISE, list[i].start, list[i].end-list[i].start, advice)
	}
}
