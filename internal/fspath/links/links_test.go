package links_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/bawn-dev/bawn/internal/fspath/links"
)

// TestResolved compares with filepath.EvalSymlinks, for links in every part of a path, and
// shows that a directory is looked at once.
func TestResolved(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "a/b"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{
		"to-a": "a", "a/up": "..", "a/b/abs": filepath.Join(dir, "to-a"), "gone": "nowhere", "loop": "loop", "file-below": "file/x",
	} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	reals := links.Resolved{}
	for _, name := range []string{
		"a/b", "to-a/b", "to-a/up/to-a/b/abs/b", "a/up/a/../to-a", "file", "file/x", "file-below", "gone", "gone/x", "loop/x",
		"missing", "missing/a", "to-a/missing", "a//b", "",
	} {
		p := filepath.Join(dir, "x")[:len(dir)+1] + name
		want, err := filepath.EvalSymlinks(p)
		if err != nil {
			want = ""
		}
		if got := reals.Of(p); got != want {
			t.Errorf("%q leads to %q; want %q", p, got, want)
		}
		if want == "" {
			want = p
		}
		if got := reals.Or(p); got != want {
			t.Errorf("%q is %q; want %q", p, got, want)
		}
	}
	if err := os.RemoveAll(filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	if got := reals.Of(filepath.Join(dir, "a/b")); got != filepath.Join(reals.Of(dir), "a/b") {
		t.Errorf("a path is looked at twice: %q", got)
	}
}
