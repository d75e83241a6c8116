package checkpoint

import "golang.org/x/sys/unix"

// lookOnly opens a directory in which names are only looked at.
const lookOnly = unix.O_RDONLY

// mkfifo is not available below an open directory.
func mkfifo(int, string) error { return unix.ENOTSUP }

// chmodAt changes the mode of a name in an open directory, without following a link.
func chmodAt(dir int, name string, mode uint32) error {
	return unix.Fchmodat(dir, name, mode, unix.AT_SYMLINK_NOFOLLOW)
}

// renameNew renames within a directory, unless the new name is taken.
func renameNew(fd int, from, to string) error {
	return unix.RenameatxNp(fd, from, fd, to, unix.RENAME_EXCL)
}

func rearm(fd int) { _ = unix.Fsync(fd) }

func inMemory(int) bool { return false }
