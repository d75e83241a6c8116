package layout

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// PathOf is the path of an open file, links resolved.
func PathOf(fd int) (string, error) {
	link := "/proc/self/fd/" + strconv.Itoa(fd)
	var short [256]byte // few paths are longer, and it takes no allocation
	n, err := unix.Readlink(link, short[:])
	if err != nil || n < len(short) {
		return string(short[:max(n, 0)]), err
	}
	long := make([]byte, unix.PathMax)
	n, err = unix.Readlink(link, long)
	return string(long[:max(n, 0)]), err
}
