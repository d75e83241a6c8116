package copies

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/checkpoint"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest/plant"
	"github.com/bawn-dev/bawn/internal/sealed"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// A world is a workspace with a copy of it, and the store of its checkpoints.
type world struct {
	state, ws string
	copy      *Copy
	store     *checkpoint.Store
	base      *checkpoint.Checkpoint
}

const id = "aaaabbbbccccddddeeeeffffgg"

// newWorld makes a copy of a workspace of files.
func newWorld(t *testing.T, files ...string) *world {
	t.Helper()
	testenv.Need(t, "userns")
	dir := t.TempDir()
	w := &world{state: filepath.Join(dir, "state"), ws: filepath.Join(dir, "ws")}
	must(t, os.MkdirAll(w.ws, 0o755))
	for _, f := range files {
		put(t, w.ws, f)
	}
	record := Record{ID: id, Name: "fix", Workspace: w.ws, Started: time.Now(), Filter: FilterOf(&layout.Plan{Protected: []string{w.ws}, Projects: []string{w.ws}}, w.ws)}
	var err error
	w.copy, err = Create(w.state, record)
	must(t, err)
	t.Cleanup(func() { _ = w.copy.Discard() })
	w.store, err = checkpoint.Open(checkpoint.Place(w.state, w.ws), 0)
	must(t, err)
	t.Cleanup(func() { _ = w.store.Close() })
	taking, err := w.store.Scan(checkpoint.Options{Why: checkpoint.AtCopy, Workspace: w.ws, Roots: []string{w.ws}})
	must(t, err)
	defer taking.Close()
	w.base, err = taking.Keep(nil)
	must(t, err)
	w.copy.Base = w.base.ID
	must(t, w.copy.Save())
	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// put makes a file, a link ("->") or a directory ("/").
func put(t *testing.T, dir, name string) {
	t.Helper()
	name, to, link := strings.Cut(name, "->")
	at := filepath.Join(dir, name)
	must(t, os.MkdirAll(filepath.Dir(at), 0o755))
	switch {
	case link:
		must(t, os.Symlink(to, at))
	case strings.HasSuffix(name, "/"):
		must(t, os.MkdirAll(at, 0o755))
	default:
		must(t, os.WriteFile(at, []byte("guest"), 0o644))
	}
}

// upper is where this test finds the layer.
func (w *world) upper(t *testing.T) string {
	t.Helper()
	f, err := w.copy.upper()
	must(t, err)
	t.Cleanup(func() { f.Close() })
	return sealed.Path(f)
}

// merged returns what comes out, but for directories, and what is held back.
func (w *world) merged(t *testing.T, opened ...string) (names, held []string) {
	t.Helper()
	for i := range opened {
		opened[i] = filepath.Join(w.ws, opened[i])
	}
	c, left, err := w.copy.Merge(w.store, w.base, opened)
	must(t, err)
	for _, l := range left {
		if l.Held {
			held = append(held, l.Path)
		}
	}
	return w.differs(t, c), held
}

// differs lists what differs from the base, but for directories.
func (w *world) differs(t *testing.T, c *checkpoint.Checkpoint) (names []string) {
	t.Helper()
	list, err := w.store.Compare(w.base, c, nil)
	must(t, err)
	for _, d := range list {
		if e := d.New; e == nil || e.Kind != checkpoint.Directory {
			names = append(names, strings.TrimPrefix(d.Path, w.ws+"/"))
		}
	}
	return names
}

// TestPlants: every name that the host would execute or obey is held back, at the top
// and, but for names of logins, below. Without the filter each of them arrives.
func TestPlants(t *testing.T) {
	w := newWorld(t)
	upper := w.upper(t)
	var all []string
	for _, p := range plant.Names() {
		all = append(all, p)
		if put(t, upper, p); strings.Contains(p, ".vscode") || strings.Contains(p, ".envrc") {
			put(t, upper, "deep/er/"+p)
			all = append(all, "deep/er/"+p)
		}
	}
	put(t, upper, "harmless")
	names, held := w.merged(t)
	if !slices.Equal(names, []string{"harmless"}) {
		t.Errorf("these have left the copy: %q", names)
	}
	for _, p := range all {
		if !slices.ContainsFunc(held, func(h string) bool { return p == h || strings.HasPrefix(p, h+"/") }) {
			t.Errorf("%q is not listed among what is held back", p)
		}
	}
	c, err := w.copy.MergeAll(w.store, w.base)
	must(t, err)
	arrived := w.differs(t, c)
	for _, p := range all {
		if !slices.Contains(arrived, p) {
			t.Errorf("without the filter %q does not arrive either", p)
		}
	}
	if len(all) < 60 {
		t.Errorf("%d plants only", len(all))
	}
	opened := all[0]
	if names, _ := w.merged(t, opened); !slices.Equal(names, slices.Sorted(slices.Values([]string{opened, "harmless"}))) {
		t.Errorf("%q is opened, and %q have left", opened, names)
	}
}

// TestHolds: what else is held back, beside names.
func TestHolds(t *testing.T) {
	for _, tt := range []struct {
		name   string
		ws     []string
		upper  []string
		change func(t *testing.T, upper string)
		want   string // what leaves the copy
	}{
		{"links", []string{"d/x", "l->d"}, []string{"in->d/x", "up/in->../d/x", "abs->/etc/passwd", "out->../x", "up/out->../../x", "dots->d/../../x", "via->l/x", "git->.git/hooks", "guarded->.vscode", "own->."}, nil, "in own up/in"},
		{"a link through a link that comes", nil, []string{"a->b", "b->c", "c"}, nil, "b c"},
		{"a repository under another name", nil, []string{"b/HEAD", "b/objects/x", "b/refs/x", "b/config", "c/config"}, nil, "c/config"},
		{"a repository made of both sides", []string{"b/HEAD", "b/objects/x"}, []string{"b/refs/x", "b/config"}, nil, ""},
		{"set-user-ID", nil, []string{"s", "x"}, func(t *testing.T, upper string) {
			must(t, os.Chmod(filepath.Join(upper, "s"), 0o755|os.ModeSetuid))
			must(t, os.Chmod(filepath.Join(upper, "x"), 0o755))
		}, "x"},
		{"set-group-ID", nil, []string{"s"}, func(t *testing.T, upper string) {
			must(t, os.Chmod(filepath.Join(upper, "s"), 0o755|os.ModeSetgid))
		}, ""},
		{"a pipe", nil, nil, func(t *testing.T, upper string) { must(t, unix.Mkfifo(filepath.Join(upper, "p"), 0o644)) }, ""},
		{"protected names go", []string{".envrc", ".vscode/tasks.json", "a"}, nil, func(t *testing.T, upper string) {
			for _, n := range []string{".envrc", ".vscode", "a"} {
				must(t, unix.Mknod(filepath.Join(upper, n), unix.S_IFCHR, 0))
			}
		}, "a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, tt.ws...)
			upper := w.upper(t)
			for _, n := range tt.upper {
				put(t, upper, n)
			}
			if tt.change != nil {
				tt.change(t, upper)
			}
			names, held := w.merged(t)
			if strings.Join(names, " ") != tt.want {
				t.Errorf("these have left the copy: %q; want %q; held: %q", names, tt.want, held)
			}
			c, err := w.copy.MergeAll(w.store, w.base)
			must(t, err)
			if all := w.differs(t, c); len(all) <= len(names) {
				t.Errorf("without the filter no more leaves it: %q", all)
			}
		})
	}
}

// TestOpened: what a human opens leaves the copy, and nothing else does: no link above it
// either.
func TestOpened(t *testing.T) {
	w := newWorld(t)
	upper := w.upper(t)
	for _, n := range []string{"d/.envrc", "d/.vscode/tasks.json", "out->/etc", ".envrc"} {
		put(t, upper, n)
	}
	for opened, want := range map[string]string{"d/.envrc": "d/.envrc", "d/.vscode/tasks.json": "d/.vscode/tasks.json", "out": "out", "out/passwd": "", "d": "", "other": ""} {
		if names, _ := w.merged(t, opened); strings.Join(names, " ") != want {
			t.Errorf("%q is opened, and %q have left; want %q", opened, names, want)
		}
	}
}

// TestGoOn: a copy that goes on from another has the same changes, and what the guest has
// closed, linked or removed is the same. The base stays until both are gone.
func TestGoOn(t *testing.T) {
	w := newWorld(t, "gone", "d/a", "d/b", "made/anew")
	upper := w.upper(t)
	for _, n := range []string{"new", "d/a", "l->/etc/passwd", "made/x", "deep/er/y", "closed/z"} {
		put(t, upper, n)
	}
	must(t, unix.Mknod(filepath.Join(upper, "gone"), unix.S_IFCHR, 0))
	must(t, unix.Mkfifo(filepath.Join(upper, "p"), 0o600))
	must(t, unix.Setxattr(filepath.Join(upper, "made"), "user.overlay.opaque", []byte("y"), 0))
	must(t, unix.Setxattr(filepath.Join(upper, "new"), "user.mine", []byte("m"), 0))
	must(t, os.Chmod(filepath.Join(upper, "new"), 0o751))
	must(t, os.Chmod(filepath.Join(upper, "closed/z"), 0))
	must(t, os.Chmod(filepath.Join(upper, "closed"), 0o500))
	next, err := Create(w.state, Record{ID: strings.Repeat("b", 26), Workspace: w.ws, Base: w.base.ID, Filter: w.copy.Filter})
	must(t, err)
	t.Cleanup(func() { _ = next.Discard() })
	if n, _, err := next.GoOn(w.copy); n != 8 || err != nil {
		t.Errorf("%d files, %v; want 8", n, err)
	}
	want, err := w.copy.MergeAll(w.store, w.base)
	must(t, err)
	got, err := next.MergeAll(w.store, w.base)
	must(t, err)
	if list, err := w.store.Compare(want, got, nil); err != nil || len(list) > 0 || len(w.differs(t, got)) < 8 {
		t.Errorf("they differ in %v, %v; changed: %q", list, err, w.differs(t, got))
	}
	if info, err := os.Lstat(filepath.Join(upper, "closed")); err != nil || info.Mode().Perm() != 0o500 {
		t.Errorf("the mode of what is closed afterwards: %v, %v", info, err)
	}
	must(t, w.store.Close())
	must(t, w.copy.ForgetBase(w.state, 0))
	if _, err := next.BaseOf(w.state); err != nil {
		t.Errorf("the base went with the first copy: %v", err)
	}
	must(t, w.copy.Discard())
	must(t, next.ForgetBase(w.state, 0))
	if _, err := next.BaseOf(w.state); err == nil {
		t.Error("the base is there without a copy")
	}
}

// TestRecord: a copy that runs is not opened, one without a filter gives nothing out, and
// names are found.
func TestRecord(t *testing.T) {
	w := newWorld(t, "a")
	if _, err := Open(w.state, id); !errors.Is(err, ErrRunning) {
		t.Errorf("opened twice: %v", err)
	}
	put(t, w.upper(t), "b")
	if n, any, err := w.copy.Changed(); n != 1 || !any || err != nil {
		t.Errorf("changed: %d, %v, %v; want 1", n, any, err)
	}
	w.copy.Filter = Filter{}
	if _, _, err := w.copy.Merge(w.store, w.base, nil); err == nil {
		t.Error("without a filter something leaves the copy")
	}
	list, err := List(w.state, w.ws)
	must(t, err)
	for name, want := range map[string]int{"fix": 1, id: 1, id[:4]: 1, id[:3]: 0, "other": 0} {
		if found := Find(list, name); len(found) != want {
			t.Errorf("%q: %d found; want %d", name, len(found), want)
		}
	}
	for name, want := range map[string]bool{"fix-auth": true, "a.b_c": true, "": false, "-x": false, ".x": false, "a/b": false, "a b": false, strings.Repeat("x", 65): false} {
		if NameOK(name) != want {
			t.Errorf("NameOK(%q) is not %v", name, want)
		}
	}
	must(t, w.copy.Discard())
	if list, err := List(w.state, ""); err != nil || len(list) > 0 {
		t.Errorf("after it was discarded: %v, %v", list, err)
	}
}

// TestOneName: of many sessions that want a name at the same moment, one gets it. In
// another workspace it is free.
func TestOneName(t *testing.T) {
	testenv.Need(t, "userns")
	state, ws := t.TempDir(), t.TempDir()
	const many = 8
	got := make(chan error, many)
	for i := range many {
		go func() {
			c, err := Create(state, Record{ID: strings.Replace(id, "a", string(rune('a'+i)), 1), Name: "fix", Workspace: ws})
			if err == nil {
				t.Cleanup(func() { must(t, c.Discard()) })
			}
			got <- err
		}()
	}
	made := 0
	for range many {
		switch err := <-got; {
		case err == nil:
			made++
		case !errors.Is(err, ErrNamed):
			t.Error(err)
		}
	}
	list, err := List(state, ws)
	if err != nil || made != 1 || len(list) != 1 {
		t.Errorf("%d were made, listed are %v, %v; want 1", made, list, err)
	}
	c, err := Create(state, Record{ID: strings.Repeat("z", len(id)), Name: "fix", Workspace: t.TempDir()})
	must(t, err)
	must(t, c.Discard())
}
