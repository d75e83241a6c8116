package checkpoint

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// A nameBuffer takes a name to the kernel without an allocation.
type nameBuffer [256]byte

// stat looks at a name in an open directory; it follows no link.
func (b *nameBuffer) stat(dir int, name string, st *unix.Stat_t) error {
	if len(name) >= len(b) {
		return unix.ENAMETOOLONG
	}
	b[copy(b[:], name)] = 0
	_, _, errno := unix.Syscall6(unix.SYS_NEWFSTATAT, uintptr(dir), uintptr(unsafe.Pointer(b)), uintptr(unsafe.Pointer(st)), unix.AT_SYMLINK_NOFOLLOW, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
