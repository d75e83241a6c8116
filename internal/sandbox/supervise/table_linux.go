package supervise

import "golang.org/x/sys/unix"

// table answers the supervised calls. Arguments are in the order of each
// call's manual page.
var table = map[int32]handler{
	unix.SYS_OPENAT:    handleOpenat,
	unix.SYS_MKDIRAT:   func(c *call) error { return c.mkdir(int32(c.Args[0]), c.Args[1], uint32(c.Args[2])) },
	unix.SYS_MKNODAT:   func(c *call) error { return c.mknod(int32(c.Args[0]), c.Args[1], uint32(c.Args[2])) },
	unix.SYS_SYMLINKAT: func(c *call) error { return c.symlink(c.Args[0], int32(c.Args[1]), c.Args[2]) },
	unix.SYS_UNLINKAT:  func(c *call) error { return c.remove(int32(c.Args[0]), c.Args[1], int(int32(c.Args[2]))) },
	unix.SYS_LINKAT: func(c *call) error {
		return c.link(int32(c.Args[0]), c.Args[1], int32(c.Args[2]), c.Args[3], int(int32(c.Args[4])))
	},
	unix.SYS_RENAMEAT: func(c *call) error {
		return c.rename(int32(c.Args[0]), c.Args[1], int32(c.Args[2]), c.Args[3], 0)
	},
	unix.SYS_RENAMEAT2: func(c *call) error {
		return c.rename(int32(c.Args[0]), c.Args[1], int32(c.Args[2]), c.Args[3], uint(uint32(c.Args[4])))
	},
	unix.SYS_TRUNCATE: func(c *call) error { return c.truncate(c.Args[0], int64(c.Args[1])) },
	unix.SYS_FCHMOD:   func(c *call) error { return c.chmodOpen(int(int32(c.Args[0])), uint32(c.Args[1])) },
	unix.SYS_FCHMODAT: func(c *call) error { return c.chmodAt(int32(c.Args[0]), c.Args[1], uint32(c.Args[2]), 0) },
	sysFchmodat2: func(c *call) error {
		return c.chmodAt(int32(c.Args[0]), c.Args[1], uint32(c.Args[2]), int(int32(c.Args[3])))
	},
	unix.SYS_UMASK:    handleUmask,
	unix.SYS_CONNECT:  func(c *call) error { return c.connect(int(int32(c.Args[0])), c.Args[1], c.Args[2]) },
	unix.SYS_BIND:     func(c *call) error { return c.bind(int(int32(c.Args[0])), c.Args[1], c.Args[2]) },
	unix.SYS_EXECVE:   func(c *call) error { return c.exec(unix.AT_FDCWD, c.Args[0], c.Args[1], 0) },
	unix.SYS_EXECVEAT: func(c *call) error { return c.exec(int32(c.Args[0]), c.Args[1], c.Args[2], int(int32(c.Args[4]))) },
}
