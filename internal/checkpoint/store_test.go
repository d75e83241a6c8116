package checkpoint

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// TestLargeDirectory keeps a directory whose tree takes several objects.
func TestLargeDirectory(t *testing.T) {
	w := newWorld(t)
	w.file("f", "f")
	s, taking := w.scan(Options{})
	_, err := taking.Keep(nil)
	w.must(err)
	var list []Entry
	for i := range 60_000 {
		list = append(list, Entry{Name: fmt.Sprintf("%0100d", i), Kind: File, Object: Digest{1}})
	}
	p := s.packer(s.has)
	b, err := p.block()
	w.must(err)
	d := b.putTree(encodeTree(list))
	b.flush()
	pack, err := p.close()
	w.must(err)
	s.add(pack)
	got, err := s.tree(d)
	w.must(err)
	if !slices.Equal(got, list) {
		t.Error("the directory is another one")
	}
	live := liveSet{map[Digest]bool{}, map[Digest]bool{}}
	w.must(s.mark(d, live))
	if len(live.objects) < 4 {
		t.Errorf("%d objects are marked", len(live.objects))
	}
}

// TestFrameOfAnEmptyFile reads the object after an empty one that has a frame for
// itself: both frames begin at the same place.
func TestFrameOfAnEmptyFile(t *testing.T) {
	w := newWorld(t)
	s := w.store()
	defer s.Close()
	p := s.packer(s.has)
	var objects []Digest
	for _, data := range []string{"", "new"} { // two goroutines that read files
		b, err := p.block()
		w.must(err)
		objects = append(objects, b.put([]byte(data)))
		b.flush()
	}
	pack, err := p.close()
	w.must(err)
	s.add(pack)
	for i, want := range []string{"", "new", ""} {
		if got, err := s.get(objects[i%2]); err != nil || string(got) != want {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
}

// TestHundredThousandNames is the same from outside.
func TestHundredThousandNames(t *testing.T) {
	testenv.Whole(t)
	w := newWorld(t)
	for i := range 100_000 {
		w.must(os.WriteFile(w.path(fmt.Sprintf("%0100d", i)), nil, 0o644))
	}
	c := w.take("s", AtStart)
	for i := range 100 {
		w.must(os.Remove(w.path(fmt.Sprintf("%0100d", i*7))))
	}
	w.undo(c, nil)
	if list, _ := os.ReadDir(w.root); len(list) != 100_000 {
		t.Errorf("%d names", len(list))
	}
}

// TestFileLikeATree has a file with the bytes of a tree, which must not hide that
// tree's own objects from Prune.
func TestFileLikeATree(t *testing.T) {
	w := newWorld(t)
	w.file("z/file", noise(1, 1<<20))
	w.file("gone", noise(2, 3<<20))
	c := w.take("s", AtStart)
	s := w.store()
	list, err := s.tree(c.Roots[0].Tree)
	w.must(err)
	bytes, err := s.get(list[len(list)-1].Object)
	w.must(err)
	w.must(s.Close())
	w.file("a", string(bytes)) // comes before z
	w.must(os.Remove(w.path("gone")))
	last := w.take("s", AtStart)
	w.take("s", AtEnd)
	w.must(os.Remove(filepath.Join(w.dir, indexFile(w.root)))) // which marks files by itself
	s = w.store()
	_, err = s.Prune(Limits{Bytes: 1, Age: time.Hour, Fine: time.Hour}, time.Now())
	w.must(err)
	w.must(s.Close())
	want := w.read("z/file")
	w.must(os.RemoveAll(w.path("z")))
	w.undo(last, nil)
	if w.read("z/file") != want {
		t.Error("Prune has removed an object that is needed")
	}
}

func indexFile(root string) string { return filepath.Base((&Store{}).indexPath(root)) }

// TestStoreInWorkspace must not store itself.
func TestStoreInWorkspace(t *testing.T) {
	w := newWorld(t)
	w.file("f", "f")
	w.dir = w.path("state/store")
	for range 3 {
		if c := w.take("s", AtStart); c.Roots[0].Files != 1 {
			t.Errorf("%d files", c.Roots[0].Files)
		}
	}
}

// TestWithout leaves directories alone that are named, also where nobody can read them,
// and neither has what is in them nor takes it back.
func TestWithout(t *testing.T) {
	w := newWorld(t)
	w.file("f", "f")
	w.file("own/state/key", "secret")
	w.must(os.Mkdir(w.path("own/state/sealed"), 0))
	take := func(without ...string) *Checkpoint {
		t.Helper()
		s, taking := w.scan(Options{Without: without})
		defer s.Close()
		defer taking.Close()
		c, err := taking.Keep(nil)
		w.must(err)
		w.must(taking.Finish())
		return c
	}
	if c := take(w.path("own/state"), w.path("missing")); c.Roots[0].Files != 1 || len(c.Roots[0].Uncovered) > 0 {
		t.Errorf("%d files, uncovered %v; want 1 and none", c.Roots[0].Files, c.Roots[0].Uncovered)
	}
	if c := take(); c.Roots[0].Files != 2 {
		t.Errorf("control: %d files, want 2", c.Roots[0].Files)
	}
}

// TestManyUncovered plants more places than a session can make read-only one by one.
func TestManyUncovered(t *testing.T) {
	list := make([]Uncovering, maxUncovered+10)
	for i := range list {
		list[i] = Uncovering{Path: fmt.Sprint("/w/", i), Size: 1}
	}
	if got := atMost(list[:maxUncovered], "/w"); len(got) != maxUncovered {
		t.Errorf("%d", len(got))
	}
	got := atMost(list, "/w")
	if last := got[len(got)-1]; len(got) != maxUncovered+1 || last.Path != "/w" || last.Size != 10 {
		t.Errorf("%d, last %+v", len(got), last)
	}
}

// TestIndexHoldsForAddedPacks wants a root's index to stay good when a checkpoint of
// another root adds a pack, and after a kill between Keep and Finish.
func TestIndexHoldsForAddedPacks(t *testing.T) {
	w := newWorld(t)
	w.file("f", "one")
	settle(t)
	w.take("s", AtStart)
	other := *w
	other.root = filepath.Join(filepath.Dir(w.root), "other")
	w.must(os.Mkdir(other.root, 0o755))
	other.file("g", "two")
	other.take("s", AtStart)
	s, taking := w.scan(Options{})
	if taking.roots[0].old == nil || taking.Changed() {
		t.Error("the index does not hold any more")
	}
	taking.Close()
	packs, err := s.packNames()
	w.must(err)
	w.must(s.Close())
	for _, p := range packs { // control: without a pack it does not hold
		w.must(os.Remove(filepath.Join(w.dir, packsName, p.name)))
	}
	s, taking = w.scan(Options{})
	if taking.roots[0].old != nil {
		t.Error("the index outlives its packs")
	}
	taking.Close()
	w.must(s.Close())
}

// TestKeepOnce wants no second try: the first has marked what it read as stored.
func TestKeepOnce(t *testing.T) {
	w := newWorld(t)
	w.file("f", "one")
	_, taking := w.scan(Options{})
	_, err := taking.Keep([]byte("not JSON"))
	if err == nil {
		t.Fatal("control: it was kept")
	}
	if _, err := taking.Keep(nil); err == nil {
		t.Error("it was kept after an error")
	}
	if packs, _ := os.ReadDir(filepath.Join(w.dir, packsName)); len(packs) > 0 {
		t.Errorf("the pack is left: %v", packs)
	}
}

// TestPruneWaits does not prune beside a checkpoint that is being taken.
func TestPruneWaits(t *testing.T) {
	w := newWorld(t)
	w.file("f", "one")
	s, taking := w.scan(Options{})
	if _, err := s.Prune(DefaultLimits, time.Now()); !errors.Is(err, ErrBusy) {
		t.Errorf("%v; want ErrBusy", err)
	}
	taking.Close()
	taking.Close()
	if _, err := s.Prune(DefaultLimits, time.Now()); err != nil {
		t.Error(err)
	}
}

// TestPruneStops wants an error of the disk to end a prune, not to make it remove what
// it could not look at.
func TestPruneStops(t *testing.T) {
	w := newWorld(t)
	w.file("dir/f", noise(1, 1<<20))
	w.take("a", AtStart)
	w.file("dir/g", noise(2, 1<<20))
	w.take("b", AtStart)
	w.take("b", AtEnd)
	s := w.store()
	s.mu.Lock()
	w.must(s.load())
	for _, p := range s.packs {
		p.f.Close() // each read fails from now on
	}
	s.mu.Unlock()
	if _, err := s.Prune(Limits{Bytes: 1}, time.Now()); err == nil {
		t.Error("no error")
	}
	if packs, _ := s.packNames(); len(packs) < 2 {
		t.Errorf("%d packs are left", len(packs))
	}
	_ = s.Close()
}

// TestPacksAreMerged wants few packs whatever the number of checkpoints.
func TestPacksAreMerged(t *testing.T) {
	w := newWorld(t)
	for i := range manyPacks + 5 {
		w.file(fmt.Sprint("f", i), fmt.Sprint(i))
		w.take("s", AtTime)
	}
	want := w.state()
	s := w.store()
	if _, err := s.Prune(DefaultLimits, time.Now()); err != nil {
		t.Error(err)
	}
	if packs, _ := s.packNames(); len(packs) != 1 {
		t.Errorf("%d packs", len(packs))
	}
	w.must(s.Close())
	list, err := List(w.dir)
	w.must(err)
	if len(list) != manyPacks+5 {
		t.Fatalf("%d checkpoints", len(list))
	}
	for i := range 3 {
		w.must(os.Remove(w.path(fmt.Sprint("f", i))))
	}
	w.undo(&list[len(list)-1], nil)
	compare(t, w.state(), want)
}

// TestLimitKeepsWhatWasCovered has a guest fill the workspace, so that a checkpoint
// can't hold everything.
func TestLimitKeepsWhatWasCovered(t *testing.T) {
	file := func(name string, size int64) item { return item{Entry: Entry{Name: name, Kind: File, Size: size}} }
	dir := func(name string, items ...item) item {
		return item{Entry: Entry{Name: name, Kind: Directory}, sub: &node{items: items}}
	}
	covered := func(n *node) (list []string) {
		var walk func(at string, n *node)
		walk = func(at string, n *node) {
			for i := range n.items {
				if x := &n.items[i]; x.sub != nil {
					walk(at+x.Name+"/", x.sub)
				} else if x.Kind.covered() {
					list = append(list, at+x.Name)
				}
			}
		}
		walk("", n)
		return list
	}
	old := &node{items: []item{dir("a", file("1", 10)), dir("b", file("1", 50), file("2", 30))}}
	var junk []item
	for i := range 40 {
		junk = append(junk, file(fmt.Sprintf("j%02d", i), 64))
	}
	for name, now := range map[string]*node{
		"junk in a small directory": {items: []item{dir("a", file("1", 10), file("junk", 60)), dir("b", file("1", 50), file("2", 30))}},
		"many files that don't fit": {items: []item{dir("a", file("1", 10)), dir("b", append([]item{file("1", 50), file("2", 30)}, junk...)...)}},
		"new directories":           {items: []item{dir("a", file("1", 10)), dir("b", file("1", 50), file("2", 30)), dir("c", junk...)}},
	} {
		limit(now, old, 100)
		got := covered(now)
		for _, want := range []string{"a/1", "b/1", "b/2"} {
			if !slices.Contains(got, want) {
				t.Errorf("%s: %s is not covered any more, but %q", name, want, got)
			}
		}
	}
	grown := &node{items: []item{dir("a", file("1", 90)), dir("b", file("1", 50), file("2", 30))}}
	limit(grown, old, 100)
	if got := covered(grown); !slices.Equal(got, []string{"b/1", "b/2"}) {
		t.Errorf("a file has grown: %q", got)
	}
	fits := &node{items: []item{dir("a", file("1", 10), file("new", 9)), dir("b", file("1", 50), file("2", 30), file("new", 20))}}
	limit(fits, old, 100)
	if got := covered(fits); !slices.Equal(got, []string{"a/1", "a/new", "b/1", "b/2"}) {
		t.Errorf("the smaller one: %q", got)
	}
}
