package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// A job is a directory with files to be read.
type job struct {
	r   *rooted
	n   *node
	rel string
}

// store reads new contents into a pack, and then makes the trees.
func (t *Taking) store() error {
	var jobs []job
	var all int64
	for _, r := range t.roots {
		jobs = r.now.jobs(r, "", jobs, &all)
	}
	if err := func() error { t.s.mu.Lock(); defer t.s.mu.Unlock(); return t.loadFor(jobs) }(); err != nil {
		return err
	}
	t.fresh = t.fresh || len(jobs) > 0
	w := t.s.packer(t.s.has)
	err := t.read(w, jobs, all)
	if err == nil {
		err = t.trees(w)
	}
	if err != nil {
		w.fail(err)
	}
	p, err := w.close()
	if err != nil {
		return err
	}
	t.s.add(p)
	t.pack = p
	return nil
}

// loadFor opens the packs where something may be stored. The lock is held.
func (t *Taking) loadFor(jobs []job) error {
	if len(jobs) == 0 && !t.Changed() {
		return nil
	}
	return t.s.load()
}

// jobs lists the directories in which something is to be read.
func (n *node) jobs(r *rooted, rel string, list []job, all *int64) []job {
	if n.raw != nil {
		return list
	}
	some := false
	for i := range n.items {
		x := &n.items[i]
		if x.sub != nil {
			list = x.sub.jobs(r, path.Join(rel, x.Name), list, all)
		} else if x.fresh && x.Kind.covered() {
			some = true
			*all += x.Size
		}
	}
	if some {
		list = append(list, job{r, n, rel})
	}
	return list
}

// read stores the contents of all fresh files, with two goroutines.
func (t *Taking) read(w *packer, jobs []job, all int64) error {
	var wait sync.WaitGroup
	var next atomic.Int64
	var done atomic.Int64
	var errs [2]error
	read := func(n int64) {
		if now := done.Add(n); t.o.Progress != nil {
			t.o.Progress(now, all)
		}
	}
	for k := range errs[:min(len(errs), len(jobs))] {
		wait.Go(func() {
			b, err := w.block()
			for err == nil {
				i := int(next.Add(1)) - 1
				if i >= len(jobs) {
					b.flush()
					break
				}
				if err = t.directory(b, jobs[i], read); err == nil && w.failed() != nil {
					return // close returns the error
				}
			}
			if errs[k] = err; err != nil {
				w.fail(err) // ends the other goroutine
			}
		})
	}
	wait.Wait()
	return errors.Join(errs[:]...)
}

// directory stores the fresh files of one directory.
func (t *Taking) directory(b *block, j job, done func(int64)) error {
	fd, err := openDir(j.r.top, j.rel)
	if exhausted(err) {
		return fmt.Errorf("open %q: %w", path.Join(j.r.path, j.rel), err)
	}
	if err != nil {
		j.n.drop()
		return nil
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Ino != j.n.ino {
		j.n.drop() // another directory has come in its place
		return nil
	}
	for i := range j.n.items {
		x := &j.n.items[i]
		if !x.fresh || x.sub != nil || !x.Kind.covered() {
			continue
		}
		size := x.Size
		switch err := t.content(b, fd, x, j.r); {
		case exhausted(err):
			return fmt.Errorf("read %q: %w", path.Join(j.r.path, j.rel, x.Name), err)
		case gone(err):
			x.Kind = 0
		case err != nil: // a bad sector, a lease: the others are kept
			x.leave(unreadable, size)
		}
		done(size)
	}
	j.n.forget()
	return nil
}

// drop forgets what could not be read: the directory is gone.
func (n *node) drop() {
	n.items = slices.DeleteFunc(n.items, func(x item) bool { return x.fresh && x.sub == nil })
	n.racy = true
}

func gone(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)
}

// content stores one file or link.
func (t *Taking) content(b *block, dir int, x *item, r *rooted) error {
	if x.Kind == Symlink {
		buf := make([]byte, 4097)
		n, err := unix.Readlinkat(dir, x.Name, buf)
		if err == nil {
			x.Object, x.fresh = b.put(buf[:n]), false
		}
		return err
	}
	fd, err := t.open(dir, x)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if t.o.Running {
		rearm(fd)
	}
	for range 3 {
		var before, after unix.Stat_t
		if err := unix.Fstat(fd, &before); err != nil {
			return err
		}
		switch x.set(&before); {
		case x.Kind != File:
			return unix.ENOENT // it has become another thing
		case x.Size > MaxFile:
			x.leave(tooLarge, x.Size)
			return nil
		}
		x.racy = r.racer.racy(x.ctime) || r.racer.always
		if err := b.file(fd, x); err != nil {
			return err
		}
		if err := unix.Fstat(fd, &after); err != nil {
			return err
		}
		x.fresh = after.Ctim != before.Ctim || after.Size != before.Size // then it is read again, now or next time
		if !x.fresh {
			break
		}
	}
	attrs, err := r.fileAttrs(fd)
	if errors.Is(err, errOdd) {
		x.leave(overlayMark, x.Size)
		return nil
	}
	if attrs != nil {
		x.Attrs = b.put(attrs)
	}
	return err
}

// open opens a file to be read. For an undo it may be one that its owner can't read.
func (t *Taking) open(dir int, x *item) (int, error) {
	const flags = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	fd, err := unix.Openat(dir, x.Name, flags, 0)
	if !errors.Is(err, unix.EACCES) || !t.o.Why.opens() || x.Kind != File || chmodAt(dir, x.Name, x.Mode|0o400) != nil {
		return fd, err
	}
	if fd, err = unix.Openat(dir, x.Name, flags, 0); err != nil {
		_ = chmodAt(dir, x.Name, x.Mode)
		return fd, err
	}
	return fd, unix.Fchmod(fd, x.Mode)
}

// file stores the content of an open file.
func (b *block) file(fd int, x *item) error {
	x.Kind, x.Object, x.Attrs = File, Digest{}, Digest{}
	size := min(x.Size, pieceSize)
	if cap(b.buf) < int(size) {
		b.buf = make([]byte, size, max(size, 64<<10))
	}
	var pieces []byte
	var got int64
	for {
		n, err := readFull(fd, b.buf[:size], got)
		if err != nil {
			return err
		}
		got += int64(n)
		if got >= x.Size || n == 0 {
			d := b.put(b.buf[:n])
			if pieces == nil {
				x.Object = d
			} else {
				x.Kind, x.Object = Large, b.put(append(pieces, d[:]...))
			}
			x.Size = got
			return nil
		}
		d := b.put(b.buf[:n])
		pieces = append(pieces, d[:]...)
		size = min(x.Size-got, pieceSize)
	}
}

// readFull fills buf from an offset on; less at the end of the file.
func readFull(fd int, buf []byte, from int64) (n int, err error) {
	for n < len(buf) {
		m, err := unix.Pread(fd, buf[n:], from+int64(n))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if errors.Is(err, io.EOF) || m == 0 && err == nil {
			break
		}
		if err != nil {
			return n, err
		}
		n += m
	}
	return n, nil
}

func openBelow(fd int, name string) (int, error) {
	return unix.Openat(fd, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
}

// openDir opens a directory below another without following a link.
func openDir(top int, rel string) (int, error) {
	fd, err := unix.Openat(top, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if rel == "" || err != nil {
		return fd, err
	}
	for name := range strings.SplitSeq(rel, "/") {
		next, err := openBelow(fd, name)
		unix.Close(fd)
		if err != nil {
			return -1, err
		}
		fd = next
	}
	return fd, nil
}

// trees stores the trees that are not the index's.
func (t *Taking) trees(w *packer) error {
	b, err := w.block()
	if err != nil {
		return err
	}
	for _, r := range t.roots {
		r.now.tree(b, r.old)
	}
	b.flush()
	return w.failed()
}

// tree stores the node's tree after those below it, and returns its digest.
func (n *node) tree(b *block, old *node) Digest {
	if n.raw != nil {
		return n.object
	}
	same := old != nil && len(old.list()) == len(n.items) && !old.object.zero()
	list := make([]Entry, 0, len(n.items))
	for i := range n.items {
		x := &n.items[i]
		was := old.at(i, x.Name)
		if x.sub != nil {
			var sub *node
			if was != nil {
				sub = was.sub
			}
			x.Object = x.sub.tree(b, sub)
			if x.sub.attrs != nil {
				x.Attrs, x.sub.attrs = b.put(x.sub.attrs), nil
			}
		}
		same = same && was != nil && x.Entry == was.Entry
		list = append(list, x.Entry)
	}
	if same {
		n.object = old.object
	} else {
		n.object = b.putTree(encodeTree(list))
	}
	return n.object
}

func (s *Store) packer(has func(Digest) bool) *packer {
	return &packer{dir: path.Join(s.dir, packsName), has: has}
}

func (w *packer) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
}
