package supervise

import (
	"bytes"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// The fast path. Most names are made, moved and removed in a directory where the same
// program has just done that to others. For those the supervisor makes half as many
// system calls. It takes the caller's directory from the kernel without resolving its
// path, follows no link, and remembers for a moment where that directory lies. All else
// is the same: the rules, that the supervisor carries the call out, and that it does so
// after its last look at the caller. A call that is unusual in any way, or fails, takes
// the slow path, which says why.
//
// Remembered state can be older than the call by knownTime, since programs of the host
// and other sessions move directories too. A new name is then as good as one made that
// much earlier, before the directory moved; a removed name as one that was removed
// earlier. Existing files are neither written nor replaced by it, except in a private
// git directory. The session's own renames of directories forget all.

const (
	knownTime = 2 * time.Millisecond
	maxKnown  = 128 // directories
	maxText   = 512 // bytes of a path
)

// anyName stands for any name that no rule knows.
const anyName = "bawn-any-name"

// resolveFast is how the directory of a path is found.
const resolveFast = unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS

// A knownDir holds the findings about a directory.
type knownDir struct {
	path  string // where it lies in the guest
	own   bool   // in a private git directory, where no rule holds
	plain bool   // on the guest's mounts, and a name in it goes by its spelling alone
	until time.Time
}

// A fastPlace is a name in such a directory.
type fastPlace struct {
	place
	knownDir
}

// dirID tells a directory on a mount from all others.
type dirID struct {
	fileID
	mount uint64
}

// fast finds the name that a path argument means. It reports false where that takes the
// slow path; otherwise the place is to be closed, and nothing was asked yet whether the
// caller is still there.
func (c *call) fast(dirfd int32, addr uint64) (p fastPlace, ok bool) {
	if c.s.knownDirs == nil {
		return p, false
	}
	text := c.shortText(addr)
	at := bytes.LastIndexByte(text, '/') + 1
	name := string(text[at:])
	if name == "" || name == "." || name == ".." {
		return p, false
	}
	dir, err := c.fastDirectory(dirfd, string(text[:at]))
	if err != nil {
		return p, false
	}
	d := c.remembered(dir)
	if !d.plain {
		unix.Close(dir)
		return p, false
	}
	return fastPlace{place{dir: dir, name: name, abs: d.path + "/" + name}, d}, true
}

// shortText reads a short path. It is empty where that can't be read at once.
func (c *call) shortText(addr uint64) []byte {
	buf := c.buf.path[:min(maxText, 4096-int(addr%4096))]
	n, err := c.read(addr, buf)
	if err != nil {
		return nil
	}
	return buf[:max(bytes.IndexByte(buf[:n], 0), 0)]
}

// fastDirectory opens the directory of a path, from the caller's own or from the guest's
// root.
func (c *call) fastDirectory(dirfd int32, dir string) (int, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_DIRECTORY, Resolve: resolveFast | unix.RESOLVE_BENEATH}
	if dir != "" && dir[0] == '/' {
		how.Resolve ^= unix.RESOLVE_BENEATH ^ unix.RESOLVE_IN_ROOT
		return unix.Openat2(c.s.root, dir, &how)
	}
	name := "cwd"
	if dirfd != unix.AT_FDCWD {
		name = "fd/" + strconv.Itoa(int(dirfd))
	}
	base, err := c.openOwn(name)
	if err != nil || dir == "" {
		return base, err
	}
	defer unix.Close(base)
	return unix.Openat2(base, dir, &how)
}

// openOwn opens a directory that the caller has.
func (c *call) openOwn(name string) (int, error) {
	const flags = unix.O_PATH | unix.O_CLOEXEC | unix.O_DIRECTORY
	if proc, ok := c.s.umasks.proc(c.TID); ok {
		if fd, err := unix.Openat(proc, name, flags, 0); err == nil {
			return fd, nil
		}
	}
	return unix.Open(c.proc(name), flags, 0)
}

// remembered returns the known state of an open directory, found out anew if that was a
// while ago.
func (c *call) remembered(dir int) knownDir {
	id, ok := identifyDir(dir)
	if !ok {
		return knownDir{}
	}
	d, now := c.s.knownDirs[id], time.Now()
	if now.Before(d.until) {
		return d
	}
	if len(c.s.knownDirs) >= maxKnown {
		clear(c.s.knownDirs)
	}
	d = c.lookAround(dir, id)
	d.until = now.Add(knownTime)
	c.s.knownDirs[id] = d
	return d
}

// identifyDir reports false on a file system that can't say for certain.
func identifyDir(dir int) (dirID, bool) {
	st, err := mountOf(dir, "")
	return dirID{idOf(&st), st.Mnt_id}, err == nil && st.Mask&unix.STATX_BTIME != 0
}

// lookAround finds out where a directory lies, and whether the guest finds the same one
// there: a caller may hold one of the host's mounts.
func (c *call) lookAround(dir int, id dirID) (d knownDir) {
	abs, err := realPath(dir)
	if err != nil || abs == "" || abs[0] != '/' {
		return d
	}
	fd, err := c.openReal(abs)
	if err != nil {
		return d
	}
	defer unix.Close(fd)
	if here, ok := identifyDir(fd); !ok || here != id {
		return d
	}
	if d.path = abs; abs == "/" {
		d.path = ""
	}
	d.own = c.s.git.knows(id.mount)
	v := c.ruleAt(layout.OpOpen, place{dir: dir, name: anyName, abs: d.path + "/" + anyName}, false)
	d.plain = v.ruling == layout.RulingAllow
	return d
}

// allows reports whether the rules let op happen to a place, whatever else is there.
func (c *call) allows(op layout.Operation, p *fastPlace, isDir bool) bool {
	if p.own {
		return true
	}
	if isPart(op, firstPart(c.s.names, p.name)) {
		return false
	}
	r, _ := c.s.names.Rule(op, p.abs, isDir)
	return r == layout.RulingAllow
}

// fastMkdir reports whether it has carried mkdir(2) out.
func (c *call) fastMkdir(dirfd int32, addr uint64, mode uint32) bool {
	p, ok := c.fast(dirfd, addr)
	if !ok {
		return false
	}
	defer p.close()
	return c.allows(layout.OpMkdir, &p, true) && c.withUmask() == nil && unix.Mkdirat(p.dir, p.name, mode&0o1777) == nil
}

// fastCreate creates a file and opens it, or reports false.
func (c *call) fastCreate(dirfd int32, addr uint64, flags int, mode uint32) (fd int, ok bool) {
	if flags&unix.O_CREAT == 0 || flags&unix.O_DIRECTORY != 0 {
		return -1, false
	}
	p, ok := c.fast(dirfd, addr)
	if !ok {
		return -1, false
	}
	defer p.close()
	if !c.allows(layout.OpOpen, &p, false) || c.withUmask() != nil {
		return -1, false
	}
	fd, err := unix.Openat(p.dir, p.name, flags&keptFlags|unix.O_CREAT|unix.O_EXCL|unix.O_NOCTTY|unix.O_CLOEXEC, mode&0o1777)
	return fd, err == nil
}

// fastRename reports whether it has renamed a file to a name that was free, or within
// private git directories to any name.
func (c *call) fastRename(olddir int32, oldAddr uint64, newdir int32, newAddr uint64, flags uint) bool {
	if flags&^unix.RENAME_NOREPLACE != 0 {
		return false
	}
	from, ok := c.fast(olddir, oldAddr)
	if !ok {
		return false
	}
	defer from.close()
	to, ok := c.fast(newdir, newAddr)
	if !ok {
		return false
	}
	defer to.close()
	if _, ok := plainFile(from.place); !ok || !c.allows(layout.OpRenameFrom, &from, false) || !c.allows(layout.OpRenameTo, &to, false) {
		return false
	}
	if _, ok := plainFile(to.place); !to.own || !ok {
		flags |= unix.RENAME_NOREPLACE
	}
	return c.valid() == nil && unix.Renameat2(from.dir, from.name, to.dir, to.name, flags) == nil
}

// fastLink reports whether it has given a file another name.
func (c *call) fastLink(olddir int32, oldAddr uint64, newdir int32, newAddr uint64) bool {
	from, ok := c.fast(olddir, oldAddr)
	if !ok {
		return false
	}
	defer from.close()
	to, ok := c.fast(newdir, newAddr)
	if !ok {
		return false
	}
	defer to.close()
	fd, err := unix.Openat(from.dir, from.name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	st, ok := plainFile(place{dir: fd})
	if !ok || !c.allows(layout.OpLinkFrom, &from, false) || !c.allows(layout.OpLinkTo, &to, false) || c.valid() != nil {
		return false
	}
	if unix.Linkat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(fd), to.dir, to.name, unix.AT_SYMLINK_FOLLOW) != nil {
		return false
	}
	if st.Nlink == 1 || c.s.linked[idOf(&st)] {
		c.s.remember(fd)
	}
	return true
}

// fastRemove reports whether it has removed the file at a name.
func (c *call) fastRemove(dirfd int32, addr uint64, flags int) bool {
	p, ok := c.fast(dirfd, addr)
	if !ok {
		return false
	}
	defer p.close()
	st, unmounted := look(p.place)
	if !unmounted || !c.allows(layout.OpRemove, &p, flags&unix.AT_REMOVEDIR != 0) || c.valid() != nil || unix.Unlinkat(p.dir, p.name, flags) != nil {
		return false
	}
	c.s.removed(&st, flags)
	return true
}

// plainFile reports whether a regular file is at a place, and nothing is mounted on it.
func plainFile(p place) (st unix.Statx_t, ok bool) {
	st, unmounted := look(p)
	return st, unmounted && st.Mode&unix.S_IFMT == unix.S_IFREG
}

// look reports whether something is at a place, and nothing is mounted on it.
func look(p place) (st unix.Statx_t, unmounted bool) {
	err := unix.Statx(p.dir, p.name, unix.AT_EMPTY_PATH|unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &st)
	return st, err == nil && st.Attributes_mask&^st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}
