package checkpoint

import (
	"errors"
	"strconv"

	"golang.org/x/sys/unix"
)

// lookOnly opens a directory in which names are only looked at: that takes half the time.
const lookOnly = unix.O_PATH

func mkfifo(fd int, name string) error { return unix.Mkfifoat(fd, name, 0o600) }

// chmodAt changes the mode of a name in an open directory. A symbolic link there is
// an error: its target may be outside.
func chmodAt(dir int, name string, mode uint32) error {
	fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return unix.ELOOP
	}
	return unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), mode)
}

// renameNew renames within a directory, unless the new name is taken.
func renameNew(fd int, from, to string) error {
	err := unix.Renameat2(fd, from, fd, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // not every file system can
		return unix.Renameat(fd, from, fd, to)
	}
	return err
}

// rearm has the next store through a mapping give the file a new ctime: its dirty
// pages are written, which makes them read-only in every mapping. On ext4 that takes
// 50 µs where fsync takes milliseconds.
func rearm(fd int) {
	if unix.SyncFileRange(fd, 0, 0, unix.SYNC_FILE_RANGE_WAIT_BEFORE|unix.SYNC_FILE_RANGE_WRITE) != nil {
		_ = unix.Fsync(fd) // a file of the guest's: it may be on a full disk
	}
}

// inMemory reports a file system that writes nothing back, so that stores through a
// mapping that exists give no new ctime.
func inMemory(fd int) bool {
	var st unix.Statfs_t
	if unix.Fstatfs(fd, &st) != nil {
		return true
	}
	return int64(st.Type) == unix.TMPFS_MAGIC || int64(st.Type) == unix.RAMFS_MAGIC
}
