package checkpoint

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A world is a workspace with its store.
type world struct {
	t         testing.TB
	dir, root string
}

func newWorld(t testing.TB) *world {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: filepath.Join(dir, "store"), root: filepath.Join(dir, "project")}
	if err := os.Mkdir(w.root, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.open() })
	return w
}

// open lets everything below the workspace be removed.
func (w *world) open() {
	_ = filepath.WalkDir(w.root, func(p string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(p, 0o700)
		}
		return nil
	})
}

func (w *world) path(name string) string { return filepath.Join(w.root, name) }

// file makes a file, with the directories above it.
func (w *world) file(name, content string) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Dir(w.path(name)), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(w.path(name), []byte(content), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) store() *Store {
	w.t.Helper()
	s, err := Open(w.dir, time.Second)
	w.must(err)
	return s
}

// take takes a checkpoint as a session would.
func (w *world) take(session string, why Why) *Checkpoint {
	w.t.Helper()
	s := w.store()
	defer s.Close()
	t, err := s.Scan(Options{Session: session, Why: why, Roots: []string{w.root}})
	w.must(err)
	defer t.Close()
	c, err := t.Keep(nil)
	w.must(err)
	w.must(t.Finish())
	return c
}

// undo goes back to a checkpoint, and returns what it did.
func (w *world) undo(to, after *Checkpoint, paths ...string) *Undo {
	w.t.Helper()
	s := w.store()
	defer s.Close()
	t, err := s.Scan(Options{Why: BeforeUndo, Roots: []string{w.root}})
	w.must(err)
	defer t.Close()
	u := &Undo{To: to, After: after, Paths: paths}
	_, err = t.Keep(nil)
	w.must(err)
	w.must(t.Plan(u))
	if _, err := u.Apply(); err != nil {
		w.t.Error(err)
	}
	return u
}

// state describes everything below the workspace.
func (w *world) state() map[string]string {
	w.t.Helper()
	m := map[string]string{}
	inodes := map[uint64]string{}
	err := filepath.WalkDir(w.root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(w.root, p)
		var st unix.Stat_t
		if err := unix.Lstat(p, &st); err != nil {
			return err
		}
		text := fmt.Sprintf("%o", st.Mode)
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFREG:
			b, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			if len(b) > 100 {
				text += fmt.Sprintf(" %d bytes, %x", len(b), sha256.Sum256(b))
			} else {
				text += fmt.Sprintf(" %q", b)
			}
			if st.Nlink > 1 {
				if inodes[st.Ino] == "" {
					inodes[st.Ino] = rel
				}
				text += " = " + inodes[st.Ino]
			}
			buf := make([]byte, 100)
			if n, err := unix.Lgetxattr(p, "user.note", buf); err == nil {
				text += " note " + string(buf[:n])
			}
		case unix.S_IFLNK:
			to, _ := os.Readlink(p)
			text += " -> " + to
		}
		m[rel] = text
		return nil
	})
	w.must(err)
	return m
}

func compare(t testing.TB, got, want map[string]string) {
	t.Helper()
	for name, v := range want {
		if got[name] != v {
			t.Errorf("%q is %.200s; want %.200s", name, got[name], v)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%q is there; want nothing", name)
		}
	}
}

// fill makes one of everything.
func (w *world) fill() {
	w.file("main.go", "package main\n")
	w.file(".env", "KEY=value\n")
	w.file("sub/deep/data.bin", strings.Repeat("\x00\x01", 5<<19))
	w.file("sub/empty", "")
	w.file("a\xff\n", "not UTF-8")
	w.must(os.Mkdir(w.path("nothing"), 0o750))
	w.must(os.Symlink("/nowhere/at all", w.path("link")))
	w.must(os.Symlink("sub", w.path("linkdir")))
	w.must(os.Link(w.path("main.go"), w.path("sub/second name")))
	w.must(unix.Mkfifo(w.path("pipe"), 0o640))
	w.must(os.Chmod(w.path("pipe"), 0o640))
	w.must(os.Chmod(w.path("sub/empty"), 0o4711))
	if err := unix.Setxattr(w.path(".env"), "user.note", []byte("mine"), 0); err != nil && !errors.Is(err, unix.ENOTSUP) {
		w.t.Fatal(err)
	}
	old := time.Unix(1_500_000_000, 123)
	w.must(os.Chtimes(w.path("sub/deep/data.bin"), old, old))
	w.must(os.Chtimes(w.path("sub/deep"), old, old))
	w.file("node_modules/a/index.js", "again")
	w.file("package.json", "{}")
	w.file(".git/config", "the human's")
}

// TestEverythingComesBack destroys everything and undoes it.
func TestEverythingComesBack(t *testing.T) {
	w := newWorld(t)
	w.fill()
	before := w.state()
	start := w.take("s", AtStart)
	for _, name := range []string{"main.go", ".env", "sub", "a\xff\n", "nothing", "link", "linkdir", "pipe", "package.json"} {
		w.must(os.RemoveAll(w.path(name)))
	}
	if len(w.state()) > 8 {
		t.Fatal("control: something is left")
	}
	end := w.take("s", AtEnd)
	u := w.undo(start, end)
	if len(u.Kept) > 0 {
		t.Errorf("kept: %+v", u.Kept)
	}
	compare(t, w.state(), before)
	for _, name := range []string{"sub/deep/data.bin", "sub/deep"} {
		info, err := os.Stat(w.path(name))
		w.must(err)
		if info.ModTime() != time.Unix(1_500_000_000, 123) {
			t.Errorf("%s: %v", name, info.ModTime())
		}
	}
	var st unix.Stat_t
	w.must(unix.Stat(w.path("sub/deep/data.bin"), &st))
	if start.Roots[0].Files == 0 || start.Roots[0].Bytes < 5<<20 {
		t.Errorf("%+v", start.Roots[0])
	}
	if u := w.undo(start, end); len(u.Changes)+len(u.Kept) > 0 {
		t.Errorf("once more: %+v %+v", u.Changes, u.Kept)
	}
}

// TestUndoOfWork has a session change, make and remove, and change what things are.
func TestUndoOfWork(t *testing.T) {
	w := newWorld(t)
	w.fill()
	before := w.state()
	start := w.take("s", AtStart)
	w.file("main.go", "package other\n")
	w.file("new/file", "made")
	w.file("new/other/file", "made")
	w.must(os.Remove(w.path("link")))
	w.file("link/is/a directory", "now")
	w.must(os.RemoveAll(w.path("sub")))
	w.file("sub", "a file now")
	w.must(os.Remove(w.path("linkdir")))
	w.must(os.Symlink(w.dir, w.path("linkdir"))) // out of the workspace
	w.must(os.Remove(w.path("nothing")))
	w.must(os.Symlink(w.dir, w.path("nothing")))
	w.must(os.Chmod(w.path(".env"), 0o600))
	end := w.take("s", AtEnd)
	u := w.undo(start, end)
	if len(u.Kept) > 0 {
		t.Errorf("kept: %+v", u.Kept)
	}
	got := w.state()
	// A file with two names, of which one was changed in place, is the same again.
	compare(t, got, before)
}

// TestWhatTheHumanDidStays changes things after the session.
func TestWhatTheHumanDidStays(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"a", "b", "c", "d/e", "f/g"} {
		w.file(name, "old")
	}
	start := w.take("s", AtStart)
	w.file("a", "the session's")
	w.file("b", "the session's")
	w.file("made", "the session's")
	w.file("dir/one", "the session's")
	w.file("dir/two", "the session's")
	w.must(os.RemoveAll(w.path("d")))
	end := w.take("s", AtEnd)
	w.file("b", "mine")    // conflict
	w.file("c", "mine")    // of no session
	w.file("made", "mine") // conflict
	w.file("dir/two", "mine")
	w.file("dir/three", "mine")
	w.file("new", "mine")
	w.must(os.RemoveAll(w.path("f")))
	u := w.undo(start, end)
	want := map[string]string{"a": "old", "b": "mine", "c": "mine", "made": "mine", "d/e": "old", "dir/two": "mine", "dir/three": "mine", "new": "mine"}
	for name, text := range want {
		if b, err := os.ReadFile(w.path(name)); string(b) != text {
			t.Errorf("%s is %q, %v; want %q", name, b, err, text)
		}
	}
	for _, name := range []string{"dir/one", "f/g"} {
		if _, err := os.Lstat(w.path(name)); err == nil {
			t.Errorf("%s is there", name)
		}
	}
	var kept []string
	for _, c := range u.Kept {
		kept = append(kept, strings.TrimPrefix(c.Path, w.root+"/"))
	}
	slices.Sort(kept)
	if !slices.Equal(kept, []string{"b", "dir/two", "made"}) {
		t.Errorf("kept %q", kept)
	}
	// To the checkpoint itself everything goes back, and of that the way back is known.
	u = w.undo(start, nil)
	for name, want := range map[string]string{"b": "old", "c": "old", "f/g": "old"} {
		if b, _ := os.ReadFile(w.path(name)); string(b) != want {
			t.Errorf("%s is %q; want %q", name, b, want)
		}
	}
	list, err := List(w.dir)
	w.must(err)
	last := list[len(list)-1]
	if last.Why != BeforeUndo {
		t.Fatalf("%+v", last)
	}
	w.undo(&last, nil)
	if b, _ := os.ReadFile(w.path("c")); string(b) != "mine" {
		t.Errorf("c is %q after the undo was undone", b)
	}
	_ = u
}

// TestUndoOfPaths leaves alone what was not named.
func TestUndoOfPaths(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"a/b/c", "a/b2", "d"} {
		w.file(name, "old")
	}
	start := w.take("s", AtStart)
	w.must(os.RemoveAll(w.path("a")))
	w.must(os.RemoveAll(w.path("d")))
	w.undo(start, nil, w.path("a/b"))
	got := w.state()
	if len(got) != 4 || got["a/b/c"] == "" {
		t.Errorf("%q", got)
	}
}

// noise is content that no compression makes smaller.
func noise(seed, size int) string {
	b := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)}).Read(b)
	return string(b)
}

// TestPrune wants what is left to be whole, and the rest to be gone from the disk.
func TestPrune(t *testing.T) {
	w := newWorld(t)
	w.file("stays", "stays")
	var want map[string]string
	for i := range 6 {
		w.file(fmt.Sprint("file", i%3), noise(i, 1<<20))
		w.file("sub/large", noise(100+i, 5<<20))
		w.take("s", AtStart)
		want = w.state()
	}
	s := w.store()
	before, err := Size(w.dir)
	w.must(err)
	removed, err := s.Prune(Limits{Bytes: 20 << 20, Age: time.Hour, Fine: time.Hour}, time.Now())
	w.must(err)
	after, err := Size(w.dir)
	w.must(err)
	w.must(s.Close())
	if before < 30<<20 || after > 20<<20 || len(removed) == 0 || len(removed) > 4 {
		t.Fatalf("%d bytes, then %d; removed %d", before, after, len(removed))
	}
	list, err := List(w.dir)
	w.must(err)
	if len(list)+len(removed) != 6 {
		t.Fatalf("%d are left, %d are gone", len(list), len(removed))
	}
	// The index still holds: nothing is stored again.
	w.take("s", AtStart)
	if again, _ := Size(w.dir); again > after+8<<10 {
		t.Errorf("%d bytes after %d: all was stored again", again, after)
	}
	w.must(os.RemoveAll(w.path("sub")))
	w.must(os.RemoveAll(w.path("file1")))
	w.undo(&list[len(list)-1], nil)
	compare(t, w.state(), want)

	s = w.store()
	removed, err = s.Prune(Limits{Bytes: 1 << 40, Age: time.Hour, Fine: time.Hour}, time.Now().Add(24*time.Hour))
	w.must(err)
	w.must(s.Close())
	if list, _ := List(w.dir); len(list) != 2 || len(removed) == 0 {
		t.Errorf("%d are left; want the two last", len(list))
	}
}
