package main

import (
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// A write changes file f of directory d, both outside of the workspace; n is a
// name in d that does not exist.
type write struct {
	name, why   string
	do          func(d, f, n string) error
	want        []errno // besides writeRefused
	unavailable []errno
	root        bool
}

// writeChecks try every call that changes a file or a directory.
func writeChecks() []Check {
	all := append(openWrites(), nameWrites()...)
	all = append(all, renameWrites()...)
	all = append(all, attributeWrites()...)
	all = append(all, legacyWrites()...)
	list := make([]Check, len(all))
	for i, w := range all {
		list[i] = Check{
			Name: w.name, Why: w.why, Want: append(w.want, writeRefused...), Unavailable: w.unavailable, RootOnly: w.root, Changes: true,
			Do: func(fx Fixtures) error {
				return w.do(fx.Out, filepath.Join(fx.Out, "canary"), filepath.Join(fx.Out, "new-"+fx.Token))
			},
		}
	}
	return named("fs-write", list)
}

// openAndWrite opens with flags and writes a byte.
func openAndWrite(p string, flags int) error {
	fd, err := unix.Open(p, flags|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, []byte("x"))
	return err
}

func openWrites() []write {
	return []write{
		{"E002", "append to a file of the host", func(_, f, _ string) error { return openAndWrite(f, unix.O_WRONLY|unix.O_APPEND) }, nil, nil, false},
		{"E014", "truncate(2), which Landlock before ABI 3 does not govern", func(_, f, _ string) error { return unix.Truncate(f, 0) }, nil, nil, false},
		{"E015", "open a descriptor for reading again for writing", reopenForWriting, magicRefused, nil, false},
		{"E016", "open for reading and writing", func(_, f, _ string) error { return openAndWrite(f, unix.O_RDWR) }, nil, nil, false},
		{"A101", "open for writing", func(_, f, _ string) error { return openAndWrite(f, unix.O_WRONLY) }, nil, nil, false},
		{"A102", "truncate by opening", func(_, f, _ string) error { return openAndWrite(f, unix.O_WRONLY|unix.O_TRUNC) }, nil, nil, false},
		{"A103", "truncate by opening for reading", func(_, f, _ string) error { return openOnly(f, unix.O_RDONLY|unix.O_TRUNC) }, nil, nil, false},
		{"A104", "create a file", func(_, _, n string) error { return openAndWrite(n, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL) }, nil, nil, false},
		{"A105", "create a file, opened for reading", func(_, _, n string) error { return openOnly(n, unix.O_RDONLY|unix.O_CREAT) }, nil, nil, false},
		{"A106", "create relative to a directory descriptor", createAt, nil, nil, false},
		{"A107", "create with openat2", openat2Create, []errno{unix.ENOSYS}, []errno{unix.ENOSYS}, false},
		{"A108", "a nameless file that gets a name", tmpfileLink, nil, []errno{unix.EOPNOTSUPP}, false},
		{"A109", "map a file shared and writable", mapShared, nil, nil, false},
		{"A110", "the same with O_PATH first", pathThenWrite, magicRefused, nil, false},
	}
}

func openOnly(p string, flags int) error {
	fd, err := unix.Open(p, flags|unix.O_CLOEXEC, 0o644)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func fdPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

func reopenForWriting(_, f, _ string) error {
	fd, err := unix.Open(f, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return broken(err)
	}
	return openAndWrite(fdPath(fd), unix.O_WRONLY)
}

func pathThenWrite(_, f, _ string) error {
	fd, err := unix.Open(f, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return broken(err)
	}
	return openAndWrite(fdPath(fd), unix.O_WRONLY)
}

// openDir opens a directory of the host.
func openDir(d string) (int, error) {
	fd, err := unix.Open(d, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	return fd, broken(err)
}

func createAt(d, _, n string) error {
	dir, err := openDir(d)
	if err != nil {
		return err
	}
	_, err = unix.Openat(dir, filepath.Base(n), unix.O_WRONLY|unix.O_CREAT|unix.O_CLOEXEC, 0o644)
	return err
}

func openat2Create(_, _, n string) error {
	_, err := unix.Openat2(unix.AT_FDCWD, n, &unix.OpenHow{Flags: unix.O_WRONLY | unix.O_CREAT | unix.O_CLOEXEC, Mode: 0o644})
	return err
}

func tmpfileLink(d, _, n string) error {
	fd, err := unix.Open(d, unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return err
	}
	return unix.Linkat(unix.AT_FDCWD, fdPath(fd), unix.AT_FDCWD, n, unix.AT_SYMLINK_FOLLOW)
}

func mapShared(_, f, _ string) error {
	fd, err := unix.Open(f, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	m, err := unix.Mmap(fd, 0, 1, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	m[0] ^= 1
	return unix.Msync(m, unix.MS_SYNC)
}

func nameWrites() []write {
	return []write{
		{"E003", "create a directory", func(_, _, n string) error { return unix.Mkdir(n, 0o755) }, nil, nil, false},
		{"A111", "create a directory relative to a descriptor", mkdirAt, nil, nil, false},
		{"A112", "create a FIFO", func(_, _, n string) error { return unix.Mknod(n, unix.S_IFIFO|0o644, 0) }, nil, nil, false},
		{"A113", "create a regular file with mknod", func(_, _, n string) error { return unix.Mknod(n, unix.S_IFREG|0o644, 0) }, nil, nil, false},
		{"A114", "create a symbolic link", func(_, _, n string) error { return unix.Symlink("canary", n) }, nil, nil, false},
		{"A115", "create a hard link", func(_, f, n string) error { return unix.Link(f, n) }, []errno{unix.EXDEV}, nil, false},
		{"A116", "a hard link to a descriptor", linkDescriptor, []errno{unix.EXDEV}, nil, false},
		{"A117", "a hard link in the workspace, then write to it", linkInside, []errno{unix.EXDEV}, nil, false},
		{"A118", "create a socket", bindSocket, nil, nil, false},
		{"A119", "remove a file", func(_, f, _ string) error { return unix.Unlink(f) }, []errno{unix.EBUSY}, nil, false},
		{"A120", "remove a file relative to a descriptor", unlinkAt, []errno{unix.EBUSY}, nil, false},
		{"A121", "remove a directory", func(d, _, _ string) error { return unix.Rmdir(filepath.Join(d, "empty")) }, []errno{unix.EBUSY}, nil, false},
	}
}

func mkdirAt(d, _, n string) error {
	dir, err := openDir(d)
	if err != nil {
		return err
	}
	return unix.Mkdirat(dir, filepath.Base(n), 0o755)
}

func linkDescriptor(_, f, n string) error {
	fd, err := unix.Open(f, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return broken(err)
	}
	return unix.Linkat(unix.AT_FDCWD, fdPath(fd), unix.AT_FDCWD, n, unix.AT_SYMLINK_FOLLOW)
}

func linkInside(_, f, _ string) error {
	alias, err := scratchFile("alias")
	if err != nil {
		return err
	}
	if err := unix.Link(f, alias); err != nil {
		return err
	}
	return openAndWrite(alias, unix.O_WRONLY|unix.O_APPEND)
}

func bindSocket(_, _, n string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return unix.Bind(fd, &unix.SockaddrUnix{Name: n})
}

func unlinkAt(d, f, _ string) error {
	dir, err := openDir(d)
	if err != nil {
		return err
	}
	return unix.Unlinkat(dir, filepath.Base(f), 0)
}

func renameWrites() []write {
	moved := append([]errno{unix.EBUSY}, unix.EXDEV)
	return []write{
		{"A122", "rename in place", func(_, f, n string) error { return unix.Rename(f, n) }, moved, nil, false},
		{"A123", "rename relative to descriptors", renameAt, moved, nil, false},
		{"A124", "rename without replacing", func(_, f, n string) error {
			return unix.Renameat2(unix.AT_FDCWD, f, unix.AT_FDCWD, n, unix.RENAME_NOREPLACE)
		}, moved, nil, false},
		{"A125", "rename that leaves a whiteout", func(_, f, n string) error {
			return unix.Renameat2(unix.AT_FDCWD, f, unix.AT_FDCWD, n, unix.RENAME_WHITEOUT)
		}, append(moved, unix.EINVAL), []errno{unix.EINVAL}, false},
		{"A126", "rename a file of the workspace outwards", renameFrom(func(evil, _, n string) error { return unix.Rename(evil, n) }), moved, nil, false},
		{"A127", "rename a file of the workspace onto one outside", renameFrom(func(evil, f, _ string) error { return unix.Rename(evil, f) }), moved, nil, false},
		{"A128", "rename a file outside into the workspace", renameFrom(func(evil, f, _ string) error { return unix.Rename(f, evil) }), moved, nil, false},
		{"A129", "exchange a file of the workspace with one outside", renameFrom(func(evil, f, _ string) error {
			return unix.Renameat2(unix.AT_FDCWD, evil, unix.AT_FDCWD, f, unix.RENAME_EXCHANGE)
		}), moved, nil, false},
	}
}

// renameFrom makes a file in the workspace before.
func renameFrom(f func(evil, f, n string) error) func(d, f, n string) error {
	return func(_, file, n string) error {
		evil, err := evilFile()
		if err != nil {
			return err
		}
		return f(evil, file, n)
	}
}

func renameAt(d, f, n string) error {
	dir, err := openDir(d)
	if err != nil {
		return err
	}
	return unix.Renameat(dir, filepath.Base(f), dir, filepath.Base(n))
}

func attributeWrites() []write {
	return []write{
		{"E012", "set the times", func(_, f, _ string) error { return unix.UtimesNanoAt(unix.AT_FDCWD, f, longAgo, 0) }, nil, nil, false},
		{"E013", "set an extended attribute", func(_, f, _ string) error { return unix.Setxattr(f, "user.probe", []byte("1"), 0) }, []errno{unix.EOPNOTSUPP}, []errno{unix.EOPNOTSUPP}, false},
		{"A130", "set the times by descriptor", byDescriptor(utimensFd), nil, nil, false},
		{"A131", "set an extended attribute by descriptor", byDescriptor(func(fd int) error { return unix.Fsetxattr(fd, "user.probe", []byte("1"), 0) }), nil, []errno{unix.EOPNOTSUPP}, false},
		{"A132", "remove an extended attribute", func(_, f, _ string) error { return unix.Removexattr(f, "user.given") }, nil, []errno{unix.EOPNOTSUPP, unix.ENODATA}, false},
		{"A133", "change the mode", func(_, f, _ string) error { return unix.Chmod(f, 0o600) }, nil, nil, false},
		{"A134", "change the mode by descriptor", byDescriptor(func(fd int) error { return unix.Fchmod(fd, 0o600) }), nil, nil, false},
		{"A135", "change the mode with fchmodat2", fchmodat2, []errno{unix.ENOSYS}, []errno{unix.ENOSYS}, false},
		{"A136", "change the owner", func(_, f, _ string) error { return unix.Chown(f, 1, 1) }, nil, nil, true},
		{"A137", "change the owner of a link", func(d, _, _ string) error { return unix.Lchown(filepath.Join(d, "link"), 1, 1) }, nil, nil, true},
		{"A138", "change the owner by descriptor", byDescriptor(func(fd int) error { return unix.Fchown(fd, 1, 1) }), nil, nil, true},
		{"A139", "change the inode's flags by descriptor", byDescriptor(noAtime), []errno{unix.ENOTTY, unix.EOPNOTSUPP}, []errno{unix.ENOTTY, unix.EOPNOTSUPP}, false},
	}
}

// longAgo is 2001-01-01.
var longAgo = []unix.Timespec{{Sec: 978307200}, {Sec: 978307200}}

func utimensFd(fd int) error {
	return rawErr(unix.SYS_UTIMENSAT, uintptr(fd), 0, address(&longAgo[0]), 0)
}

// byDescriptor opens the file for reading before.
func byDescriptor(f func(fd int) error) func(d, f, n string) error {
	return func(_, file, _ string) error {
		fd, err := unix.Open(file, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return broken(err)
		}
		defer unix.Close(fd)
		return f(fd)
	}
}

const sysFchmodat2 = 452 // on every architecture

func fchmodat2(_, f, _ string) error {
	return rawErr(sysFchmodat2, atCWD, cstring(f), 0o600, 0)
}

const fsNoAtime = 0x80 // FS_NOATIME_FL, ioctl_iflags(2): harmless

func noAtime(fd int) error {
	flags, err := unix.IoctlGetUint32(fd, unix.FS_IOC_GETFLAGS)
	if err != nil {
		return err
	}
	return unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, int(flags^fsNoAtime))
}
