package checkpoint

import "golang.org/x/sys/unix"

type nameBuffer struct{}

// stat looks at a name in an open directory; it follows no link.
func (*nameBuffer) stat(dir int, name string, st *unix.Stat_t) error {
	return unix.Fstatat(dir, name, st, unix.AT_SYMLINK_NOFOLLOW)
}
