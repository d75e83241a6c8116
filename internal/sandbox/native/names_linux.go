package native

import (
	"errors"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// mkdir carries out mkdir(2) and mkdirat(2).
func (c *call) mkdir(dirfd int32, addr uint64, mode uint32) error {
	p, err := c.placeOf(dirfd, addr)
	if err != nil {
		return named(err, unix.EEXIST)
	}
	defer p.close()
	if _, err := p.stat(); err == nil {
		return unix.EEXIST
	}
	if _, err := c.check(opMkdir, p.abs, true); err != nil {
		return err
	}
	if err := c.withUmask(); err != nil {
		return err
	}
	err = unix.Mkdirat(p.dir, p.name, mode&0o1777)
	if err == nil && fold(p.name) == ".git" {
		if id, _, err := identify(p.dir, p.name); err == nil {
			c.s.repos.made[id] = true
		}
	}
	return c.tell(p, err)
}

// tell reports a failure on a read-only mount before it is answered.
func (c *call) tell(p place, err error) error {
	if err == unix.EROFS {
		c.readOnly(p.abs)
	}
	return err
}

// mknod carries out mknod(2) and mknodat(2) for what needs no capability.
func (c *call) mknod(dirfd int32, addr uint64, mode uint32) error {
	switch mode & unix.S_IFMT {
	case 0, unix.S_IFREG, unix.S_IFIFO, unix.S_IFSOCK:
	default:
		return unix.EPERM
	}
	p, err := c.placeOf(dirfd, addr)
	if err != nil {
		return named(err, unix.EEXIST)
	}
	defer p.close()
	if _, err := p.stat(); err == nil {
		return unix.EEXIST
	}
	if p.slash {
		return unix.ENOENT
	}
	if _, err := c.check(opMknod, p.abs, false); err != nil {
		return err
	}
	if err := c.withUmask(); err != nil {
		return err
	}
	return c.tell(p, unix.Mknodat(p.dir, p.name, mode&(unix.S_IFMT|0o1777), 0))
}

// symlink carries out symlink(2) and symlinkat(2).
func (c *call) symlink(target uint64, dirfd int32, addr uint64) error {
	to, err := c.str(target)
	if err != nil {
		return err
	}
	p, err := c.placeOf(dirfd, addr)
	if err != nil {
		return named(err, unix.EEXIST)
	}
	defer p.close()
	if _, err := p.stat(); err == nil {
		return unix.EEXIST
	}
	if p.slash {
		return unix.ENOENT
	}
	if _, err := c.check(opSymlink, p.abs, false); err != nil {
		return err
	}
	return c.tell(p, unix.Symlinkat(to, p.dir, p.name))
}

// link carries out link(2) and linkat(2).
func (c *call) link(olddir int32, oldAddr uint64, newdir int32, newAddr uint64, flags int) error {
	if flags&^(unix.AT_EMPTY_PATH|unix.AT_SYMLINK_FOLLOW) != 0 {
		return unix.EINVAL
	}
	source, err := c.linkSource(olddir, oldAddr, flags)
	if err != nil {
		return err
	}
	defer unix.Close(source)
	from, err := realPath(source)
	if err != nil {
		return err
	}
	if r, rule := c.s.names.rule(opLinkFrom, from, false); r != rulingAllow {
		return c.denied(opLinkFrom, from, rule)
	}
	to, err := c.placeOf(newdir, newAddr)
	if err != nil {
		return named(err, unix.EEXIST)
	}
	defer to.close()
	if _, err := to.stat(); err == nil {
		return unix.EEXIST
	}
	if r, rule := c.s.names.rule(opLinkTo, to.abs, false); r != rulingAllow {
		return c.denied(opLinkTo, to.abs, rule)
	}
	if to.slash {
		return unix.ENOENT
	}
	return c.tell(to, unix.Linkat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(source), to.dir, to.name, unix.AT_SYMLINK_FOLLOW))
}

// linkSource opens what is to get another name.
func (c *call) linkSource(dirfd int32, addr uint64, flags int) (int, error) {
	p, err := c.str(addr)
	if err != nil {
		return -1, err
	}
	if p == "" {
		if flags&unix.AT_EMPTY_PATH == 0 {
			return -1, unix.ENOENT
		}
		return c.ownDescriptor(int(dirfd))
	}
	if !path.IsAbs(p) {
		base, err := c.base(dirfd)
		if err != nil {
			return -1, err
		}
		p = base + "/" + p
	}
	if flags&unix.AT_SYMLINK_FOLLOW == 0 {
		return c.openPath(p, unix.O_NOFOLLOW)
	}
	if n, ok := c.descriptorPath(p); ok {
		return c.ownDescriptor(n)
	}
	return c.openPath(p, 0)
}

// ownDescriptor opens as O_PATH what the caller has open as n, if it lies on
// the guest's mounts or nowhere at all.
func (c *call) ownDescriptor(n int) (int, error) {
	fd, err := unix.Open(c.proc("fd/"+strconv.Itoa(n)), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, unix.ENOENT
	}
	return fd, c.valid()
}

// rename carries out rename(2), renameat(2) and renameat2(2).
func (c *call) rename(olddir int32, oldAddr uint64, newdir int32, newAddr uint64, flags uint) error {
	const both = unix.RENAME_NOREPLACE | unix.RENAME_EXCHANGE
	if flags&^both != 0 || flags == both {
		return unix.EINVAL // RENAME_WHITEOUT makes a device
	}
	from, err := c.placeOf(olddir, oldAddr)
	if err != nil {
		return named(err, unix.EBUSY)
	}
	defer from.close()
	to, err := c.placeOf(newdir, newAddr)
	if err != nil {
		return named(err, unix.EBUSY)
	}
	defer to.close()
	st, err := from.stat()
	if err != nil { // what can't be looked at can't be ruled on
		return err
	}
	isDir := st.Mode&unix.S_IFMT == unix.S_IFDIR
	if (from.slash || to.slash) && !isDir {
		return unix.ENOTDIR
	}
	if c.isNewConfig(from, to, flags) {
		return c.installConfig(from, to)
	}
	exchange := flags&unix.RENAME_EXCHANGE != 0
	if err := c.checkRename(from, to, isDir, exchange); err != nil {
		return err
	}
	if err := errors.Join(c.fixed(from), c.fixed(to)); err != nil {
		return unix.EBUSY
	}
	return c.tell(to, unix.Renameat2(from.dir, from.name, to.dir, to.name, flags))
}

// checkRename rules on both names; an exchange moves both ways.
func (c *call) checkRename(from, to place, isDir, exchange bool) error {
	moves := []struct {
		op  operation
		abs string
		dir bool
	}{{opRenameFrom, from.abs, isDir}, {opRenameTo, to.abs, isDir}}
	if exchange {
		st, err := to.stat()
		if err != nil {
			return err
		}
		other := st.Mode&unix.S_IFMT == unix.S_IFDIR
		isDir = isDir || other
		moves = append(moves, moves[0], moves[1])
		moves[2].op, moves[2].abs, moves[2].dir = opRenameFrom, to.abs, other
		moves[3].op, moves[3].abs, moves[3].dir = opRenameTo, from.abs, other
	}
	if isDir && c.s.names.zone(from.abs) != c.s.names.zone(to.abs) {
		return c.denied(opRenameTo, to.abs, "protected:.git")
	}
	if isDir && c.s.names.only != nil && c.s.names.innermost(from.abs) != c.s.names.innermost(to.abs) {
		return unix.EXDEV // mounts would say so
	}
	for _, m := range moves {
		r, rule := c.s.names.rule(m.op, m.abs, m.dir)
		lock := m.op == opRenameFrom && r == rulingNewLock && strings.HasSuffix(to.abs, ".lock")
		if r != rulingAllow && !lock {
			return c.denied(m.op, m.abs, rule)
		}
	}
	return nil
}

// zone returns the data directory of git's in which names are not ruled on, if
// abs lies in one. A directory must not leave it: what it holds was never
// ruled on by its name.
func (p *protector) zone(abs string) string {
	folded := fold(path.Clean(abs))
	i := strings.Index(folded+"/", "/.git/")
	if i < 0 {
		return ""
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(folded[i:], "/.git/"), "/")
	if !gitData[name] {
		return ""
	}
	return folded[:i] + "/.git/" + name
}

// remove carries out unlink(2), unlinkat(2) and rmdir(2).
func (c *call) remove(dirfd int32, addr uint64, flags int) error {
	p, err := c.placeOf(dirfd, addr)
	if err != nil {
		return named(err, map[bool]unix.Errno{true: unix.EINVAL, false: unix.EISDIR}[flags&unix.AT_REMOVEDIR != 0])
	}
	defer p.close()
	st, err := p.stat()
	if err != nil {
		return err
	}
	if isDir := st.Mode&unix.S_IFMT == unix.S_IFDIR; p.slash && !isDir {
		return unix.ENOTDIR
	}
	r, rule := c.s.names.rule(opRemove, p.abs, flags&unix.AT_REMOVEDIR != 0)
	if r == rulingOwn && c.ownRepository(p.abs) {
		r = rulingAllow
	}
	if r != rulingAllow {
		return c.denied(opRemove, p.abs, rule)
	}
	if p.mounted() {
		return unix.EBUSY
	}
	return c.tell(p, unix.Unlinkat(p.dir, p.name, flags))
}

// truncate carries out truncate(2).
func (c *call) truncate(addr uint64, size int64) error {
	if size < 0 {
		return unix.EINVAL
	}
	if limit := c.s.fileSize; limit > 0 && size > limit {
		return unix.EFBIG // the caller's RLIMIT_FSIZE, which this thread has not
	}
	abs, err := c.path(unix.AT_FDCWD, addr)
	if err != nil {
		return err
	}
	fd, err := c.openAt(openRequest{path: abs, flags: unix.O_WRONLY})
	if err != nil {
		if err == unix.EROFS {
			c.readOnly(abs)
		}
		return err
	}
	defer unix.Close(fd)
	return unix.Ftruncate(fd, size)
}
