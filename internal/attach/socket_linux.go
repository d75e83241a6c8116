package attach

import (
	"fmt"

	"golang.org/x/sys/unix"
)

func streamSocket() (int, error) {
	return unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
}

// at calls with a name of the session's socket that is short enough: an address
// has room for 107 bytes (unix(7)), and directories are deeper.
func at(dir string, call func(path string) error) error {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return call(fmt.Sprintf("/proc/self/fd/%d/%s", fd, socketName))
}
