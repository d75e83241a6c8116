package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Limits say how much a store keeps. The two last checkpoints always stay, and how the
// last session began.
type Limits struct {
	Bytes int64         // on the disk; the oldest go first
	Age   time.Duration // older ones go
	Fine  time.Duration // of older sessions, start and end stay, and the state before an undo
}

// DefaultLimits are 2 GiB, 30 days, and one day for checkpoints within sessions.
var DefaultLimits = Limits{Bytes: 2 << 30, Age: 30 * 24 * time.Hour, Fine: 24 * time.Hour}

// keepLast is how many checkpoints stay whatever the limits say. The beginning of
// the last session stays with them: a guest's writes can't push that out.
const keepLast = 2

// spared returns the checkpoints that stay.
func spared(list []Checkpoint) map[string]bool {
	stays := map[string]bool{}
	for _, c := range list[max(0, len(list)-keepLast):] {
		stays[c.ID] = true
	}
	for _, c := range slices.Backward(list) {
		if c.Why == AtStart {
			stays[c.ID] = true
			break
		}
	}
	for _, c := range list {
		if c.Why == AtCopy { // until the copy is discarded
			stays[c.ID] = true
		}
	}
	return stays
}

// Prune removes checkpoints beyond the limits at this time, and returns those that
// are gone. While a checkpoint is taken it returns [ErrBusy].
func (s *Store) Prune(l Limits, now time.Time) (removed []Checkpoint, err error) {
	if !s.taking.TryLock() {
		return nil, ErrBusy
	}
	defer s.taking.Unlock()
	list, err := List(s.dir)
	if err != nil {
		return nil, err
	}
	var stay []Checkpoint
	spared := spared(list)
	for _, c := range list {
		age := now.Sub(c.When)
		within := c.Why == AtTime || c.Why == AtPrompt || c.Why == Destruction
		if !spared[c.ID] && (age > l.Age || within && age > l.Fine) {
			removed = append(removed, c)
		} else {
			stay = append(stay, c)
		}
	}
	if len(removed) == 0 {
		packs, err := s.packNames()
		if err != nil {
			return nil, err
		}
		if size, err := Size(s.dir); err != nil || size <= l.Bytes && len(packs) <= manyPacks {
			return nil, err
		}
	}
	if err := s.remove(removed, stay); err != nil {
		return nil, err
	}
	for len(stay) > len(spared) {
		size, err := Size(s.dir)
		if err != nil || size <= l.Bytes {
			return removed, err
		}
		// The oldest tenth goes at a time: each time the packs are written anew.
		n := max(1, len(stay)/10)
		var gone []Checkpoint
		stay = slices.DeleteFunc(slices.Clone(stay), func(c Checkpoint) bool {
			goes := !spared[c.ID] && len(gone) < n
			if goes {
				gone = append(gone, c)
			}
			return goes
		})
		if err := s.remove(gone, stay); err != nil {
			return removed, err
		}
		removed = append(removed, gone...)
	}
	return removed, nil
}

// Size returns how many bytes the files of a store hold.
func Size(dir string) (size int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				size += info.Size()
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	return size, err
}

// remove removes checkpoints, and then what no other needs.
func (s *Store) remove(gone, stay []Checkpoint) error {
	for _, c := range gone {
		if err := os.Remove(recordPath(s.dir, c.ID)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	live := liveSet{objects: map[Digest]bool{}, trees: map[Digest]bool{}}
	roots := map[string]*node{}
	for _, c := range stay {
		for _, r := range c.Roots {
			if err := s.mark(r.Tree, live); err != nil {
				return err
			}
			roots[r.Top()] = nil
		}
	}
	for path := range roots { // an index may be ahead of all records
		n := s.readIndex(path)
		if n != nil && n.mark(live.objects) {
			roots[path] = n
		} else if err := os.Remove(s.indexPath(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := s.sweep(live.objects); err != nil {
		return err
	}
	return s.reindex(roots)
}

// A liveSet holds the objects that are needed, and the trees whose entries are marked.
// A file may have the bytes of a tree: that the object is needed says nothing of those.
type liveSet struct{ objects, trees map[Digest]bool }

// mark notes the objects of a tree. A missing object is skipped; any other
// error ends it, since unmarked objects are removed.
func (s *Store) mark(d Digest, live liveSet) error {
	if live.trees[d] {
		return nil
	}
	live.trees[d], live.objects[d] = true, true
	list, err := s.tree(d)
	if errors.Is(err, errMissing) || errors.Is(err, errTree) {
		return nil
	}
	if err == nil {
		err = s.markPieces(d, treePieces, live.objects)
	}
	if err != nil {
		return err
	}
	for i := range list {
		e := &list[i]
		live.objects[e.Attrs], live.objects[e.Object] = true, true
		switch e.Kind {
		case Directory:
			err = s.mark(e.Object, live)
		case Large:
			err = s.markPieces(e.Object, digests, live.objects)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// markPieces marks the objects that another one lists.
func (s *Store) markPieces(d Digest, list func([]byte) ([]Digest, error), live map[Digest]bool) error {
	b, err := s.get(d)
	if errors.Is(err, errMissing) {
		return nil
	}
	if err != nil {
		return err
	}
	pieces, _ := list(b)
	for _, p := range pieces {
		live[p] = true
	}
	return nil
}

// mark notes the objects of an index, unless it is damaged.
func (n *node) mark(live map[Digest]bool) bool {
	live[n.object] = true
	list, ok := n.unpack(nil)
	for i := range list {
		live[list[i].Object], live[list[i].Attrs] = true, true
		ok = ok && (list[i].sub == nil || list[i].sub.mark(live))
	}
	return ok
}

// Packs that are merged: of more than manyPacks those that are small. An open pack
// takes a descriptor, and an object is looked for in one after the other.
const (
	manyPacks = 32
	smallPack = 16 << 20
)

// sweep writes anew what packs hold of which less than half is needed.
func (s *Store) sweep(live map[Digest]bool) error {
	s.mu.Lock()
	err := s.load()
	packs := slices.Clone(s.packs)
	s.mu.Unlock()
	if err == nil {
		err = s.clean(packsName, damagedPrefix)
	}
	if err != nil {
		return err
	}
	var old []*pack
	w := s.packer(func(Digest) bool { return false })
	b, err := w.block()
	if err != nil {
		return err
	}
	counted := map[Digest]*pack{}
	for _, p := range slices.Backward(packs) { // as find looks for them
		needed, all := p.weigh(live, counted)
		if needed*2 > all && (len(packs) <= manyPacks || p.size > smallPack) {
			continue
		}
		old = append(old, p)
		if needed == 0 {
			continue
		}
		if err := s.rescue(p, b, counted); err != nil {
			w.fail(err)
			_, err = w.close()
			return err
		}
		if w.offset > maxPack/4 { // enough for one pack
			b.flush()
			if err := s.exchange(w, old); err != nil {
				return err
			}
			w, old = s.packer(w.has), nil
			b.w = w
		}
	}
	b.flush()
	return s.exchange(w, old)
}

// exchange puts a new pack in the place of old ones.
func (s *Store) exchange(w *packer, old []*pack) error {
	p, err := w.close()
	if err != nil {
		return err
	}
	if p != nil {
		if err := errors.Join(p.sync(), syncFile(w.dir)); err != nil {
			p.close()
			return err
		}
	}
	s.drop(old, p)
	return nil
}

// weigh returns the bytes that are needed of a pack, and all of them. Objects
// counted for another pack are not needed twice.
func (p *pack) weigh(live map[Digest]bool, counted map[Digest]*pack) (needed, all int64) {
	for i := range p.objects() {
		l := p.place(i)
		size := int64(l.length) + tableEntry
		all += size
		if live[l.object] && counted[l.object] == nil {
			counted[l.object] = p
			needed += size
		}
	}
	return needed, all
}

// rescue copies the needed objects of a pack. Damaged ones are not copied.
func (s *Store) rescue(p *pack, b *block, counted map[Digest]*pack) error {
	for i := range p.objects() {
		l := p.place(i)
		if counted[l.object] != p || !b.w.claim(l.object) {
			continue
		}
		data, err := s.get(l.object)
		if errors.Is(err, errMissing) {
			continue
		}
		if err != nil {
			return err
		}
		b.add(l.object, data)
	}
	return b.w.failed()
}

// drop removes packs from the store, now that there is another in their place.
func (s *Store) drop(old []*pack, instead *pack) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gone := map[*pack]bool{}
	for _, p := range old {
		gone[p] = true
		p.close()
		if instead == nil || p.name != instead.name {
			_ = os.Remove(filepath.Join(s.dir, packsName, p.name))
		}
	}
	var left []*pack
	for _, p := range s.packs {
		if !gone[p] {
			left = append(left, p)
		}
	}
	if instead != nil {
		left = append(left, instead)
	}
	s.packs = left
	s.last.pack = nil
}

// reindex has the indexes hold for the packs as they are now. They were marked, so
// that nothing is missing.
func (s *Store) reindex(roots map[string]*node) error {
	for path, n := range roots {
		if n == nil {
			continue
		}
		if err := s.writeIndex(path, n); err != nil {
			return fmt.Errorf("write the index of %q: %w", path, err)
		}
	}
	return nil
}
