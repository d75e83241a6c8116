package shim

import (
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A sigaction of the kernel, not of the C library.
type sigaction struct {
	handler, flags, restorer uintptr
	mask                     uint64
}

// die ends the process by a signal, as the command was ended. Go's runtime
// would print goroutines for some and ignore others, so the kernel is told
// itself: rt_sigaction(2) with SIG_DFL. No second core is dumped.
func die(sig syscall.Signal) {
	runtime.LockOSThread()
	var dfl sigaction
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&dfl)), 0, unsafe.Sizeof(dfl.mask), 0, 0)
	set := uint64(1) << (uint(sig) - 1)
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_UNBLOCK, uintptr(unsafe.Pointer(&set)), 0, unsafe.Sizeof(set), 0, 0)
	_ = unix.Tgkill(unix.Getpid(), unix.Gettid(), sig) // another thread might be too late
	os.Exit(signalBase + int(sig))                     // a signal that ends nobody
}
