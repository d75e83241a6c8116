package checkpoint

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// modelNames are the files that guest and human write in the model.
var modelNames = []string{"a", "d/a", "d/b", "e/f/g", "e/h"}

// apply takes over what the layer has, of some paths or of all.
func (l *layered) apply(paths ...string) (before *Checkpoint, err error) {
	top, err := os.Open(l.upper)
	if err != nil {
		return nil, err
	}
	defer top.Close()
	to, err := l.store.Merge(&Layer{Base: l.base, Top: top, Unlock: true, Hold: func(*LayerChange) string { return "" }})
	if err != nil {
		return nil, err
	}
	return l.undo(&Undo{To: to, After: l.base, Paths: paths})
}

// undo carries an undo out, once the present is kept.
func (l *layered) undo(u *Undo) (*Checkpoint, error) {
	taking, err := l.store.Scan(Options{Why: BeforeUndo, Roots: []string{l.ws}, Running: true})
	if err != nil {
		return nil, err
	}
	defer taking.Close()
	before, err := taking.Keep(nil)
	if err != nil {
		return nil, err
	}
	if err := taking.Plan(u); err != nil {
		return nil, err
	}
	_, err = u.Apply()
	return before, err
}

// files reads what the workspace holds.
func (l *layered) files() map[string]string {
	m := map[string]string{}
	for _, n := range modelNames {
		if b, err := os.ReadFile(filepath.Join(l.ws, n)); err == nil {
			m[n] = string(b)
		}
	}
	return m
}

// disturb has the guest, or the human, write and remove files; it returns what that side
// has then.
func (l *layered) disturb(t *testing.T, r *rapid.T, who string, base map[string]string) map[string]string {
	now := maps.Clone(base)
	for range rapid.IntRange(0, 6).Draw(r, who) {
		n := rapid.SampledFrom(modelNames).Draw(r, "name")
		content := rapid.SampledFrom([]string{"base", "one", "two", ""}).Draw(r, "content")
		dir := l.ws
		if who == "guest" {
			dir = l.upper
		}
		_ = os.Remove(filepath.Join(dir, n))
		switch _, was := base[n]; {
		case content != "":
			put(t, dir, n, content)
			now[n] = content
			continue
		case who == "guest" && was:
			l.gone(t, n)
		}
		delete(now, n)
	}
	return now
}

// TestApplyModel: whatever guest and human do, an apply takes over what the guest has
// changed and the human has not, keeps the rest, and can be taken back.
func TestApplyModel(t *testing.T) {
	withoutDisk(t)
	rapid.Check(t, func(r *rapid.T) {
		var names []string
		for _, n := range modelNames {
			if rapid.Bool().Draw(r, "has "+n) {
				names = append(names, n)
			}
		}
		l := newLayered(t, names...)
		base := l.files()
		guest := l.disturb(t, r, "guest", base)
		human := l.disturb(t, r, "human", base)
		want := maps.Clone(human)
		var parts []string
		for _, n := range modelNames {
			if rapid.Bool().Draw(r, "apply "+n) {
				parts = append(parts, n)
			}
		}
		var before *Checkpoint
		for _, list := range [][]string{parts, modelNames} {
			for _, n := range list {
				g, inGuest := guest[n]
				if human[n] == base[n] && g != base[n] {
					if delete(want, n); inGuest {
						want[n] = g
					}
				}
			}
			if len(list) == 0 {
				continue
			}
			var paths []string
			for _, n := range list {
				paths = append(paths, filepath.Join(l.ws, n))
			}
			kept, err := l.apply(paths...)
			if err != nil {
				r.Fatal(err)
			}
			if before == nil {
				before = kept
			}
			if got := l.files(); !maps.Equal(got, want) {
				r.Fatalf("base %v, guest %v, human %v, applied %v: %v; want %v", base, guest, human, list, got, want)
			}
		}
		if _, err := l.undo(&Undo{To: before}); err != nil {
			r.Fatal(err)
		}
		if got := l.files(); !maps.Equal(got, human) {
			r.Fatalf("taken back: %v; want %v", got, human)
		}
	})
}

// applyForever takes over a layer, as a child that is killed meanwhile.
func applyForever(w *world) {
	l := &layered{ws: w.root, upper: filepath.Join(w.dir, "upper")}
	var err error
	if l.store, err = Open(filepath.Join(w.dir, "store"), 0); err == nil {
		var list []Checkpoint
		if list, err = List(filepath.Join(w.dir, "store")); err == nil {
			l.base = &list[slices.IndexFunc(list, func(c Checkpoint) bool { return c.Why == AtCopy })]
			fmt.Println("begin")
			_, err = l.apply()
		}
	}
	if err != nil {
		w.t.Fatal(err)
	}
	select {} // until it is killed
}

// TestApplyKilled: an apply that is killed at any moment is whole once it runs again, and
// each file meanwhile is the old one or the new.
func TestApplyKilled(t *testing.T) {
	const files = 100
	for range 2 {
		var names []string
		for i := range files {
			names = append(names, fmt.Sprintf("old/%d/f", i))
		}
		l := newLayered(t, names...)
		for i := range files {
			put(t, l.upper, fmt.Sprintf("old/%d/f", i), "new")
			put(t, l.upper, fmt.Sprintf("new/%d/f", i), "new")
		}
		must(t, os.Chmod(filepath.Join(l.upper, "new"), 0o755))
		must(t, l.store.Close())
		w := &world{t: t, dir: filepath.Dir(l.ws), root: l.ws}
		w.killed("apply")
		for i := range files {
			if b, err := os.ReadFile(filepath.Join(l.ws, fmt.Sprintf("old/%d/f", i))); err != nil || string(b) != "new" && string(b) != "base" {
				t.Fatalf("file %d after the kill: %q, %v", i, b, err)
			}
		}
		var err error
		l.store, err = Open(filepath.Join(w.dir, "store"), 0)
		must(t, err)
		_, err = l.apply()
		must(t, err)
		got := map[string]int{}
		must(t, filepath.WalkDir(l.ws, func(p string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				b, _ := os.ReadFile(p)
				got[string(b)]++
			} else if info, _ := d.Info(); info.Mode().Perm() != 0o755 {
				t.Errorf("%q has mode %v", p, info.Mode())
			}
			return err
		}))
		if want := map[string]int{"new": 2 * files}; !maps.Equal(got, want) {
			t.Fatalf("after another apply: %v; want %v", got, want)
		}
	}
}
