package sessionsocket

import (
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// maxAddress is how long a name a socket's address has room for (unix(7)).
const maxAddress = 107

// short calls f with a name of path that fits into an address, which holds
// meanwhile: a home may lie deep.
func short(path string, f func(name string) error) error {
	if len(path) <= maxAddress {
		return f(path)
	}
	dir, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	return f(fmt.Sprintf("/proc/self/fd/%d/%s", dir, filepath.Base(path)))
}
