package checkpoint

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// settle waits until a change gives another ctime than what has been made so far.
func settle(t testing.TB) {
	made := time.Now()
	testenv.Until(t, "a tick of the file system's clock", func() bool { return time.Since(made) > 60*time.Millisecond })
}

// scan begins a checkpoint, which the test goes on with.
func (w *world) scan(o Options) (*Store, *Taking) {
	w.t.Helper()
	s := w.store()
	w.t.Cleanup(func() { s.Close() })
	o.Roots = []string{w.root}
	t, err := s.Scan(o)
	w.must(err)
	w.t.Cleanup(t.Close)
	return s, t
}

func (w *world) read(name string) string {
	b, _ := os.ReadFile(w.path(name))
	return string(b)
}

// TestGuestMovesDirectories swaps two directories between the look at them and the
// reading, and back. The next checkpoint must still have what is in them.
func TestGuestMovesDirectories(t *testing.T) {
	w := newWorld(t)
	w.file("p/s/kept", "the human's")
	w.must(os.MkdirAll(w.path("q/s"), 0o755))
	settle(t)
	s, taking := w.scan(Options{})
	swap := func() {
		w.must(os.Rename(w.path("p"), w.path("x")))
		w.must(os.Rename(w.path("q"), w.path("p")))
		w.must(os.Rename(w.path("x"), w.path("q")))
	}
	swap()
	_, err := taking.Keep(nil)
	w.must(err)
	w.must(taking.Finish())
	taking.Close()
	w.must(s.Close())
	swap()
	c := w.take("s", AtStart)
	w.must(os.RemoveAll(w.path("p")))
	w.undo(c, nil)
	if w.read("p/s/kept") != "the human's" {
		t.Error("the file is lost: the index has left it out")
	}
}

// TestRacingGuest makes, moves and removes things while checkpoints are taken, which
// must not fail for that.
func TestRacingGuest(t *testing.T) {
	w := newWorld(t)
	w.file("kept/file", "the human's")
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			d := w.path(fmt.Sprint("d", i%7))
			_ = os.MkdirAll(filepath.Join(d, "a/b"), 0o755)
			_ = os.WriteFile(filepath.Join(d, "a/b/f"), []byte(fmt.Sprint(i)), 0o644)
			_ = os.RemoveAll(w.path(fmt.Sprint("d", (i+3)%7)))
			_ = os.Symlink("/etc", w.path(fmt.Sprint("d", (i+3)%7)))
			_ = os.Remove(w.path(fmt.Sprint("d", (i+5)%7)))
		}
	}()
	var last *Checkpoint
	for range testenv.Some(200, 40) {
		last = w.take("s", AtTime)
	}
	close(stop)
	<-ended
	w.must(os.RemoveAll(w.path("kept")))
	w.undo(last, nil)
	if w.read("kept/file") != "the human's" {
		t.Error("the file is lost")
	}
}

// TestChangeWhileRead wants a file to be read again next time that has changed since
// the scan began: a second change may have the same ctime.
func TestChangeWhileRead(t *testing.T) {
	w := newWorld(t)
	w.file("file", "one")
	settle(t)
	_, taking := w.scan(Options{})
	if taking.roots[0].now.list()[0].racy {
		t.Fatal("control: the file is old, and racy")
	}
	w.file("file", "two")
	_, err := taking.Keep(nil)
	w.must(err)
	if !taking.roots[0].now.list()[0].racy {
		t.Error("a file that has changed meanwhile is not racy")
	}
}

// TestDirectoryNotEntered has a directory whose names can be read, and nothing else.
// They are not covered; an undo must not take them for new ones.
func TestDirectoryNotEntered(t *testing.T) {
	w := newWorld(t)
	w.file("dir/file", "the human's")
	w.must(os.Chmod(w.path("dir"), 0o600))
	c := w.take("s", AtStart)
	w.must(os.Chmod(w.path("dir"), 0o700))
	w.undo(c, nil)
	w.must(os.Chmod(w.path("dir"), 0o700))
	if w.read("dir/file") != "the human's" {
		t.Error("the undo has removed what no checkpoint covered")
	}
	if os.Geteuid() == 0 {
		return // root has entered it
	}
	if u := c.Roots[0].Uncovered; len(u) != 1 || u[0].Path != w.path("dir/file") {
		t.Errorf("uncovered: %+v", u)
	}
}

// TestLockedAway has a guest take modes away, so that its owner can't read or change
// what is to come back.
func TestLockedAway(t *testing.T) {
	w := newWorld(t)
	w.file("a/b/file", "one")
	w.file("file", "one")
	w.file("c/file", "one")
	w.must(os.Chmod(w.root, 0o755))
	before := w.state()
	start := w.take("s", AtStart)
	w.file("a/b/file", "two")
	w.file("file", "two")
	w.file("c/file", "two")
	w.file("c/made", "two")
	for _, name := range []string{"a/b/file", "a/b", "a", "file"} {
		w.must(os.Chmod(w.path(name), 0))
	}
	w.must(os.Chmod(w.path("c"), 0o500))
	w.must(os.Chmod(w.root, 0o500))
	end := w.take("s", AtEnd)
	w.must(os.Chmod(w.root, 0))
	for range 2 {
		w.undo(start, end)
	}
	w.must(os.Chmod(w.root, 0o755)) // its mode is the human's since
	compare(t, w.state(), before)
}

// TestPreviewChangesNoMode looks at what is locked away, and does nothing.
func TestPreviewChangesNoMode(t *testing.T) {
	w := newWorld(t)
	w.file("a/b/file", "one")
	start := w.take("s", AtStart)
	w.must(os.Chmod(w.path("a/b/file"), 0))
	w.must(os.Chmod(w.path("a/b"), 0o100))
	w.must(os.Chmod(w.path("a"), 0o300))
	_, taking := w.scan(Options{Why: BeforeUndo})
	u := &Undo{To: start}
	w.must(taking.Plan(u))
	taking.Close()
	w.must(os.Chmod(w.path("a"), 0o700))
	for name, want := range map[string]os.FileMode{"a/b": 0o100} {
		if info, err := os.Stat(w.path(name)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v; want %o", name, info, err, want)
		}
	}
	if len(u.Changes) != 3 {
		t.Errorf("%+v", u.Changes)
	}
}

// TestUncoverableInTheWay puts where a file was what no checkpoint can hold.
func TestUncoverableInTheWay(t *testing.T) {
	w := newWorld(t)
	w.file("big", "small")
	w.file("dir/file", "one")
	w.file("sock", "one")
	w.file("box", "one")
	before := w.state()
	start := w.take("s", AtStart)
	w.must(os.Truncate(w.path("big"), MaxFile+1))
	w.must(os.RemoveAll(w.path("dir")))
	socket := func(name string) {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		w.must(err)
		defer unix.Close(fd)
		_ = os.Remove(w.path(name))
		w.must(unix.Bind(fd, &unix.SockaddrUnix{Name: w.path(name)}))
	}
	for _, name := range []string{"dir", "sock"} {
		socket(name)
	}
	w.must(os.Remove(w.path("box")))
	w.must(os.Mkdir(w.path("box"), 0o755))
	socket("box/in")
	end := w.take("s", AtEnd)
	for range 2 { // the second has nothing to do
		if u := w.undo(start, end); len(u.Kept) > 0 {
			t.Errorf("kept: %+v", u.Kept)
		}
	}
	got := w.state()
	aside := 0
	for name := range got {
		if strings.Contains(name, ".aside-") {
			aside++
			delete(got, name)
		}
	}
	compare(t, got, before)
	if aside != 5 { // box is a directory, with one in it
		t.Errorf("%d names aside; want 5", aside)
	}
}

// TestHumanMadeItLarge is a conflict: nothing moves.
func TestHumanMadeItLarge(t *testing.T) {
	w := newWorld(t)
	w.file("big", "small")
	start := w.take("s", AtStart)
	w.file("big", "the session's")
	end := w.take("s", AtEnd)
	w.must(os.Truncate(w.path("big"), MaxFile+1))
	if u := w.undo(start, end); len(u.Kept) != 1 || len(u.Changes) != 0 {
		t.Errorf("%+v, kept %+v", u.Changes, u.Kept)
	}
}

// TestLinksComeBack removes one name of a file that has two.
func TestLinksComeBack(t *testing.T) {
	w := newWorld(t)
	w.file("a", "one")
	w.must(os.Link(w.path("a"), w.path("b")))
	before := w.state()
	start := w.take("s", AtStart)
	w.must(os.Remove(w.path("b")))
	w.undo(start, nil)
	compare(t, w.state(), before)
}

// TestLinksOfRoots has files of the same number in two roots.
func TestLinksOfRoots(t *testing.T) {
	w := newWorld(t)
	other := filepath.Join(filepath.Dir(w.root), "other")
	w.must(os.Mkdir(other, 0o755))
	roots := []*rooted{{path: w.root}, {path: other}}
	for _, r := range roots {
		fd, err := unix.Open(r.path, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		w.must(err)
		defer unix.Close(fd)
		r.top = fd
	}
	w.must(os.WriteFile(filepath.Join(other, "a"), []byte("other"), 0o644))
	a := &undoer{linked: map[fileName]string{{roots[0], 7}: "a"}}
	if a.link(roots[1].top, "b", &Change{root: roots[1], entry: &Entry{Link: 7}}) {
		t.Error("a file of one root was linked for one of another")
	}
}

// TestPlantedAttributes wants those gone that a session has added.
func TestPlantedAttributes(t *testing.T) {
	w := newWorld(t)
	w.must(os.Mkdir(w.path("dir"), 0o755))
	start := w.take("s", AtStart)
	if err := unix.Setxattr(w.path("dir"), "user.note", []byte("planted"), 0); errors.Is(err, unix.ENOTSUP) {
		return
	}
	w.undo(start, nil)
	if n, err := unix.Getxattr(w.path("dir"), "user.note", nil); err == nil {
		t.Errorf("the attribute is there, with %d bytes", n)
	}
}

// TestOwnersComeBack is about files of other users, which root may restore. Set-user-ID
// must never be the right of another user than before.
func TestOwnersComeBack(t *testing.T) {
	w := newWorld(t)
	if os.Geteuid() != 0 {
		f, err := os.Create(w.path("f"))
		w.must(err)
		defer f.Close()
		if mode := own(int(f.Fd()), &Entry{Kind: File, UID: 0, GID: 0, Mode: 0o6755}); mode != 0o755 {
			t.Errorf("a file that was root's gets mode %o of this user's", mode)
		}
		return
	}
	w.file("f", "one")
	w.must(os.Mkdir(w.path("d"), 0o755))
	for _, name := range []string{"f", "d"} {
		w.must(os.Chown(w.path(name), 1234, 1235))
	}
	w.must(os.Chmod(w.path("f"), 0o755|os.ModeSetuid))
	start := w.take("s", AtStart)
	w.must(os.RemoveAll(w.path("f")))
	w.must(os.RemoveAll(w.path("d")))
	w.undo(start, nil)
	for _, name := range []string{"f", "d"} {
		var st unix.Stat_t
		w.must(unix.Lstat(w.path(name), &st))
		if st.Uid != 1234 || st.Gid != 1235 || name == "f" && st.Mode&0o7777 != 0o4755 {
			t.Errorf("%s: %d:%d %o", name, st.Uid, st.Gid, st.Mode)
		}
	}
}

// TestLinkInsteadOfPipe has a guest put a link where a mode is about to be set.
func TestLinkInsteadOfPipe(t *testing.T) {
	w := newWorld(t)
	w.file("outside", "the human's")
	w.must(os.Chmod(w.path("outside"), 0o600))
	w.must(os.Symlink("outside", w.path("link")))
	fd, err := unix.Open(w.root, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	w.must(err)
	defer unix.Close(fd)
	w.must(unix.Fchmodat(fd, "link", 0o640, 0)) // control: this follows it
	_ = chmodAt(fd, "link", 0o777)
	info, err := os.Stat(w.path("outside"))
	w.must(err)
	if info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v; want that of the control", info.Mode())
	}
}

// TestSparseAndForged has a file with holes, and a change that hides its time and size.
func TestSparseAndForged(t *testing.T) {
	w := newWorld(t)
	w.file("hole", "")
	w.must(os.Truncate(w.path("hole"), 20<<20))
	w.file("f", "one")
	then := time.Unix(1_600_000_000, 0)
	w.must(os.Chtimes(w.path("f"), then, then))
	settle(t)
	start := w.take("s", AtStart)
	w.file("f", "two")
	w.must(os.Chtimes(w.path("f"), then, then))
	w.must(os.Remove(w.path("hole")))
	w.undo(start, nil)
	var st unix.Stat_t
	w.must(unix.Stat(w.path("hole"), &st))
	if st.Size != 20<<20 || st.Blocks > 64 || w.read("f") != "one" {
		t.Errorf("%d bytes in %d blocks; f is %q", st.Size, st.Blocks, w.read("f"))
	}
}

// TestMappedStore changes a file through a mapping whose page is already dirty, which
// gives no new ctime.
func TestMappedStore(t *testing.T) {
	w := newWorld(t)
	dirs := []string{w.root}
	if shm, err := os.MkdirTemp("/dev/shm", "bawn"); err == nil {
		t.Cleanup(func() { os.RemoveAll(shm) })
		dirs = append(dirs, shm)
	}
	for _, dir := range dirs {
		w := *w
		w.root, w.dir = dir, w.dir+filepath.Base(dir)
		w.file("f", strings.Repeat("0", 4096))
		f, err := os.OpenFile(w.path("f"), os.O_RDWR, 0)
		w.must(err)
		defer f.Close()
		b, err := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		w.must(err)
		defer unix.Munmap(b)
		for i := byte('1'); i < '4'; i++ {
			b[0] = i
			settle(t)
			s, taking := w.scan(Options{Running: true})
			c, err := taking.Keep(nil)
			w.must(err)
			w.must(taking.Finish())
			taking.Close()
			list, err := s.tree(c.Roots[0].Tree)
			w.must(err)
			got, err := s.get(list[0].Object)
			w.must(err)
			if got[0] != i {
				t.Errorf("%s: the checkpoint has %q; want %q", dir, got[0], i)
			}
			w.must(s.Close())
		}
	}
}

// TestIgnoreFilesDoNotShrink plants what git and other programs obey.
func TestIgnoreFilesDoNotShrink(t *testing.T) {
	w := newWorld(t)
	w.file("src/main.go", "package main")
	w.file("build/made by hand", "the human's")
	w.take("s", AtStart)
	w.file(".gitignore", "*\n")
	w.file("src/.gitignore", "*\n")
	w.file(".gitattributes", "* filter=none -text export-ignore\n")
	w.file("build.gradle", "") // a sign that build can be made again
	w.file("build/CMakeCache.txt", "")
	w.file("src/pyvenv.cfg", "")
	w.file("target/new", "new")
	c := w.take("s", AtEnd)
	before := w.state()
	for _, name := range []string{"src", "build", "target", ".gitignore"} {
		w.must(os.RemoveAll(w.path(name)))
	}
	w.undo(c, nil)
	compare(t, w.state(), before)
}

// TestHalfWrittenUndo finds a file that a killed undo was making.
func TestHalfWrittenUndo(t *testing.T) {
	w := newWorld(t)
	w.file("f", "one")
	start := w.take("s", AtStart)
	w.must(os.Remove(w.path("f")))
	end := w.take("s", AtEnd)
	w.file(tempPrefix+"abcdef", "hal")
	w.undo(start, end)
	if got := w.state(); len(got) != 2 || w.read("f") != "one" {
		t.Errorf("%q", got)
	}
}
