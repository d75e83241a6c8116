package checkpoint

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// tempPrefix begins the name under which a file is made before it is renamed. A file
// left by a killed undo is removed by the next.
const tempPrefix = ".bawn-undo-"

// An undoer carries out the changes of one undo.
type undoer struct {
	s      *Store
	linked map[fileName]string // path of one name of a file that has several
	dirs   []Change            // directories made, which get their modes and times last
}

// A fileName stands for a file that has several names in a checkpoint of a root.
type fileName struct {
	root *rooted
	link uint64
}

// ErrChanged says that a file has changed since the plan was made.
var ErrChanged = errors.New("it has changed meanwhile")

// Apply carries out the plan. The present must be kept before: Apply first writes it
// to the disk. It goes on after an error and returns all of them; a failed entry
// stays as it was.
func (u *Undo) Apply() (done int, err error) {
	if u.taking == nil || u.taking.id == "" {
		return 0, errors.New("there is no checkpoint of the present, so that nothing is undone")
	}
	if err := u.taking.Finish(); err != nil {
		return 0, err
	}
	a := &undoer{s: u.taking.s, linked: u.linked}
	var errs []error
	note := func(c *Change, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s %q: %w", c.Op, c.Path, err))
			return
		}
		done++
	}
	// Obstacles are removed first, the inner before the outer: as planned.
	for i := range u.Changes {
		switch c := &u.Changes[i]; c.Op {
		case Remove:
			note(c, a.remove(c))
		case Aside:
			note(c, a.aside(c))
		}
	}
	for i := range u.Changes {
		switch c := &u.Changes[i]; c.Op {
		case Create, Replace, Merged:
			note(c, a.create(c))
		case Mode:
			a.dirs = append(a.dirs, *c)
			done++
		}
	}
	for _, c := range slices.Backward(a.dirs) {
		if err := a.finishDir(&c); err != nil {
			errs = append(errs, fmt.Errorf("%q: %w", c.Path, err))
		}
	}
	return done, errors.Join(errs...)
}

// parent opens the directory in which a change is made, and returns the name in it.
// A directory that its owner can't read, enter or write is unlocked.
func (a *undoer) parent(c *Change) (fd int, name string, err error) {
	dir, name := path.Split(c.rel)
	fd, err = a.dir(c.root, strings.TrimSuffix(dir, "/"))
	return fd, name, err
}

func (a *undoer) dir(r *rooted, rel string) (int, error) {
	fd, err := openDir(r.top, rel)
	if errors.Is(err, unix.EACCES) {
		if fd, err = openDir(r.top, ""); err != nil {
			return -1, err
		}
		at := ""
		for name := range strings.SplitSeq(rel, "/") {
			at = path.Join(at, name)
			next, err := r.enter(fd, name, at)
			unix.Close(fd)
			if err != nil {
				return -1, err
			}
			fd = next
		}
	}
	if err == nil {
		err = r.unlock(fd, rel)
	}
	return fd, err
}

// enter opens a directory of the path rel, which it unlocks if need be.
func (r *rooted) enter(fd int, name, rel string) (int, error) {
	next, err := openBelow(fd, name)
	if !errors.Is(err, unix.EACCES) {
		return next, err
	}
	var st unix.Stat_t
	if err := unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return -1, err
	}
	mode := uint32(st.Mode) & 0o7777
	if err := chmodAt(fd, name, mode|0o700); err != nil {
		return -1, err
	}
	r.unlocked = append(r.unlocked, unlocked{rel: rel, mode: mode, ino: st.Ino})
	return openBelow(fd, name)
}

// unlock lets the owner write in an open directory until the taking is closed.
func (r *rooted) unlock(fd int, rel string) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	mode, uid := uint32(st.Mode)&0o7777, os.Geteuid()
	if mode&0o700 == 0o700 || uid == 0 || st.Uid != uint32(uid) {
		return nil
	}
	r.unlocked = append(r.unlocked, unlocked{rel: rel, mode: mode, ino: st.Ino})
	return unix.Fchmod(fd, mode|0o700)
}

// still reports an error if a name has changed since the scan.
func still(fd int, name string, now *item) error {
	var st unix.Stat_t
	err := unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	switch {
	case errors.Is(err, unix.ENOENT) && now == nil:
		return nil
	case err != nil && now != nil:
		return fmt.Errorf("%w: %w", ErrChanged, err)
	case err != nil:
		return err
	case now == nil:
		return ErrChanged
	}
	var x item
	x.set(&st)
	switch {
	case x.ino != now.ino:
		return ErrChanged
	case !now.Kind.covered():
		return nil // it is only moved
	case x.Kind != now.Kind && !(x.Kind == File && now.Kind == Large):
		return ErrChanged
	case x.Kind == Directory:
		return nil
	case x.Size != now.Size || x.MTime != now.MTime:
		return ErrChanged
	case x.ctime != now.ctime && x.Kind == File && now.Link == 0: // a name less gives the others a new ctime
		return ErrChanged
	}
	return nil
}

// aside renames a file that no checkpoint can hold, so that the former one can be
// restored.
func (a *undoer) aside(c *Change) error {
	fd, name, err := a.parent(c)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := still(fd, name, c.now); err != nil {
		return err
	}
	return renameNew(fd, name, c.Why)
}

func (a *undoer) remove(c *Change) error {
	fd, name, err := a.parent(c)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := still(fd, name, c.now); err != nil {
		return err
	}
	flags := 0
	if c.now.Kind == Directory {
		flags = unix.AT_REMOVEDIR
	}
	return unix.Unlinkat(fd, name, flags)
}

// create restores an entry, in place of an existing one.
func (a *undoer) create(c *Change) error {
	fd, name, err := a.parent(c)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	e := c.entry
	if e.Kind == Directory {
		return a.makeDir(fd, name, c)
	}
	if err := still(fd, name, c.now); err != nil {
		return err
	}
	temp := tempPrefix + strings.ToLower(rand.Text()[:12])
	defer unix.Unlinkat(fd, temp, 0)
	if err := a.make(fd, temp, c); err != nil {
		return err
	}
	if err := still(fd, name, c.now); err != nil {
		return err
	}
	rename := renameNew
	if c.now != nil {
		rename = func(fd int, from, to string) error { return unix.Renameat(fd, from, fd, to) }
	}
	if err := rename(fd, temp, name); err != nil {
		return err
	}
	if key := (fileName{c.root, e.Link}); e.Link != 0 && a.linked[key] == "" {
		a.linked[key] = c.rel
	}
	return nil
}

func (a *undoer) makeDir(fd int, name string, c *Change) error {
	err := unix.Mkdirat(fd, name, c.entry.Mode&0o777|0o700) // in case this process is killed before finishDir
	if errors.Is(err, unix.EEXIST) && c.now == nil {
		return ErrChanged
	}
	if err == nil {
		a.dirs = append(a.dirs, *c)
	}
	return err
}

// make makes a file, link or pipe under a name that is not taken.
func (a *undoer) make(fd int, name string, c *Change) error {
	e := c.entry
	switch e.Kind {
	case Symlink:
		to, err := a.s.get(e.Object)
		if err == nil {
			err = unix.Symlinkat(string(to), fd, name)
		}
		if err != nil {
			return err
		}
		_ = unix.Fchownat(fd, name, int(e.UID), int(e.GID), unix.AT_SYMLINK_NOFOLLOW) // only root can
		return setTime(fd, name, c)
	case Pipe:
		if err := mkfifo(fd, name); err != nil {
			return err
		}
		if unix.Fchownat(fd, name, int(e.UID), int(e.GID), unix.AT_SYMLINK_NOFOLLOW) != nil {
			_ = unix.Fchownat(fd, name, -1, int(e.GID), unix.AT_SYMLINK_NOFOLLOW)
		}
		if err := chmodAt(fd, name, e.Mode); err != nil {
			return err
		}
		return setTime(fd, name, c)
	}
	if a.link(fd, name, c) {
		return nil
	}
	f, err := unix.Openat(fd, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	defer unix.Close(f)
	if err := a.fill(f, e); err != nil {
		return err
	}
	mode := own(f, e)
	if err := a.setAttrs(f, e); err != nil {
		return err
	}
	if err := unix.Fchmod(f, mode); err != nil {
		return err
	}
	return setTime(fd, name, c)
}

// own gives an open file its owner and group, as far as this process may. It returns
// the permitted mode: set-user-ID and set-group-ID only with their owner and group.
func own(f int, e *Entry) (mode uint32) {
	if unix.Fchown(f, int(e.UID), int(e.GID)) != nil {
		_ = unix.Fchown(f, -1, int(e.GID))
	}
	var st unix.Stat_t
	if e.Kind != Directory && (unix.Fstat(f, &st) != nil || st.Uid != e.UID || st.Gid != e.GID) {
		return e.Mode &^ 0o6000
	}
	return e.Mode
}

// link makes a further name of a file that this undo has put back, or that stays. It
// returns false where it can't: then the file is made.
func (a *undoer) link(fd int, name string, c *Change) bool {
	first := a.linked[fileName{c.root, c.entry.Link}]
	if c.entry.Link == 0 || first == "" {
		return false
	}
	dir, base := path.Split(first)
	from, err := openDir(c.root.top, strings.TrimSuffix(dir, "/"))
	if err != nil {
		return false
	}
	defer unix.Close(from)
	return unix.Linkat(from, base, fd, name, 0) == nil
}

// fill writes the content of a file.
func (a *undoer) fill(f int, e *Entry) error {
	pieces := []Digest{e.Object}
	if e.Kind == Large {
		list, err := a.s.get(e.Object)
		if err != nil {
			return err
		}
		if pieces, err = digests(list); err != nil {
			return err
		}
	}
	var at int64
	for _, d := range pieces {
		b, err := a.s.get(d)
		if err != nil {
			return err
		}
		if err := write(f, b, at, e.Sparse); err != nil {
			return err
		}
		at += int64(len(b))
	}
	return unix.Ftruncate(f, at)
}

func digests(b []byte) (list []Digest, err error) {
	if len(b)%len(Digest{}) != 0 {
		return nil, errTree
	}
	for p := range slices.Chunk(b, len(Digest{})) {
		list = append(list, Digest(p))
	}
	return list, nil
}

var zeros [4096]byte

// write writes b at an offset; where holes are wanted, whole blocks of zeros are.
func write(f int, b []byte, at int64, holes bool) error {
	for len(b) > 0 {
		n := len(b)
		if holes {
			n = min(n, len(zeros))
		}
		if holes && bytes.Equal(b[:n], zeros[:n]) {
			b, at = b[n:], at+int64(n)
			continue
		}
		n, err := unix.Pwrite(f, b[:n], at)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		b, at = b[max(n, 0):], at+int64(max(n, 0))
	}
	return nil
}

// setTime restores the time of a missing file. A changed file keeps the present:
// with its old time, products of the other content would look newer.
func setTime(fd int, name string, c *Change) error {
	if c.now != nil {
		return nil
	}
	ts := unix.NsecToTimespec(c.entry.MTime)
	return unix.UtimesNanoAt(fd, name, []unix.Timespec{ts, ts}, unix.AT_SYMLINK_NOFOLLOW)
}

// finishDir gives a directory its mode, attributes and time.
func (a *undoer) finishDir(c *Change) error {
	fd, err := a.dir(c.root, c.rel)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	mode := c.entry.Mode
	if c.rel != "" { // of a root only the mode is known
		mode = own(fd, c.entry)
		if err := a.setAttrs(fd, c.entry); err != nil {
			return err
		}
	}
	if err := unix.Fchmod(fd, mode); err != nil {
		return err
	}
	c.root.settled(c.rel)
	if c.rel == "" {
		return nil
	}
	up, name, err := a.parent(c)
	if err != nil {
		return err
	}
	defer unix.Close(up)
	return setTime(up, name, c)
}
