package main

import "golang.org/x/sys/unix"

// legacyWrites is empty: this architecture never had the old calls, but for
// one.
func legacyWrites() []write {
	return []write{{"A157", "renameat(2)", func(_, f, n string) error {
		return rawErr(unix.SYS_RENAMEAT, atCWD, cstring(f), atCWD, cstring(n))
	}, []errno{unix.EBUSY, unix.EXDEV}, nil, false}}
}

// legacyCreate makes a file at p.
func legacyCreate(p string) error { return writeNew(p) }
