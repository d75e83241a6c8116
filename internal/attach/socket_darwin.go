package attach

import (
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// streamSocket holds off what forks meanwhile, as package os does: there is no
// flag for it here.
func streamSocket() (int, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fd)
	}
	return fd, err
}

func at(dir string, call func(path string) error) error { return call(filepath.Join(dir, socketName)) }
