package checkpoint

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// An undoer carries out the changes of one undo.
type undoer struct {
	s       *Store
	linked  map[uint64]string // path of one name of a file that has several, by its number
	dirs    []Change          // directories made, which get their modes and times last
	opened  []opened          // directories that could not be entered before
	changes int
}

type opened struct {
	c    *rooted
	rel  string
	mode uint32
}

// ErrChanged says that a file is not any more what the plan was made from.
var ErrChanged = errors.New("it has changed meanwhile")

// Apply does what the plan says. The present must have been kept. It goes on after
// an error and returns all of them; what it could not do is as it was.
func (u *Undo) Apply() (done int, err error) {
	if u.taking == nil || u.taking.id == "" {
		return 0, errors.New("there is no checkpoint of the present, so that nothing is undone")
	}
	a := &undoer{s: u.taking.s, linked: map[uint64]string{}}
	var errs []error
	note := func(c *Change, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s %q: %w", c.Op, c.Path, err))
			return
		}
		done++
	}
	// What stands in the way goes first, the inner before the outer: as planned.
	for i := range u.Changes {
		if c := &u.Changes[i]; c.Op == Remove {
			note(c, a.remove(c))
		}
	}
	for i := range u.Changes {
		switch c := &u.Changes[i]; c.Op {
		case Create, Replace:
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
	for _, o := range slices.Backward(a.opened) {
		errs = append(errs, o.close())
	}
	return done, errors.Join(errs...)
}

// parent opens the directory in which a change is made, also one that can't be
// entered, and returns the name in it.
func (a *undoer) parent(c *Change) (fd int, name string, err error) {
	dir, name := path.Split(c.rel)
	fd, err = a.dir(c.root, strings.TrimSuffix(dir, "/"))
	return fd, name, err
}

func (a *undoer) dir(r *rooted, rel string) (int, error) {
	fd, err := openDir(r.top, rel)
	if !errors.Is(err, unix.EACCES) {
		return fd, err
	}
	at := ""
	for name := range strings.SplitSeq(rel, "/") { // its owner may open it
		up, err := openDir(r.top, at)
		if err != nil {
			return -1, err
		}
		at = path.Join(at, name)
		var st unix.Stat_t
		err = unix.Fstatat(up, name, &st, unix.AT_SYMLINK_NOFOLLOW)
		if err == nil && uint32(st.Mode)&unix.S_IFMT == unix.S_IFDIR && uint32(st.Mode)&0o700 != 0o700 {
			err = unix.Fchmodat(up, name, uint32(st.Mode)&0o7777|0o700, 0)
			a.opened = append(a.opened, opened{r, at, uint32(st.Mode) & 0o7777})
		}
		unix.Close(up)
		if err != nil {
			return -1, err
		}
	}
	return openDir(r.top, rel)
}

func (o opened) close() error {
	fd, err := openDir(o.c.top, o.rel)
	if err != nil {
		return nil // it is gone, or something else
	}
	defer unix.Close(fd)
	return unix.Fchmod(fd, o.mode)
}

// still reports an error unless a name is what the scan has seen there.
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
	if x.ino != now.ino || x.Kind != now.Kind && !(x.Kind == File && now.Kind == Large) || x.Kind != Directory && (x.Size != now.Size || x.MTime != now.MTime) {
		return ErrChanged
	}
	return nil
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

// create puts an entry where it was, in the place of what is there.
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
	temp := ".bawn-undo-" + strings.ToLower(rand.Text()[:12])
	defer unix.Unlinkat(fd, temp, 0)
	if err := a.make(fd, temp, c); err != nil {
		return err
	}
	if err := still(fd, name, c.now); err != nil {
		return err
	}
	if err := unix.Renameat(fd, temp, fd, name); err != nil {
		return err
	}
	if e.Link != 0 && a.linked[e.Link] == "" {
		a.linked[e.Link] = c.rel
	}
	return nil
}

func (a *undoer) makeDir(fd int, name string, c *Change) error {
	err := unix.Mkdirat(fd, name, 0o700)
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
		return setTime(fd, name, c)
	case Pipe:
		if err := mkfifo(fd, name); err != nil {
			return err
		}
		if err := unix.Fchmodat(fd, name, e.Mode, 0); err != nil {
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
	if err := a.setAttrs(f, e); err != nil {
		return err
	}
	if err := unix.Fchmod(f, e.Mode); err != nil {
		return err
	}
	return setTime(fd, name, c)
}

// link makes a further name of a file that this undo has put back. It returns false if no
// such file was put back.
func (a *undoer) link(fd int, name string, c *Change) bool {
	first := a.linked[c.entry.Link]
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

func (a *undoer) setAttrs(f int, e *Entry) error {
	if e.Attrs.zero() {
		return nil
	}
	b, err := a.s.get(e.Attrs)
	if err != nil {
		return err
	}
	list, err := decodeAttrs(b)
	if err != nil {
		return err
	}
	for _, x := range list {
		if err := unix.Fsetxattr(f, x.name, x.value, 0); err != nil {
			return fmt.Errorf("set %q: %w", x.name, err)
		}
	}
	return nil
}

// setTime gives what was missing its own time. What was changed keeps the present:
// with the old time, what was built from the other content would look newer.
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
	if err := a.setAttrs(fd, c.entry); err != nil {
		return err
	}
	if err := unix.Fchmod(fd, c.entry.Mode); err != nil {
		return err
	}
	if c.rel == "" {
		return nil
	}
	a.opened = slices.DeleteFunc(a.opened, func(o opened) bool { return o.c == c.root && o.rel == c.rel })
	up, name, err := a.parent(c)
	if err != nil {
		return err
	}
	defer unix.Close(up)
	return setTime(up, name, c)
}
