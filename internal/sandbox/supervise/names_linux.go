package supervise

import (
	"errors"
	"path"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// mkdir carries out mkdir(2) and mkdirat(2).
func (c *call) mkdir(dirfd int32, addr uint64, mode uint32) error {
	if c.fastMkdir(dirfd, addr, mode) {
		return nil
	}
	p, err := c.placeOf(dirfd, addr)
	if err != nil {
		return named(err, unix.EEXIST)
	}
	defer p.close()
	if _, err := p.stat(); err == nil {
		return unix.EEXIST
	}
	v := c.ruleAt(layout.OpMkdir, p, true)
	if v.ruling == layout.RulingGit {
		return c.makeGit(p, mode&0o1777, true)
	}
	if v.ruling != layout.RulingAllow {
		return c.denied(layout.OpMkdir, p.abs, v.rule)
	}
	if err := c.withUmask(); err != nil {
		return err
	}
	if err := unix.Mkdirat(p.dir, p.name, mode&0o1777); err != nil {
		return c.tell(p, err)
	}
	return c.settle(v, layout.OpMkdir, p.abs, func() error { return unix.Unlinkat(p.dir, p.name, unix.AT_REMOVEDIR) })
}

// tell reports a failure that comes of the session's mounts before it is answered.
func (c *call) tell(p place, err error) error { return c.ofMounts(p.abs, err) }

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
	v, err := c.check(layout.OpMknod, p)
	if err != nil {
		return err
	}
	if err := c.mayWait(p, mode); err != nil {
		return err
	}
	if err := c.withUmask(); err != nil {
		return err
	}
	if err := unix.Mknodat(p.dir, p.name, mode&(unix.S_IFMT|0o1777), 0); err != nil {
		return c.tell(p, err)
	}
	return c.settle(v, layout.OpMknod, p.abs, p.unlink)
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
	v, err := c.check(layout.OpSymlink, p)
	if err != nil {
		return err
	}
	if err := c.mayLeadFrom(p, to); err != nil {
		return err
	}
	if err := unix.Symlinkat(to, p.dir, p.name); err != nil {
		return c.tell(p, err)
	}
	if err := c.stillLeads(p, to); err != nil {
		return err
	}
	return c.settle(v, layout.OpSymlink, p.abs, p.unlink)
}

// link carries out link(2) and linkat(2).
func (c *call) link(olddir int32, oldAddr uint64, newdir int32, newAddr uint64, flags int) error {
	if flags&^(unix.AT_EMPTY_PATH|unix.AT_SYMLINK_FOLLOW) != 0 {
		return unix.EINVAL
	}
	if flags == 0 && c.fastLink(olddir, oldAddr, newdir, newAddr) {
		return nil
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
	if v := c.ruleAt(layout.OpLinkFrom, place{dir: source, abs: from}, false); v.ruling != layout.RulingAllow {
		return c.denied(layout.OpLinkFrom, from, v.rule)
	}
	to, err := c.placeOf(newdir, newAddr)
	if err != nil {
		return named(err, unix.EEXIST)
	}
	defer to.close()
	if _, err := to.stat(); err == nil {
		return unix.EEXIST
	}
	v := c.ruleAt(layout.OpLinkTo, to, false)
	if v.ruling != layout.RulingAllow {
		return c.denied(layout.OpLinkTo, to.abs, v.rule)
	}
	if to.slash {
		return unix.ENOENT
	}
	if err := errors.Join(c.mayShare(source, to), c.mayWaitAt(to, source, "")); err != nil {
		return unix.EACCES
	}
	known := c.onlyHere(source, from)
	if err := unix.Linkat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(source), to.dir, to.name, unix.AT_SYMLINK_FOLLOW); err != nil {
		return c.tell(to, err)
	}
	if known {
		c.s.remember(source)
	}
	return c.settle(v, layout.OpLinkTo, to.abs, to.unlink)
}

// linkSource opens the file that gets another name.
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

// ownDescriptor opens as O_PATH the caller's descriptor n, if it lies on the
// guest's mounts or nowhere at all.
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
	if c.fastRename(olddir, oldAddr, newdir, newAddr, flags) {
		return nil
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
	if err != nil { // an unreadable file can't be judged
		return err
	}
	isDir := st.Mode&unix.S_IFMT == unix.S_IFDIR
	if (from.slash || to.slash) && !isDir {
		return unix.ENOTDIR
	}
	if _, err := to.stat(); err == nil && flags&unix.RENAME_NOREPLACE != 0 {
		return unix.EEXIST
	}
	if err := c.ofGit(from, to); err != nil {
		return err
	}
	moves, err := c.checkRename(from, to, isDir, flags&unix.RENAME_EXCHANGE != 0)
	if err != nil {
		return err
	}
	if err := c.mayWait(to, st.Mode); err != nil {
		return err
	}
	if err := errors.Join(c.fixed(from), c.fixed(to)); err != nil {
		return unix.EBUSY
	}
	moved, err := c.mayMove(from, to, flags)
	if err != nil {
		return err
	}
	clear(c.s.knownDirs)
	if err := unix.Renameat2(from.dir, from.name, to.dir, to.name, flags); err != nil {
		return c.tell(to, err)
	}
	if err := moved.still(); err != nil {
		return err
	}
	for _, m := range moves {
		if err := c.settle(m.verdict, m.op, m.abs, func() error {
			return unix.Renameat2(to.dir, to.name, from.dir, from.name, flags)
		}); err != nil {
			return err
		}
	}
	return nil
}

// a move is one half of a rename.
type move struct {
	op layout.Operation
	place
	isDir bool
	verdict
}

// checkRename rules on both names; an exchange moves both ways.
func (c *call) checkRename(from, to place, isDir, exchange bool) ([]move, error) {
	moves := []move{{op: layout.OpRenameFrom, place: from, isDir: isDir}, {op: layout.OpRenameTo, place: to, isDir: isDir}}
	if exchange {
		st, err := to.stat()
		if err != nil {
			return nil, err
		}
		if err := c.mayWait(from, st.Mode); err != nil {
			return nil, err
		}
		other := st.Mode&unix.S_IFMT == unix.S_IFDIR
		isDir = isDir || other
		moves = append(moves, move{op: layout.OpRenameFrom, place: to, isDir: other}, move{op: layout.OpRenameTo, place: from, isDir: other})
	}
	if isDir && c.s.names.Only != nil && c.s.names.Innermost(from.abs) != c.s.names.Innermost(to.abs) {
		return nil, unix.EXDEV // mounts would say so
	}
	if isDir && (c.s.names.Brings(from.abs, to.abs) || exchange && c.s.names.Brings(to.abs, from.abs)) {
		return nil, c.denied(layout.OpRenameTo, to.abs, RuleHidden)
	}
	for i := range moves {
		m := &moves[i]
		m.verdict = c.ruleAt(m.op, m.place, m.isDir)
		if m.ruling != layout.RulingAllow {
			return nil, c.denied(m.op, m.abs, m.rule)
		}
	}
	return moves, nil
}

// ofGit errs if a rename is to or from a .git of the guest's own. One of the pool
// is on another file system for the guest, so mv copies it; so is a new one, whose
// git directory must be made in the pool.
func (c *call) ofGit(from, to place) error {
	for _, p := range []place{from, to} {
		if !c.s.git.isRoot(p) {
			continue
		}
		if id, _, err := rootID(p); err == nil && c.s.pool != nil && c.s.pool.made[id] != "" {
			return unix.EXDEV
		}
		return unix.EBUSY
	}
	v := c.ruleAt(layout.OpMkdir, to, true)
	if _, err := to.stat(); err == unix.ENOENT && v.ruling == layout.RulingGit && c.s.pool != nil && c.ruleAt(layout.OpRenameFrom, from, true).ruling == layout.RulingAllow {
		return unix.EXDEV
	}
	return nil
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
		return c.ofMounts(abs, err)
	}
	defer unix.Close(fd)
	return unix.Ftruncate(fd, size)
}
