package attach

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// waitKeys waits until fd has something to read, or wake was closed at its
// other end: then it returns false. It uses select(2), since poll(2) does not
// support terminals here.
func waitKeys(fd, wake int) (bool, error) {
	if max(fd, wake) >= unix.FD_SETSIZE {
		return false, fmt.Errorf("descriptor %d is too large for select", max(fd, wake))
	}
	var set unix.FdSet
	set.Set(fd)
	set.Set(wake)
	_, err := unix.Select(max(fd, wake)+1, &set, nil, nil, nil)
	return !set.IsSet(wake), err
}
