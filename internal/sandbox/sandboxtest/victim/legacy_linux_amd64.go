package main

import (
	"golang.org/x/sys/unix"
)

// legacyWrites use the calls that newer architectures no longer have and that
// filters forget.
func legacyWrites() []write {
	call := func(nr int, args func(d, f, n string) []uintptr) func(d, f, n string) error {
		return func(d, f, n string) error { return rawErr(nr, args(d, f, n)...) }
	}
	one := func(rest ...uintptr) func(d, f, n string) []uintptr {
		return func(_, f, _ string) []uintptr { return append([]uintptr{cstring(f)}, rest...) }
	}
	fresh := func(rest ...uintptr) func(d, f, n string) []uintptr {
		return func(_, _, n string) []uintptr { return append([]uintptr{cstring(n)}, rest...) }
	}
	both := func(_, f, n string) []uintptr { return []uintptr{cstring(f), cstring(n)} }
	moved := []errno{unix.EBUSY, unix.EXDEV}
	return []write{
		{"A150", "open(2)", call(unix.SYS_OPEN, fresh(unix.O_WRONLY|unix.O_CREAT, 0o644)), nil, nil, false},
		{"A151", "creat(2)", call(unix.SYS_CREAT, fresh(0o644)), nil, nil, false},
		{"A152", "mkdir(2)", call(unix.SYS_MKDIR, fresh(0o755)), nil, nil, false},
		{"A153", "mknod(2)", call(unix.SYS_MKNOD, fresh(unix.S_IFREG|0o644, 0)), nil, nil, false},
		{"A154", "symlink(2)", call(unix.SYS_SYMLINK, both), nil, nil, false},
		{"A155", "link(2)", call(unix.SYS_LINK, both), moved, nil, false},
		{"A156", "rename(2)", call(unix.SYS_RENAME, both), moved, nil, false},
		{"A157", "renameat(2)", func(_, f, n string) error {
			return rawErr(unix.SYS_RENAMEAT, atCWD, cstring(f), atCWD, cstring(n))
		}, moved, nil, false},
		{"A158", "unlink(2)", call(unix.SYS_UNLINK, one()), moved, nil, false},
		{"A159", "chmod(2)", call(unix.SYS_CHMOD, one(0o600)), nil, nil, false},
		{"A160", "chown(2)", call(unix.SYS_CHOWN, one(1, 1)), nil, nil, true},
		{"A161", "utime(2)", call(unix.SYS_UTIME, one(address(&[2]int64{1, 1}))), nil, nil, false},
		{"A162", "utimes(2)", call(unix.SYS_UTIMES, one(address(&[4]int64{1, 0, 1, 0}))), nil, nil, false},
		{"A163", "futimesat(2)", func(_, f, _ string) error {
			return rawErr(unix.SYS_FUTIMESAT, atCWD, cstring(f), address(&[4]int64{1, 0, 1, 0}))
		}, nil, nil, false},
	}
}

// legacyCreate makes a file at p by the oldest calls there are.
func legacyCreate(p string) error {
	fd, e := raw(unix.SYS_CREAT, cstring(p), 0o644)
	if e != 0 {
		return e
	}
	defer unix.Close(int(fd))
	_, err := unix.Write(int(fd), evilText)
	return err
}
