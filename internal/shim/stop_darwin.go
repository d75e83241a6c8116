package shim

import "golang.org/x/sys/unix"

// stopSelf stops the shim, as soon as the kernel comes to it.
func stopSelf() { _ = unix.Kill(unix.Getpid(), unix.SIGSTOP) }
