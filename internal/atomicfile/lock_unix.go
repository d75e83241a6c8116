//go:build unix

package atomicfile

import (
	"os"
	"syscall"
)

// NonBlock is the flag with which opening a pipe or a device does not wait
// (open(2)).
const NonBlock = syscall.O_NONBLOCK

// lock waits for the exclusive flock(2) on f; it ends when f is closed.
func lock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX) }
