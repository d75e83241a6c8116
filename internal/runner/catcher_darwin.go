package runner

import "syscall"

func newCatcher(wanted []syscall.Signal, size int) catcher { return notify(wanted, size) }
