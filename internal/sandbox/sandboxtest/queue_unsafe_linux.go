package sandboxtest

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// openQueue makes or opens a POSIX message queue, see mq_open(2); -1 if there
// can be none.
func openQueue(name string) int {
	p, err := unix.BytePtrFromString(name)
	if err != nil {
		return -1
	}
	defer runtime.KeepAlive(p)
	fd, _, e := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(p)), unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o666, 0, 0, 0)
	if e != 0 {
		return -1
	}
	return int(fd)
}

func removeQueue(name string) {
	if p, err := unix.BytePtrFromString(name); err == nil {
		unix.Syscall(unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(p)), 0, 0)
	}
}
