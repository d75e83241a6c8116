package checkpoint

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A layered is a workspace, a layer over it that a test makes as the kernel would, and
// the checkpoint of the workspace.
type layered struct {
	ws, upper string
	store     *Store
	base      *Checkpoint
}

// newLayered makes a workspace of files; a name with "/" at its end is a directory, one
// with "->" a link.
func newLayered(t *testing.T, files ...string) *layered {
	t.Helper()
	dir := t.TempDir()
	l := &layered{ws: filepath.Join(dir, "ws"), upper: filepath.Join(dir, "upper")}
	for _, d := range []string{l.ws, l.upper} {
		must(t, os.Mkdir(d, 0o755))
	}
	for _, f := range files {
		put(t, l.ws, f, "base")
	}
	var err error
	if l.store, err = Open(filepath.Join(dir, "store"), 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.store.Close() })
	taking, err := l.store.Scan(Options{Why: AtCopy, Roots: []string{l.ws}})
	must(t, err)
	defer taking.Close()
	l.base, err = taking.Keep(nil)
	must(t, err)
	return l
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// put makes one name below a directory, with those above it.
func put(t *testing.T, dir, name, content string) {
	t.Helper()
	name, to, link := strings.Cut(name, "->")
	at := filepath.Join(dir, name)
	if strings.HasSuffix(name, "/") {
		must(t, os.MkdirAll(at, 0o755))
		return
	}
	must(t, os.MkdirAll(filepath.Dir(at), 0o755))
	if link {
		must(t, os.Symlink(to, at))
		return
	}
	must(t, os.WriteFile(at, []byte(content), 0o644))
}

// gone makes a name one that the layer has removed.
func (l *layered) gone(t *testing.T, name string) {
	t.Helper()
	at := filepath.Join(l.upper, name)
	must(t, os.MkdirAll(filepath.Dir(at), 0o755))
	must(t, unix.Mknod(at, unix.S_IFCHR, 0)) // which needs no privilege since Linux 5.8
}

// mark sets an attribute of overlays.
func (l *layered) mark(t *testing.T, name, attr, value string) {
	t.Helper()
	must(t, unix.Setxattr(filepath.Join(l.upper, name), overlayPrefix+attr, []byte(value), 0))
}

// merged returns the names that come out, directories with a slash, and what stays.
func (l *layered) merged(t *testing.T, hold func(*LayerChange) string) (names, stays string) {
	t.Helper()
	top, err := os.Open(l.upper)
	must(t, err)
	defer top.Close()
	if hold == nil {
		hold = func(*LayerChange) string { return "" }
	}
	layer := &Layer{Base: l.base, Top: top, Unlock: true, Hold: hold}
	c, err := l.store.Merge(layer)
	must(t, err)
	var list, left []string
	var walk func(at string, d Digest)
	walk = func(at string, d Digest) {
		entries, err := l.store.tree(d)
		must(t, err)
		for i := range entries {
			e := &entries[i]
			switch name := at + e.Name; e.Kind {
			case Directory:
				list = append(list, name+"/")
				walk(name+"/", e.Object)
			case File:
				content, err := l.store.get(e.Object)
				must(t, err)
				list = append(list, name+"="+string(content))
			default:
				list = append(list, name+":"+string(e.Kind))
			}
		}
	}
	walk("", c.Roots[0].Tree)
	for _, s := range layer.Left {
		left = append(left, s.Path)
	}
	return strings.Join(list, " "), strings.Join(left, " ")
}

// TestMerge puts layers over a workspace as the kernel does.
func TestMerge(t *testing.T) {
	for _, tt := range []struct {
		name         string
		files, upper []string // a "!" removes, an "=" makes a directory opaque
		want, stays  string
	}{
		{"nothing", []string{"a", "d/x"}, nil, "a=base d/ d/x=base", ""},
		{"new, changed, removed", []string{"a", "b", "d/x"}, []string{"a", "!b", "d/y", "e/"}, "a=new d/ d/x=base d/y=new e/", ""},
		{"a directory removed", []string{"d/x", "d/s/y"}, []string{"!d"}, "", ""},
		{"a directory made anew", []string{"d/x"}, []string{"d/y", "=d"}, "d/ d/y=new", ""},
		{"a directory within one made anew", []string{"d/e/x", "d/e/f/x"}, []string{"d/e/y", "d/e/f/y", "=d"}, "d/ d/e/ d/e/f/ d/e/f/y=new d/e/y=new", ""},
		{"a directory in place of a file", []string{"a"}, []string{"a/x"}, "a/ a/x=new", ""},
		{"a file in place of a directory", []string{"a/x"}, []string{"a"}, "a=new", ""},
		{"a removed name that was not there", nil, []string{"!a"}, "", ""},
		{"what programs make again", []string{"package.json", "node_modules/m/x"}, []string{"node_modules/m/x", "node_modules/n"}, "node_modules:r package.json=base", "node_modules"},
		{"what programs will make again", []string{"Cargo.toml"}, []string{"target/x", "src/x"}, "Cargo.toml=base src/ src/x=new", "target"},
		{"its mark is new, too", nil, []string{"package.json", "node_modules/x"}, "package.json=new", "node_modules"},
		{"without what is made again a directory stays", []string{"p/package.json", "p/node_modules/x", "p/a"}, []string{"!p"}, "p/ p/node_modules:r", "p/node_modules"},
		{"git directories stay", []string{"sub/.git/x", "sub/a"}, []string{"sub/.git/x", "new/.git/HEAD", "new/a"}, "new/ new/a=new sub/ sub/.git:- sub/a=base", "new/.git sub/.git"},
		{"a link in place of a directory", []string{"d/x"}, []string{"d->e"}, "d:l", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLayered(t, tt.files...)
			for _, u := range tt.upper {
				switch u[0] {
				case '!':
					l.gone(t, u[1:])
				case '=':
					l.mark(t, u[1:], "opaque", "y")
				default:
					put(t, l.upper, u, "new")
				}
			}
			names, stays := l.merged(t, nil)
			if names != tt.want || stays != tt.stays {
				t.Errorf("merged: %q, stays %q; want %q, %q", names, stays, tt.want, tt.stays)
			}
		})
	}
}

// TestMergeForged: marks by which an overlay would look elsewhere, or that a layer of the
// kernel's does not have, keep a name in the layer. Without them it arrives.
func TestMergeForged(t *testing.T) {
	for _, tt := range []struct{ name, attr, value string }{
		{"d/f", "redirect", "/../../secret"}, {"d/f", "metacopy", ""}, {"d/f", "whiteout", ""}, {"d/f", "opaque", "y"}, {"d", "redirect", "/etc"}, {"d", "opaque", "x"},
	} {
		l := newLayered(t, "a")
		put(t, l.upper, "d/f", "new")
		if names, _ := l.merged(t, nil); names != "a=base d/ d/f=new" {
			t.Fatalf("without a mark %q is merged", names)
		}
		l.mark(t, tt.name, tt.attr, tt.value)
		if names, stays := l.merged(t, nil); strings.Contains(names, "new") || stays != tt.name {
			t.Errorf("%s of %q: merged %q, stays %q", tt.attr, tt.name, names, stays)
		}
	}
}

// TestMergePlainMarks: marks that the kernel makes are taken out, others stay.
func TestMergePlainMarks(t *testing.T) {
	l := newLayered(t, "a")
	put(t, l.upper, "a", "base")
	l.mark(t, "a", "origin", "x")
	names, stays := l.merged(t, func(c *LayerChange) string { return "changed: " + c.Path })
	if names != "a=base" || stays != "" {
		t.Errorf("a file that was only opened: %q, stays %q", names, stays)
	}
	must(t, unix.Setxattr(filepath.Join(l.upper, "a"), "user.mine", []byte("x"), 0))
	if _, stays := l.merged(t, func(c *LayerChange) string { return "changed: " + c.Path }); stays != "a" {
		t.Errorf("another attribute: stays %q", stays)
	}
}

// TestMergeHolds: what is held back stays as it was, also below what is removed.
func TestMergeHolds(t *testing.T) {
	l := newLayered(t, "a", "d/hold", "d/x", "e/x")
	put(t, l.upper, "hold", "new")
	put(t, l.upper, "new/hold", "new")
	put(t, l.upper, "a/hold", "new")
	put(t, l.upper, "e", "new")
	l.gone(t, "d")
	var asked []string
	names, stays := l.merged(t, func(c *LayerChange) string {
		asked = append(asked, c.Path)
		if strings.HasSuffix(c.Path, "hold") || c.Path == "e" && c.New != nil {
			return "held"
		}
		return ""
	})
	if want := "a/ d/ d/hold=base e/ e/x=base"; names != want {
		t.Errorf("merged: %q; want %q", names, want)
	}
	if stays != "a/hold d/hold e hold new/hold" || slices.Contains(asked, "e/x") {
		t.Errorf("stays %q, asked about %q", stays, asked)
	}
}

// TestMergeUnreadable: modes that the guest has taken away come back after the merge.
func TestMergeUnreadable(t *testing.T) {
	l := newLayered(t)
	put(t, l.upper, "d/f", "new")
	must(t, os.Chmod(filepath.Join(l.upper, "d/f"), 0))
	must(t, os.Chmod(filepath.Join(l.upper, "d"), 0))
	if names, stays := l.merged(t, nil); names != "d/ d/f=new" || stays != "" {
		t.Errorf("merged: %q, stays %q", names, stays)
	}
	if info, err := os.Stat(filepath.Join(l.upper, "d")); err != nil || info.Mode().Perm() != 0 {
		t.Errorf("the directory's mode afterwards: %v, %v", info, err)
	}
	must(t, os.Chmod(filepath.Join(l.upper, "d"), 0o700))
}

// FuzzPlainAttrs: whatever a layer's attributes are, none of the kernel's leaves it, and
// what is left can be read.
func FuzzPlainAttrs(f *testing.F) {
	f.Add(appendAttr(appendAttr(nil, "user.a", []byte("x")), "user.overlay.opaque", []byte("y")))
	f.Add(appendAttr(nil, "user.overlay.overlay.redirect", []byte("/")))
	f.Fuzz(func(t *testing.T, b []byte) {
		rest, _, odd := plainAttrs(b)
		list, err := decodeAttrs(rest)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range list {
			if strings.HasPrefix(a.name, overlayPrefix) {
				t.Errorf("%q is left", a.name)
			}
		}
		if _, err := decodeAttrs(b); err != nil && !odd {
			t.Error("what can't be read counts as plain")
		}
	})
}
