package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// Options say which files a checkpoint covers, and its occasion.
type Options struct {
	Session, Agent string
	Copy           string // as of a Checkpoint
	Workspace      string // whose store it is
	Why            Why
	Roots          []string // directories: absolute, without links; the workspace first
	Files          []string // single files, likewise
	// Without are directories that are left alone with all below them, as the store
	// is. Missing ones don't count.
	Without []string
	// Tracked reports whether git's index lists files below a directory. It may be
	// nil, and is called from several goroutines.
	Tracked func(dir string) bool
	// Running says that a guest runs meanwhile. A changed file is then written to the
	// disk before it is read, so that the next change by a mapping gives a new ctime.
	// It is also to be set while another session's guest runs in one of the roots.
	Running bool
	// Progress is told how many bytes of how many have been read. It may be nil, and
	// is called from several goroutines.
	Progress func(done, all int64)
}

// A Taking is a checkpoint that is being taken: everything was looked at, nothing
// was read.
type Taking struct {
	s     *Store
	o     Options
	when  time.Time
	roots []*rooted
	pack  *pack
	id    string

	tried    bool   // to keep it
	fresh    bool   // contents were read
	finished bool   // it is on the disk
	release  func() // lets Prune run
}

type rooted struct {
	path      string
	file      string // as of a Root
	top       int
	old, now  *node
	racer     racer
	uncovered []Uncovering
	unlocked  []unlocked
	layer     *Layer // it is read in place of the root, or nil
}

// Scan looks at every file below the roots. For an undo or apply it also opens
// directories and files that their owner can't read; Close gives them their modes
// back. Until Finish or Close, [Store.Prune] returns [ErrBusy].
func (s *Store) Scan(o Options) (_ *Taking, err error) {
	s.taking.RLock()
	t := &Taking{s: s, o: o, when: time.Now(), release: sync.OnceFunc(s.taking.RUnlock)}
	defer func() {
		if err != nil {
			t.Close()
		}
	}()
	var roots []*rooted
	for _, dir := range o.Roots {
		roots = append(roots, &rooted{path: dir, top: -1})
	}
	for _, file := range o.Files {
		roots = append(roots, &rooted{path: filepath.Dir(file), file: filepath.Base(file), top: -1})
	}
	for _, r := range roots {
		if !utf8.ValidString(r.key()) {
			return nil, fmt.Errorf("%q is not UTF-8", r.key())
		}
		t.roots = append(t.roots, r)
		if err := t.scan(r); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// opens reports whether what its owner can't read is opened.
func (w Why) opens() bool { return w == BeforeUndo || w == BeforeApply }

// key tells a root from all others.
func (r *rooted) key() string { return filepath.Join(r.path, r.file) }

func (t *Taking) scan(r *rooted) (err error) {
	force := t.o.Why.opens()
	if r.top, err = r.open(force); err != nil {
		return fmt.Errorf("open %q: %w", r.path, err)
	}
	sc := &scanner{top: r.top, only: r.file, force: force, skip: t.without()}
	if t.o.Tracked != nil {
		sc.tracked = func(rel string) bool { return t.o.Tracked(filepath.Join(r.path, rel)) }
	}
	r.old = t.s.readIndex(r.key())
	r.now, err = sc.scan(r.old)
	r.racer, r.unlocked = sc.racer, append(r.unlocked, sc.unlocked...)
	if err != nil {
		return fmt.Errorf("look at %q: %w", r.path, err)
	}
	if len(r.unlocked) > 0 && r.unlocked[0].rel == "" {
		r.now.mode = r.unlocked[0].mode
	}
	limit(r.now, r.old, MaxTotal)
	r.uncovered = atMost(r.now.uncovered(r.path, nil), r.key())
	return nil
}

// without identifies the directories that are left alone.
func (t *Taking) without() []unix.Stat_t {
	list := []unix.Stat_t{t.s.self}
	for _, dir := range t.o.Without {
		var st unix.Stat_t
		if unix.Stat(dir, &st) == nil {
			list = append(list, st)
		}
	}
	return list
}

// open opens the root; with force also one that its owner can't read.
func (r *rooted) open(force bool) (int, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Open(r.path, flags, 0)
	if !force || err != nil && !errors.Is(err, unix.EACCES) {
		return fd, err
	}
	var st unix.Stat_t
	if err := unix.Lstat(r.path, &st); err != nil {
		return fd, err
	}
	mode := uint32(st.Mode) & 0o7777
	if st.Uid != uint32(os.Geteuid()) || os.Geteuid() == 0 || mode&0o500 == 0o500 {
		return fd, err
	}
	if err == nil {
		_ = unix.Close(fd)
	}
	if err := chmodAt(unix.AT_FDCWD, r.path, mode|0o700); err != nil {
		return -1, err
	}
	r.unlocked = append(r.unlocked, unlocked{mode: mode, ino: st.Ino})
	return unix.Open(r.path, flags, 0)
}

// maxUncovered is how many places a root's list has. Each may become a mount.
const maxUncovered = 4096

// atMost shortens a list that is too long. Its last entry is then the root itself:
// it stands for the places that the list leaves out.
func atMost(list []Uncovering, root string) []Uncovering {
	if len(list) <= maxUncovered {
		return list
	}
	rest := Uncovering{Path: root, Why: fmt.Sprintf("%d further places", len(list)-maxUncovered)}
	for _, u := range list[maxUncovered:] {
		rest.Size += u.Size
	}
	return append(list[:maxUncovered:maxUncovered], rest)
}

// Uncovered are the places that the checkpoint will not have.
func (t *Taking) Uncovered() []Uncovering {
	var list []Uncovering
	for _, r := range t.roots {
		list = append(list, r.uncovered...)
	}
	return list
}

// Changed reports whether anything differs from the last checkpoint of the
// roots.
func (t *Taking) Changed() bool {
	return slices.ContainsFunc(t.roots, (*rooted).changed)
}

func (r *rooted) changed() bool { return r.old == nil || r.now.changed(r.old) }

// changed reports whether a tree is not the one that the index has.
func (n *node) changed(old *node) bool {
	if n.raw != nil {
		return false
	}
	was := old.list()
	if old == nil || len(n.items) != len(was) {
		return true
	}
	for i := range n.items {
		x, o := &n.items[i], &was[i]
		if x.fresh && !o.racy || x.Name != o.Name || x.Kind != o.Kind || x.Mode != o.Mode || x.Size != o.Size || x.sub == nil && x.MTime != o.MTime || x.sub != nil && x.sub.changed(o.sub) {
			return true
		}
	}
	return false
}

// Keep stores new objects and writes the record. git goes into it unchanged. The
// checkpoint exists when Keep returns, though perhaps not yet on the disk: Finish
// waits for the disk. A Taking is kept once: after an error, scan again.
func (t *Taking) Keep(git json.RawMessage) (*Checkpoint, error) {
	if t.tried {
		return nil, errors.New("this checkpoint was kept, or could not be: scan again")
	}
	t.tried = true
	if err := t.store(); err != nil {
		return nil, err
	}
	c := &Checkpoint{ID: newID(t.when), Session: t.o.Session, Agent: t.o.Agent, Copy: t.o.Copy, Workspace: t.o.Workspace, When: t.when, Why: t.o.Why, Git: git}
	for _, r := range t.roots {
		r.uncovered = atMost(r.now.uncovered(r.path, nil), r.key()) // some could not be read
		all := r.now.total()
		c.Roots = append(c.Roots, Root{Path: r.path, File: r.file, Mode: r.now.mode, Tree: r.now.object, Files: int(all.files), Bytes: all.bytes, Uncovered: r.uncovered})
	}
	if err := t.s.writeRecord(c); err != nil {
		if t.pack != nil { // nothing refers to it
			t.s.drop([]*pack{t.pack}, nil)
			t.pack = nil
		}
		return nil, fmt.Errorf("write the record of a checkpoint: %w", err)
	}
	t.id = c.ID
	return c, nil
}

// Finish has the checkpoint on the disk and leaves an index for the next one. A
// second call does nothing.
func (t *Taking) Finish() error {
	if t.id == "" || t.finished {
		return nil
	}
	if err := t.sync(); err != nil {
		return fmt.Errorf("write a checkpoint to the disk: %w", err)
	}
	t.finished = true
	defer t.release()
	for _, r := range t.roots {
		if !t.fresh && !r.changed() {
			continue // the index holds
		}
		if err := t.s.writeIndex(r.key(), r.now); err != nil {
			return fmt.Errorf("write the index of a checkpoint: %w", err)
		}
	}
	return nil
}

// sync has the pack on the disk before the record that needs it.
func (t *Taking) sync() error {
	if t.pack != nil {
		if err := errors.Join(t.pack.sync(), syncFile(filepath.Join(t.s.dir, packsName))); err != nil {
			return err
		}
	}
	return errors.Join(syncFile(recordPath(t.s.dir, t.id)), syncFile(filepath.Join(t.s.dir, recordsName)))
}

// Close ends the taking. It may be called for nil.
func (t *Taking) Close() {
	if t == nil {
		return
	}
	defer t.release()
	for _, r := range t.roots {
		if r.top >= 0 {
			r.lock()
			_ = unix.Close(r.top)
			r.top = -1
		}
	}
}

// total adds up the files below a directory.
func (n *node) total() sum {
	if n.raw != nil {
		return n.sum
	}
	var all sum
	for i := range n.items {
		if x := &n.items[i]; x.sub != nil {
			all.add(x.sub.total())
		} else {
			all.add(x.sum())
		}
	}
	return all
}

// sum is the share of a name that is not a directory with names below it.
func (x *item) sum() sum {
	switch {
	case x.Kind == Uncovered:
		return sum{uncovered: 1}
	case x.Kind.covered():
		return sum{files: 1, bytes: x.Size}
	}
	return sum{}
}

// uncovered lists the names below a directory that are not covered.
func (n *node) uncovered(at string, list []Uncovering) []Uncovering {
	items := n.items
	if n.raw != nil && n.sum.uncovered > 0 {
		items, _ = n.unpack(nil) // it stays as in the index
	}
	for i := range items {
		x := &items[i]
		switch {
		case x.sub != nil:
			list = x.sub.uncovered(path.Join(at, x.Name), list)
		case x.Kind == Uncovered:
			list = append(list, Uncovering{Path: path.Join(at, x.Name), Size: x.Size, Why: x.why.String()})
		}
	}
	return list
}
