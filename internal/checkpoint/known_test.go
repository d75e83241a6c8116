package checkpoint

import (
	"fmt"
	"os"
	"slices"
	"testing"
)

// TestKnownDirectories has a tree of which nothing changes: the index's bytes stand for
// it. Of a change only the directories above it are listed anew, and counts and
// uncovered places are those of a scan that knows nothing.
func TestKnownDirectories(t *testing.T) {
	w := newWorld(t)
	w.fill()
	for i := range 40 {
		w.file(fmt.Sprintf("many/%d/%d/file", i%4, i), fmt.Sprint(i))
	}
	w.must(os.MkdirAll(w.path("large"), 0o755))
	w.must(os.WriteFile(w.path("large/file"), nil, 0o644))
	w.must(os.Truncate(w.path("large/file"), MaxFile+1))
	settle(t)
	first := w.take("s", AtStart)
	again := func() (*Taking, Root) {
		t.Helper()
		s, taking := w.scan(Options{})
		defer s.Close()
		c, err := taking.Keep(nil)
		w.must(err)
		taking.Close()
		return taking, c.Roots[0]
	}
	same := func(a, b Root) bool {
		return a.Tree == b.Tree && a.Files == b.Files && a.Bytes == b.Bytes && slices.Equal(a.Uncovered, b.Uncovered)
	}
	taking, root := again()
	if taking.roots[0].now.raw == nil || taking.Changed() || !same(root, first.Roots[0]) || len(root.Uncovered) != 1 {
		t.Errorf("nothing has changed: %+v, want %+v", root, first.Roots[0])
	}

	w.file("many/2/22/file", "another one")
	taking, root = again()
	var listed []string
	var walk func(at string, n *node)
	walk = func(at string, n *node) {
		if n.raw != nil {
			return
		}
		listed = append(listed, at)
		for i := range n.items {
			if x := &n.items[i]; x.sub != nil {
				walk(at+"/"+x.Name, x.sub)
			}
		}
	}
	walk("", taking.roots[0].now)
	if want := []string{"", "/many", "/many/2", "/many/2/22"}; !slices.Equal(listed, want) || !taking.Changed() {
		t.Errorf("a file has changed: %q are listed, want %q", listed, want)
	}
	w.must(os.RemoveAll(w.dir))
	if anew := w.take("s", AtStart).Roots[0]; !same(root, anew) {
		t.Errorf("%+v, and without an index %+v", root, anew)
	}
}
