package checkpoint

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// withoutDisk has a test of thousands of checkpoints not wait for the disk.
func withoutDisk(t *testing.T) {
	fsync = func(int) error { return nil }
	t.Cleanup(func() { fsync = unix.Fsync })
}

// disturb changes the workspace at random, as a guest or a human may. What the system
// refuses is left out.
func (w *world) disturb(t *rapid.T, who string) {
	name := rapid.Custom(func(t *rapid.T) string {
		parts := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "\xff"}), 1, 3).Draw(t, "parts")
		return w.path(filepath.Join(parts...))
	})
	for range rapid.IntRange(0, 8).Draw(t, who) {
		p := name.Draw(t, "path")
		switch rapid.SampledFrom([]string{"write", "write", "remove", "mkdir", "rename", "link", "symlink", "chmod", "pipe"}).Draw(t, "op") {
		case "write":
			_ = os.MkdirAll(filepath.Dir(p), 0o755)
			text := who + fmt.Sprint(rapid.IntRange(0, 3).Draw(t, "content"))
			if f, err := os.OpenFile(p, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NONBLOCK, 0o644); err == nil { // a pipe refuses
				_, _ = f.WriteString(text)
				_ = f.Close()
			}
		case "remove":
			if info, err := os.Stat(filepath.Dir(p)); err == nil && info.IsDir() { // RemoveAll opens it, were it a pipe
				_ = os.RemoveAll(p)
			}
		case "mkdir":
			_ = os.MkdirAll(p, 0o750)
		case "rename":
			_ = os.Rename(p, name.Draw(t, "to"))
		case "link":
			_ = os.Link(p, name.Draw(t, "to"))
		case "symlink":
			_ = os.Symlink("a", p)
		case "chmod":
			if info, err := os.Lstat(p); err == nil && info.Mode()&os.ModeSymlink == 0 {
				_ = os.Chmod(p, rapid.SampledFrom([]os.FileMode{0o700, 0o755, 0o777}).Draw(t, "mode"))
			}
		case "pipe":
			_ = unix.Mkfifo(p, 0o644)
		}
	}
}

// contents is the state without which names are one file: undo puts back contents,
// and links only where a name stays or several come back.
func (w *world) contents() map[string]string {
	m := w.state()
	for name, text := range m {
		for i := range text {
			if len(text) > i+3 && text[i:i+3] == " = " {
				m[name] = text[:i]
				break
			}
		}
	}
	return m
}

// TestUndoIsExact has a session do anything, and then a human. To go back to the start
// gives what was there, to go back to before the undo what was there then.
func TestUndoIsExact(t *testing.T) {
	withoutDisk(t)
	base := newWorld(t)
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		w := &world{t: t, root: base.path(fmt.Sprint(n)), dir: filepath.Join(base.dir, fmt.Sprint(n))}
		w.must(os.Mkdir(w.root, 0o755))
		w.disturb(rt, "before")
		start, before := w.take("s", AtStart), w.contents()
		w.disturb(rt, "guest")
		end := w.take("s", AtEnd)
		if human := rapid.Bool().Draw(rt, "a human"); human {
			w.disturb(rt, "human")
			end = nil
		}
		now := w.contents()
		w.undo(start, end)
		same(rt, "undone", w.contents(), before)
		list, err := List(w.dir)
		w.must(err)
		w.undo(&list[len(list)-1], nil)
		same(rt, "the undo undone", w.contents(), now)
	})
}

func same(t *rapid.T, what string, got, want map[string]string) {
	if !maps.Equal(got, want) {
		t.Fatalf("%s: %q\nwant %q", what, got, want)
	}
}

// TestUndoOfThree has files in directories that stay. Each comes back if the session
// has changed it, unless the human has changed it since: then it is kept.
func TestUndoOfThree(t *testing.T) {
	withoutDisk(t)
	base := newWorld(t)
	names := []string{"a", "b", "d/a", "d/b", "d/e/a"}
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		w := &world{t: t, root: base.path(fmt.Sprint(n)), dir: filepath.Join(base.dir, fmt.Sprint(n))}
		w.must(os.MkdirAll(w.path("d/e"), 0o755))
		change := func(who string) map[string]string {
			m := map[string]string{}
			for _, name := range names {
				switch v := rapid.SampledFrom([]string{"", "", "rm", "1", "2"}).Draw(rt, who+" "+name); v {
				case "":
				case "rm":
					_ = os.Remove(w.path(name))
				default:
					w.file(name, v)
				}
				m[name] = w.read(name)
			}
			return m
		}
		b := change("before")
		start := w.take("s", AtStart)
		a := change("guest")
		end := w.take("s", AtEnd)
		now := change("human")
		u := w.undo(start, end)
		kept := map[string]bool{}
		for _, c := range u.Kept {
			kept[c.Path] = true
		}
		for _, name := range names {
			want, conflict := now[name], false
			if a[name] != b[name] && now[name] != b[name] {
				if conflict = now[name] != a[name]; !conflict {
					want = b[name]
				}
			}
			if got := w.read(name); got != want || kept[w.path(name)] != conflict {
				rt.Fatalf("%s was %q, then %q, then %q: it is %q, kept: %v; want %q, %v", name, b[name], a[name], now[name], got, kept[w.path(name)], want, conflict)
			}
		}
	})
}

// TestSixHours is a session that changes things all the time, with a checkpoint every
// five minutes by its clock.
func TestSixHours(t *testing.T) {
	withoutDisk(t)
	w := newWorld(t)
	for i := range 400 {
		w.file(fmt.Sprintf("src/d%d/f%d.go", i/20, i), fmt.Sprintln("package d", noise(i, 2000), noise(i, 2000)))
	}
	w.file("app.db", noise(0, 1<<20))
	now := time.Date(2026, 1, 1, 8, 0, 0, 0, time.UTC)
	var most int64
	take := func(why Why) {
		s := w.store()
		defer s.Close()
		c, err := s.Scan(Options{Session: "s", Why: why, Roots: []string{w.root}})
		w.must(err)
		defer c.Close()
		c.when = now
		_, err = c.Keep(nil)
		w.must(err)
		w.must(c.Finish())
		_, err = s.Prune(Limits{Bytes: 40 << 20, Age: 30 * 24 * time.Hour, Fine: 24 * time.Hour}, now)
		w.must(err)
		size, err := Size(w.dir)
		w.must(err)
		most = max(most, size)
	}
	take(AtStart)
	first, err := Size(w.dir)
	w.must(err)
	steps := testenv.Some(72, 24)
	for i := range steps {
		now = now.Add(5 * time.Minute)
		for k := range 20 {
			n := (i*37 + k*11) % 400
			w.file(fmt.Sprintf("src/d%d/f%d.go", n/20, n), fmt.Sprintln("package d", noise(i, 2000), noise(k, 2000)))
		}
		w.file("app.db", noise(i+1, 1<<20))
		take(AtTime)
	}
	want := w.state()
	take(AtEnd)
	last, err := Size(w.dir)
	w.must(err)
	t.Logf("the store has %.1f MiB at first, %.1f MiB after %d checkpoints, at most %.1f MiB", mib(first), mib(last), steps, mib(most))
	if most > 42<<20 {
		t.Errorf("%d bytes at most", most)
	}
	now = now.Add(48 * time.Hour)
	take(AtStart)
	if size, _ := Size(w.dir); size > first+6<<20 {
		t.Errorf("%d bytes two days later; at first %d", size, first)
	}
	list, err := List(w.dir)
	w.must(err)
	w.must(os.RemoveAll(w.path("src")))
	w.undo(&list[len(list)-1], nil)
	compare(t, w.state(), want)
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }
