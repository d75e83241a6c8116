package checkpoint

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Bounds of a scan.
const (
	maxNames = 2_000_000
	maxDepth = 256 // directories within each other
)

// A node is a directory as the scan saw it. A directory that equals the index
// throughout keeps the index's bytes; list makes items of them.
type node struct {
	raw    []byte // count items as in an index; nil once items has them
	count  int
	sum    sum    // of raw
	items  []item // sorted by name
	dev    uint64
	ino    uint64
	ctime  int64
	racy   bool   // it may change without a new ctime
	object Digest // its tree in the store; zero until known
	attrs  []byte // its extended attributes, where they are to be stored
	mode   uint32 // of a root
	opaque bool   // in a layer: nothing of the base is seen
	odd    bool   // in a layer: it has a mark that the kernel does not make
}

// An item is one name of a node, with its entry in the tree and its stat.
type item struct {
	Entry
	ino   uint64
	ctime int64
	racy  bool
	fresh bool   // its content is to be read
	why   reason // it is uncovered
	sub   *node  // of a directory
}

// cut reduces an item to the fact that it exists.
func (x *item) cut(kind Kind, why reason) {
	*x = item{Entry: Entry{Name: x.Name, Kind: kind}, why: why, ino: x.ino, ctime: x.ctime}
}

// leave notes that an item is not covered, and how large it is.
func (x *item) leave(why reason, size int64) {
	x.cut(Uncovered, why)
	x.Size = size
}

// A reason is why something is not covered.
type reason byte

const (
	_ reason = iota
	tooLarge
	tooMuch
	unreadable
	tooDeep
	otherSystem
	overlayMark
)

func (r reason) String() string {
	switch r {
	case tooLarge:
		return fmt.Sprintf("larger than %d MiB", MaxFile>>20)
	case tooMuch:
		return fmt.Sprintf("beyond %d MiB in all", MaxTotal>>20)
	case unreadable:
		return "not readable"
	case tooDeep:
		return "too many directories within each other"
	case otherSystem:
		return "another file system"
	case overlayMark:
		return "it has an attribute of overlays that the kernel did not make"
	}
	return "not known"
}

// The bounds of what one checkpoint covers, in bytes: a file, and all of a root.
const (
	MaxFile  = 64 << 20
	MaxTotal = 1 << 30
)

// A scanner looks at every name below a root.
type scanner struct {
	top     int    // descriptor of the root
	only    string // the one name of the root that counts; "" for all
	tracked func(rel string) bool
	racer   racer
	force   bool // opens what its owner can't read: see unlock
	uid     uint32
	skip    []unix.Stat_t // directories that are left alone
	layer   *Layer        // that is scanned, or nil
	names   atomic.Int64
	free    chan *worker // the state of a further goroutine
	wait    sync.WaitGroup
	fail    atomic.Pointer[error]

	mu       sync.Mutex
	unlocked []unlocked
}

// A racer decides which ctimes don't tell whether something changed since.
type racer struct {
	recent int64 // a later one, in nanoseconds
	coarse int64 // where the file system counts whole seconds
	always bool  // for files: stores through a mapping leave the ctime alone
}

func newRacer(top int, now time.Time) racer {
	n := now.UnixNano()
	return racer{recent: n - int64(20*time.Millisecond), coarse: n - int64(2*time.Second), always: inMemory(top)}
}

// racy reports whether something may still change without a new ctime.
func (r racer) racy(ctime int64) bool {
	return ctime >= r.recent || ctime%int64(time.Second) == 0 && ctime >= r.coarse
}

// A worker is what one goroutine of a scan works with.
type worker struct {
	*scanner
	name  nameBuffer
	lists [][]item // that are free
}

// list returns an empty list, which done takes back.
func (w *worker) list() []item {
	if n := len(w.lists); n > 0 {
		l := w.lists[n-1]
		w.lists = w.lists[:n-1]
		return l
	}
	return nil
}

func (w *worker) done(lists ...[]item) {
	for _, l := range lists {
		w.lists = append(w.lists, l[:0])
	}
}

// scan scans the root. old is its node in the index, or nil.
func (s *scanner) scan(old *node) (*node, error) {
	s.racer, s.free, s.uid = newRacer(s.top, time.Now()), make(chan *worker, 1), uint32(os.Geteuid())
	var st unix.Stat_t
	if err := unix.Fstat(s.top, &st); err != nil {
		return nil, err
	}
	fd, err := unix.Openat(s.top, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	n := s.node(&st)
	if s.only == "" {
		n.mode = uint32(st.Mode) & 0o7777
	}
	s.free <- &worker{scanner: s}
	(&worker{scanner: s}).dir(fd, n, old, "", 0)
	s.wait.Wait()
	if p := s.fail.Load(); p != nil {
		return nil, *p
	}
	n.fold(old)
	return n, nil
}

func (s *scanner) node(st *unix.Stat_t) *node {
	c := st.Ctim.Nano()
	return &node{dev: uint64(st.Dev), ino: st.Ino, ctime: c, racy: s.racer.racy(c)}
}

// same reports whether a directory has the names, mode and attributes that the index
// records.
func (n *node) same(old *node) bool {
	return old != nil && old.ino == n.ino && old.dev == n.dev && old.ctime == n.ctime && !old.racy
}

// adopt takes a directory, with everything below, from the index.
func (n *node) adopt(old *node) {
	n.raw, n.count, n.sum, n.object, n.items = old.raw, old.count, old.sum, old.object, nil
}

// fold adopts the directories below which nothing has changed: dir has seen to those
// without others in them.
func (n *node) fold(old *node) {
	if n.raw != nil || old == nil || old.raw == nil {
		return
	}
	was, ok := old.unpack(nil)
	same := ok && n.same(old) && n.racy == old.racy && len(n.items) == len(was) && !old.object.zero()
	for i := range n.items {
		x := &n.items[i]
		o := at(was, i, x.Name)
		if x.sub != nil && o != nil && o.sub != nil {
			x.sub.fold(o.sub)
			if x.sub.raw != nil {
				x.Object = o.Object
			}
		}
		same = same && o != nil && x.same(o)
	}
	if same {
		n.adopt(old)
	}
}

// same reports whether a name and all below it is as the index has it.
func (x *item) same(o *item) bool {
	return !x.fresh && !x.racy && !o.racy && x.why == o.why && x.ino == o.ino && x.ctime == o.ctime && x.Entry == o.Entry &&
		(x.sub == nil) == (o.sub == nil) && (x.sub == nil || x.sub.raw != nil)
}

// dir reads one directory and those below it, and closes it.
func (w *worker) dir(fd int, n, old *node, rel string, depth int) {
	defer unix.Close(fd)
	was, ok := old.known(w.list())
	if !ok {
		old = nil // the index is damaged
	}
	now, err := w.named(fd, n, old, was)
	if rel == "" && w.only != "" {
		now, err = append(now[:0], item{Entry: Entry{Name: w.only}}), nil
	}
	defer func() { w.done(was, now) }()
	if err != nil {
		w.stop(fmt.Errorf("read the directory %q: %w", path.Join(".", rel), err))
		return
	}
	if w.names.Add(int64(len(now))) > maxNames {
		w.stop(fmt.Errorf("it has more than %d files", maxNames))
		return
	}
	same, leaf := n.same(old) && n.racy == old.racy && !old.object.zero(), true
	for i := range now {
		x, o := &now[i], at(was, i, now[i].Name)
		w.item(fd, n, x, o)
		leaf = leaf && x.Kind != Directory
		same = same && leaf && x.same(o)
	}
	if same {
		n.adopt(old)
		return
	}
	n.items = slices.Clone(now)
	n.forget()
	for i := range n.items {
		if x := &n.items[i]; x.Kind == Directory {
			w.below(fd, n, x, at(was, i, x.Name), path.Join(rel, x.Name), depth+1)
		}
	}
	n.forget()
}

// known appends the index's entries of a directory.
func (n *node) known(list []item) ([]item, bool) {
	if n == nil {
		return list, true
	}
	return n.unpack(list)
}

// named returns the names of a directory only: those of the index, if it has not
// changed since.
func (w *worker) named(fd int, n, old *node, was []item) ([]item, error) {
	now := w.list()
	if n.same(old) {
		for i := range was {
			now = append(now, item{Entry: Entry{Name: was[i].Name}})
		}
		return now, nil
	}
	names, err := readNames(fd)
	if gone(err) {
		n.racy, err = true, nil // it was removed meanwhile, and is empty
	}
	for _, name := range names {
		now = append(now, item{Entry: Entry{Name: name}})
	}
	if n.attrs = listAttrs(fd); w.layer != nil && n.attrs != nil {
		n.attrs, n.opaque, n.odd = plainAttrs(n.attrs)
	}
	return now, err
}

// forget removes the names of Kind 0: they are gone. The next scan reads the
// directory again.
func (n *node) forget() {
	all := len(n.items)
	n.items = slices.DeleteFunc(n.items, func(x item) bool { return x.Kind == 0 })
	n.racy = n.racy || len(n.items) < all
}

// at returns the item of a name, which probably is the i-th.
func (n *node) at(i int, name string) *item { return at(n.list(), i, name) }

func at(list []item, i int, name string) *item {
	if i < len(list) && list[i].Name == name {
		return &list[i]
	}
	i, ok := slices.BinarySearchFunc(list, name, func(x item, name string) int { return strings.Compare(x.Name, name) })
	if !ok {
		return nil
	}
	return &list[i]
}

// item looks at one name. A missing one keeps Kind 0.
func (s *worker) item(fd int, n *node, x, old *item) {
	var st unix.Stat_t
	if err := s.name.stat(fd, x.Name, &st); err != nil {
		if !gone(err) {
			x.leave(unreadable, 0) // the directory may be read but not entered
		}
		return
	}
	x.set(&st)
	switch {
	case s.layer != nil && st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == 0:
		x.cut(whiteout, 0)
		return
	case isGit(x.Name) || x.Kind == Directory && s.skips(&st):
		x.cut(Skipped, 0)
		return
	case x.Kind == Special:
		x.cut(Special, 0)
		return
	case x.Kind == Directory && uint64(st.Dev) != n.dev:
		x.leave(otherSystem, 0)
		return
	case x.Kind == Directory, x.Kind == Pipe:
		return
	case x.Kind == File && x.Size > MaxFile:
		x.leave(tooLarge, x.Size)
		return
	}
	known := old != nil && !old.racy && old.ino == x.ino && old.ctime == x.ctime && old.MTime == x.MTime && old.Size == x.Size && old.Mode == x.Mode && old.Link == x.Link && old.UID == x.UID && old.GID == x.GID &&
		(old.Kind == x.Kind || old.Kind == Large && x.Kind == File)
	if known {
		x.Kind, x.Object, x.Attrs, x.Sparse = old.Kind, old.Object, old.Attrs, old.Sparse
	}
	x.fresh, x.racy = !known, s.racer.racy(x.ctime) || s.racer.always && x.Kind != Symlink
}

// set takes over a stat result.
func (x *item) set(st *unix.Stat_t) {
	x.Mode, x.MTime = uint32(st.Mode)&0o7777, st.Mtim.Nano()
	x.UID, x.GID = st.Uid, st.Gid
	x.ino, x.ctime, x.Size, x.Link = st.Ino, st.Ctim.Nano(), 0, 0
	switch uint32(st.Mode) & unix.S_IFMT {
	case unix.S_IFDIR:
		x.Kind = Directory
	case unix.S_IFREG:
		x.Kind, x.Size = File, st.Size
		x.Sparse = int64(st.Blocks)*512 < st.Size-4095
		if st.Nlink > 1 {
			x.Link = st.Ino
		}
	case unix.S_IFLNK:
		x.Kind = Symlink
		x.Mode = 0o777
	case unix.S_IFIFO:
		x.Kind = Pipe
	default:
		x.Kind = Special
	}
}

// isGit reports a git directory, or the file that stands for one. A guest has its
// own in that place, and the human's is read-only for it.
func isGit(name string) bool { return name == ".git" }

// skips reports whether a directory is one that is left alone.
func (s *scanner) skips(st *unix.Stat_t) bool {
	return slices.ContainsFunc(s.skip, func(k unix.Stat_t) bool { return k.Ino == st.Ino && k.Dev == st.Dev })
}

// below scans a directory that is an item of n, here or in another goroutine.
func (s *worker) below(fd int, n *node, x, old *item, rel string, depth int) {
	if depth > maxDepth {
		x.leave(tooDeep, 0)
		return
	}
	var was *node
	if old != nil {
		was = old.sub
	}
	sub, st, err := s.open(fd, x, was, rel)
	switch {
	case gone(err):
		n.racy = true // it becomes another thing just now
		x.Kind = 0
		return
	case exhausted(err):
		s.stop(fmt.Errorf("open the directory %q: %w", rel, err))
		return
	case err != nil:
		x.leave(unreadable, 0)
		return
	}
	if was == nil && s.remade(n, x.Name, rel, sub) && (s.tracked == nil || !s.tracked(rel)) {
		unix.Close(sub)
		x.cut(Remade, 0)
		return
	}
	x.sub = s.node(&st)
	if x.sub.same(was) {
		x.Attrs = old.Attrs
	}
	next := x.sub
	select {
	case w := <-s.free:
		s.wait.Go(func() {
			w.dir(sub, next, was, rel, depth)
			s.free <- w
		})
	default:
		s.dir(sub, next, was, rel, depth)
	}
}

// remade reports whether programs make a directory again that is an item of n and open
// at fd.
func (s *scanner) remade(n *node, name, rel string, fd int) bool {
	if s.layer != nil {
		return s.layer.remade(n, name, rel, fd)
	}
	return remadeBy(name, fd, func(mark string) bool { return n.at(0, mark) != nil })
}

// open opens the directory of an item, so that its names can be read unless the index
// has them. The opened file may be another one than stat has seen: the returned stat
// result is that of the open one.
func (s *scanner) open(fd int, x *item, was *node, rel string) (sub int, st unix.Stat_t, err error) {
	if !s.force && was != nil && was.ino == x.ino && was.ctime == x.ctime && !was.racy {
		sub, st, err = openStat(fd, x.Name, lookOnly)
		if err == nil && s.node(&st).same(was) {
			return sub, st, nil
		}
		if err == nil {
			unix.Close(sub)
		}
	}
	if s.force && x.UID == s.uid && s.uid != 0 && x.Mode&0o500 != 0o500 {
		if chmodAt(fd, x.Name, x.Mode|0o700) == nil {
			s.mu.Lock()
			s.unlocked = append(s.unlocked, unlocked{rel: rel, mode: x.Mode, ino: x.ino})
			s.mu.Unlock()
		}
	}
	if sub, st, err = openStat(fd, x.Name, unix.O_RDONLY); err == nil && st.Ino != x.ino {
		unix.Close(sub)
		err = unix.ENOENT
	}
	return sub, st, err
}

func openStat(dir int, name string, how int) (fd int, st unix.Stat_t, err error) {
	if fd, err = unix.Openat(dir, name, how|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0); err != nil {
		return -1, st, err
	}
	if err = unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
	}
	return fd, st, err
}

// exhausted reports that the process, not the file, is the reason of an error.
func exhausted(err error) bool {
	return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) || errors.Is(err, unix.ENOMEM)
}

func (s *scanner) stop(err error) { s.fail.CompareAndSwap(nil, &err) }

// readNames returns the names in a directory, sorted.
func readNames(fd int) ([]string, error) {
	var names []string
	buf := make([]byte, 32<<10)
	for {
		n, err := unix.ReadDirent(fd, buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if n == 0 {
			slices.Sort(names)
			return names, nil
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
		if len(names) > maxNames {
			return nil, fmt.Errorf("it has more than %d names", maxNames)
		}
	}
}
