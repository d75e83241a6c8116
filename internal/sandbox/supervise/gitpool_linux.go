package supervise

import (
	"crypto/rand"
	"encoding/json"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/linux/rawproc"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// A repository that a guest makes in a place of the host's has its git directory
// in the session's pool. The host has an empty .git in its place, which git takes
// for nothing, and on which the supervisor mounts an entry of the pool in the
// guest. A mount lies on a directory and not on a name, so that it follows where
// the repository is moved to, and ends where .git is removed.

// maxPool bounds how many a guest can make its supervisor mount.
const maxPool = 4096

// gitPool mounts entries of a pool.
type gitPool struct {
	ready       chan struct{} // closed once the namespaces are known
	mount, user int           // the guest's namespaces
	made        map[uint64]string
}

// newGitPool is nil where the plan has no pool.
func newGitPool(mounts []layout.Mount) *gitPool {
	for _, m := range mounts {
		if m.Kind == layout.KindPool {
			return &gitPool{ready: make(chan struct{}), made: map[uint64]string{}}
		}
	}
	return nil
}

// open tells in which namespaces to mount. The pool may be nil.
func (g *gitPool) open(mounts int) error {
	if g == nil {
		return nil
	}
	user, err := unix.IoctlRetInt(mounts, unix.NS_GET_USERNS)
	if err != nil {
		return err
	}
	g.mount, g.user = mounts, user
	close(g.ready)
	return nil
}

// makeGit makes an entry called .git, empty on the host, and the guest's own in
// the guest.
func (c *call) makeGit(p place, mode uint32, isDir bool) error {
	pool := c.s.pool
	if pool == nil || len(pool.made) >= maxPool {
		return c.denied(layout.OpMkdir, p.abs, layout.RuleGit)
	}
	select {
	case <-pool.ready:
	case <-c.s.stop:
		return unix.EINTR
	}
	mask, err := c.umask()
	if err != nil {
		return err
	}
	unix.Umask(0)
	mode &^= uint32(mask)
	if isDir {
		return c.coverNew(p, unix.Mkdirat(p.dir, p.name, mode), mode, unix.AT_REMOVEDIR)
	}
	return c.coverNew(p, unix.Mknodat(p.dir, p.name, unix.S_IFREG|mode, 0), mode, 0)
}

// coverNew covers a new file, unless making it erred, or removes it again.
func (c *call) coverNew(p place, err error, mode uint32, flags int) error {
	if err != nil {
		return c.tell(p, err)
	}
	if err := c.cover(p, mode, flags == unix.AT_REMOVEDIR); err != nil {
		_ = unix.Unlinkat(p.dir, p.name, flags)
		return err
	}
	return nil
}

// cover mounts a new entry of the pool on a new file at a place.
func (c *call) cover(p place, mode uint32, isDir bool) error {
	under, err := unix.Openat(p.dir, p.name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(under)
	at, err := mountOf(under, "")
	if err != nil {
		return err
	}
	if (at.Mode&unix.S_IFMT == unix.S_IFDIR) != isDir {
		return unix.EEXIST
	}
	note, err := json.Marshal(sandbox.PoolEntry{
		Path: p.abs, Dev: unix.Mkdev(at.Dev_major, at.Dev_minor), Ino: at.Ino, BornSec: at.Btime.Sec, BornNsec: int64(at.Btime.Nsec),
	})
	if err != nil {
		return err
	}
	name := rand.Text()
	if err := c.s.pool.attach(name, note, under, mode, isDir); err != nil {
		return unix.EIO
	}
	return c.covered(p, name, &at)
}

// covered notes the mount, if it is one.
func (c *call) covered(p place, name string, under *unix.Statx_t) error {
	st, err := mountOf(p.dir, p.name)
	same := st.Ino == under.Ino && st.Dev_major == under.Dev_major && st.Dev_minor == under.Dev_minor
	if err != nil || st.Attributes&unix.STATX_ATTR_MOUNT_ROOT == 0 || st.Mnt_id == under.Mnt_id || same {
		return unix.EIO
	}
	c.s.pool.made[st.Mnt_id] = name
	c.s.git.add(st.Mnt_id)
	return nil
}

// attach makes an entry of the pool and mounts it, from inside. The guest can't
// name the mounted directory, and its mount point is open.
func (g *gitPool) attach(name string, note []byte, under int, mode uint32, isDir bool) error {
	entry := path.Join(layout.PoolPlace, name)
	p := g.enter()
	tree, file := p.NewSlot(), p.NewSlot()
	p.Call("make an entry of the pool", unix.SYS_MKDIRAT, unix.AT_FDCWD, entry, 0o700)
	p.Call("make a note of it", unix.SYS_OPENAT, unix.AT_FDCWD, path.Join(entry, sandbox.PoolNote), unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o600).Into(file)
	p.Call("write the note", unix.SYS_WRITE, file, note, len(note))
	git := path.Join(entry, sandbox.PoolGit)
	if isDir {
		p.Call("make a git directory", unix.SYS_MKDIRAT, unix.AT_FDCWD, git, int(mode))
	} else {
		p.Call("make a git file", unix.SYS_MKNODAT, unix.AT_FDCWD, git, unix.S_IFREG|int(mode), 0)
	}
	p.Call("clone it", unix.SYS_OPEN_TREE, unix.AT_FDCWD, git, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_SYMLINK_NOFOLLOW).Into(tree)
	p.Call("mount it", unix.SYS_MOVE_MOUNT, tree, "", under, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
	return rawproc.Apart(p)
}

// enter begins a program in the guest's namespaces.
func (g *gitPool) enter() *rawproc.Program {
	p := &rawproc.Program{}
	p.Call("enter the guest's user namespace", unix.SYS_SETNS, g.user, unix.CLONE_NEWUSER)
	p.Call("enter the guest's mount namespace", unix.SYS_SETNS, g.mount, unix.CLONE_NEWNS)
	return p
}

// removeGit removes a .git that the guest has made, with the mount on it: the
// kernel drops a mount whose mount point is removed from another mount
// namespace. It reports false if the mount is not of the pool.
func (c *call) removeGit(p place, flags int) (bool, error) {
	id, isDir, err := rootID(p)
	name := ""
	if c.s.pool != nil {
		name = c.s.pool.made[id]
	}
	switch {
	case err != nil || name == "":
		return false, err
	case isDir != (flags&unix.AT_REMOVEDIR != 0):
		return true, map[bool]unix.Errno{true: unix.EISDIR, false: unix.ENOTDIR}[isDir]
	case isDir && !c.emptyAt(p):
		return true, unix.ENOTEMPTY
	}
	if err := unix.Unlinkat(p.dir, p.name, flags); err != nil {
		return true, c.tell(p, err)
	}
	delete(c.s.pool.made, id)
	c.s.git.drop(id)
	c.s.pool.drop(name, isDir)
	return true, nil
}

// rootID is the mount on a place, and whether it is a directory.
func rootID(p place) (id uint64, isDir bool, err error) {
	st, err := mountOf(p.dir, p.name)
	return st.Mnt_id, st.Mode&unix.S_IFMT == unix.S_IFDIR, err
}

// emptyAt reports whether the guest sees an empty directory at a place.
func (c *call) emptyAt(p place) bool {
	fd, err := unix.Openat(p.dir, p.name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	dir := os.NewFile(uintptr(fd), p.abs)
	defer dir.Close()
	names, _ := dir.Readdirnames(1)
	return len(names) == 0
}

// drop removes an entry of the pool that nothing shows any longer. A failure
// leaves an empty one.
func (g *gitPool) drop(name string, isDir bool) {
	entry, p, flags := path.Join(layout.PoolPlace, name), g.enter(), 0
	if isDir {
		flags = unix.AT_REMOVEDIR
	}
	p.Call("remove a git directory", unix.SYS_UNLINKAT, unix.AT_FDCWD, path.Join(entry, sandbox.PoolGit), flags)
	p.Call("remove the note of it", unix.SYS_UNLINKAT, unix.AT_FDCWD, path.Join(entry, sandbox.PoolNote), 0)
	p.Call("remove its entry", unix.SYS_UNLINKAT, unix.AT_FDCWD, entry, unix.AT_REMOVEDIR)
	_ = rawproc.Apart(p)
}

// close releases the namespaces. The pool may be nil.
func (g *gitPool) close() {
	if g == nil {
		return
	}
	select {
	case <-g.ready:
		unix.Close(g.user)
	default:
	}
}
