package native

import (
	"io"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// repositories remembers which git directories were made by this session, so
// that git can set up a repository it has just made, and which configurations
// were written in them.
type repositories struct {
	made    fileSet
	configs fileSet
	admins  [8]string // the directories of worktrees made last, for [call.worktreeOf]
	next    int
}

func newRepositories() *repositories {
	return &repositories{made: fileSet{}, configs: fileSet{}}
}

// maxFiles bounds what a guest can make its supervisor remember.
const maxFiles = 1 << 15

// A fileSet remembers files. It never holds more than maxFiles.
type fileSet map[fileID]bool

// add reports whether id is in the set now.
func (s fileSet) add(id fileID) bool {
	if len(s) < maxFiles {
		s[id] = true
	}
	return s[id]
}

// note remembers the directory of a worktree.
func (r *repositories) note(admin string) {
	r.admins[r.next%len(r.admins)] = admin
	r.next++
}

// gitFile creates a file of git's on behalf of the caller, where the ruling is
// neither yes nor no. What is in such a file follows from where it lies, so
// the supervisor writes it itself and lets the caller write into nothing.
func (c *call) gitFile(r ruling, p place) (fd int, handled bool, err error) {
	switch r {
	case rulingGitfile:
		admin, ok := c.worktreeOf(p.abs)
		if !ok {
			return -1, true, c.denied(opOpen, p.abs, "protected:.git")
		}
		err = c.write(p, "gitdir: "+admin+"\n")
	case rulingCommon:
		err = c.write(p, "../..\n")
	case rulingNewLock:
		if c.hostConfig(p) {
			return -1, true, c.denied(opOpen, p.abs, "protected:.git/config")
		}
		return -1, false, nil
	default:
		return -1, false, nil
	}
	if err != nil {
		return -1, true, err
	}
	fd, err = unix.MemfdCreate("git", unix.MFD_CLOEXEC)
	return fd, true, err
}

// existingGitFile opens one of these files when it is there already: git
// rewrites them with what they hold, and that is all it may do.
func (c *call) existingGitFile(r ruling, abs string) (int, error) {
	p, err := c.place(abs)
	if err != nil {
		return -1, err
	}
	defer p.close()
	want := "../..\n"
	if r == rulingGitfile {
		admin, ok := c.worktreeOf(abs)
		if !ok {
			return -1, c.denied(opOpen, abs, "protected:.git")
		}
		want = "gitdir: " + admin + "\n"
	}
	if r == rulingNewLock && !c.hostConfig(p) {
		return unix.Openat(p.dir, p.name, unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	}
	got, err := readAt(p)
	if err != nil || string(got) != want {
		return -1, c.denied(opOpen, abs, "protected:.git")
	}
	return unix.MemfdCreate("git", unix.MFD_CLOEXEC)
}

// write creates the file with the caller's umask.
func (c *call) write(p place, text string) error {
	if err := c.withUmask(); err != nil {
		return err
	}
	fd, err := unix.Openat(p.dir, p.name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o666)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, []byte(text))
	return err
}

// worktreeOf finds the repository directory that a worktree's .git has to
// point at: the one that, inside a real .git directory above or of this
// session, already points back at it.
func (c *call) worktreeOf(gitfile string) (string, bool) {
	for dir := path.Dir(gitfile); ; dir = path.Dir(dir) {
		if _, ok := c.s.names.relative(dir + "/x"); !ok {
			break
		}
		if admin, ok := c.pointsBack(dir+"/.git/worktrees", gitfile); ok {
			return admin, true
		}
	}
	for _, root := range c.s.names.roots {
		if admin, ok := c.pointsBack(path.Join(root, ".git/worktrees"), gitfile); ok {
			return admin, true
		}
	}
	for _, admin := range c.s.repos.admins {
		// Of a bare repository; what such a directory holds was ruled on.
		if admin != "" && c.isRepositoryAt(path.Dir(path.Dir(admin))) && c.leadsTo(admin, gitfile) {
			return admin, true
		}
	}
	return "", false
}

func (c *call) isRepositoryAt(dir string) bool {
	fd, err := c.openReal(dir)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return isRepository(fd, "")
}

// leadsTo reports whether a worktree's directory says that its .git is gitfile.
func (c *call) leadsTo(admin, gitfile string) bool {
	p, err := c.place(admin + "/gitdir")
	if err != nil {
		return false
	}
	defer p.close()
	text, err := readAt(p)
	return err == nil && p.abs == admin+"/gitdir" && strings.TrimSpace(string(text)) == gitfile
}

func (c *call) pointsBack(worktrees, gitfile string) (string, bool) {
	fd, err := c.openPath(worktrees, unix.O_DIRECTORY|unix.O_NOFOLLOW)
	if err != nil {
		return "", false
	}
	defer unix.Close(fd)
	if real, err := realPath(fd); err != nil || real != worktrees {
		return "", false // through a link: not a directory of a .git
	}
	dirfd, err := reopen(fd, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return "", false
	}
	dir := os.NewFile(uintptr(dirfd), worktrees)
	defer dir.Close()
	entries, _ := dir.Readdirnames(1000)
	for _, id := range entries {
		if admin := worktrees + "/" + id; c.leadsTo(admin, gitfile) {
			return admin, true
		}
	}
	return "", false
}

// readAt reads a small regular file at a place.
func readAt(p place) ([]byte, error) {
	fd, err := unix.Openat(p.dir, p.name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), p.abs)
	defer f.Close()
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		return nil, unix.EACCES
	}
	return io.ReadAll(io.LimitReader(f, maxConfig+1))
}

// hostConfig reports whether the configuration beside p is the host's, and
// stays as it is, also if it is absent: it is not only where this session made
// the git directory, and the configuration if there is one.
func (c *call) hostConfig(p place) bool {
	dir, _, err := identify(p.dir, "")
	if err != nil || !c.s.repos.made[dir] {
		return true
	}
	config, _, err := identify(p.dir, "config")
	if err == unix.ENOENT {
		return false
	}
	return err != nil || !c.s.repos.configs[config]
}

// ownRepository reports whether this session made a git directory.
func (c *call) ownRepository(git string) bool {
	if git == "" {
		return false
	}
	fd, err := c.openReal(git)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return c.made(fd)
}

// isNewConfig recognises git putting a configuration in its place.
func (c *call) isNewConfig(from, to place, flags uint) bool {
	return c.ruleAt(opRenameTo, to, false).ruling == rulingNewFile && flags&unix.RENAME_EXCHANGE == 0 && from.abs == to.abs+".lock"
}

// installConfig lets git configure a repository that this session made, if
// nothing in it makes git run or obey anything. The supervisor writes the file
// anew: the caller may still have the old one open.
func (c *call) installConfig(from, to place) error {
	if c.hostConfig(to) {
		return c.denied(opRenameTo, to.abs, "protected:.git/config")
	}
	text, err := readAt(from)
	if err != nil {
		return err
	}
	if key := activeKey(string(text)); key != "" {
		return c.denied(opRenameTo, to.abs, "protected:.git/config:"+key)
	}
	st, err := from.stat()
	if err == nil {
		err = c.replaceConfig(to, string(text), st.Mode)
	}
	if err != nil {
		return err
	}
	return unix.Unlinkat(from.dir, from.name, 0)
}

// replaceConfig puts a configuration in its place and remembers it. No guest
// may open the name under which it is written.
func (c *call) replaceConfig(to place, text string, mode uint32) error {
	fresh := place{dir: to.dir, name: freshConfig, abs: to.abs}
	_ = unix.Unlinkat(fresh.dir, fresh.name, 0)
	if err := c.write(fresh, text); err != nil {
		return err
	}
	id, _, err := identify(fresh.dir, fresh.name)
	if err == nil {
		err = unix.Fchmodat(fresh.dir, fresh.name, mode&0o666, 0)
	}
	if err == nil && !c.s.repos.configs.add(id) {
		err = unix.EDQUOT
	}
	if err == nil {
		if old, _, err := identify(to.dir, to.name); err == nil {
			delete(c.s.repos.configs, old)
		}
		err = unix.Renameat(fresh.dir, fresh.name, to.dir, to.name)
	}
	if err != nil {
		_ = unix.Unlinkat(fresh.dir, fresh.name, 0)
	}
	return err
}
