package checkpoint

import (
	"slices"

	"golang.org/x/sys/unix"
)

// An unlocked is a directory below a root that its owner could not read, enter or
// write. It has a wider mode until the taking is closed.
type unlocked struct {
	rel  string
	mode uint32 // that it gets back
	ino  uint64
}

// lock restores the modes of unlocked directories, the last first. Where something
// else has come, or another mode, that stays.
func (r *rooted) lock() {
	for _, u := range slices.Backward(r.unlocked) {
		fd, err := openDir(r.top, u.rel)
		if err != nil {
			continue
		}
		var st unix.Stat_t
		if unix.Fstat(fd, &st) == nil && st.Ino == u.ino && uint32(st.Mode)&0o7777 == u.mode|0o700 {
			_ = unix.Fchmod(fd, u.mode)
		}
		_ = unix.Close(fd)
	}
	r.unlocked = nil
}

// settled says that a directory has the mode that it is to have.
func (r *rooted) settled(rel string) {
	r.unlocked = slices.DeleteFunc(r.unlocked, func(u unlocked) bool { return u.rel == rel })
}
