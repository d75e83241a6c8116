package shim

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// stopSelf returns when the shim was continued. The signal is for this thread.
// Another thread could take one for the process, and this one would go on for a
// moment, with a terminal that is not ours any more.
func stopSelf() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_ = unix.Tgkill(unix.Getpid(), unix.Gettid(), unix.SIGSTOP)
}
