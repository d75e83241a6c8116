package launch

import (
	"os"

	"golang.org/x/sys/unix"
)

// nameless returns a file that no directory names (memfd_create(2)).
func nameless() (*os.File, error) {
	fd, err := unix.MemfdCreate("spec", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	return os.NewFile(uintptr(fd), "spec"), nil
}
