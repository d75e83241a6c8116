package supervise

import "golang.org/x/sys/unix"

// The calls of the old table: the same without directory descriptors.
func init() {
	const cwd = unix.AT_FDCWD
	table[unix.SYS_OPEN] = handleOpen
	table[unix.SYS_CREAT] = handleCreat
	table[unix.SYS_MKDIR] = func(c *call) error { return c.mkdir(cwd, c.Args[0], uint32(c.Args[1])) }
	table[unix.SYS_MKNOD] = func(c *call) error { return c.mknod(cwd, c.Args[0], uint32(c.Args[1])) }
	table[unix.SYS_CHMOD] = func(c *call) error { return c.chmodAt(cwd, c.Args[0], uint32(c.Args[1]), 0) }
	table[unix.SYS_SYMLINK] = func(c *call) error { return c.symlink(c.Args[0], cwd, c.Args[1]) }
	table[unix.SYS_LINK] = func(c *call) error { return c.link(cwd, c.Args[0], cwd, c.Args[1], 0) }
	table[unix.SYS_UNLINK] = func(c *call) error { return c.remove(cwd, c.Args[0], 0) }
	table[unix.SYS_RMDIR] = func(c *call) error { return c.remove(cwd, c.Args[0], unix.AT_REMOVEDIR) }
	table[unix.SYS_RENAME] = func(c *call) error { return c.rename(cwd, c.Args[0], cwd, c.Args[1], 0) }
}
