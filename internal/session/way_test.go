package session

import (
	"os"
	"path/filepath"
	"testing"
)

// TestLedTo follows links only where they are seen.
func TestLedTo(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, to := range map[string]string{"a": "b/c", "b": at("d"), "dangling": "no/where", "loop": "loop", "hidden": "b", "up": "../" + filepath.Base(dir) + "/b"} {
		if err := os.Symlink(to, at(name)); err != nil {
			t.Fatal(err)
		}
	}
	sees := func(p string) bool { return p != at("hidden") }
	for name, want := range map[string]string{
		"a": at("d/c"), "b/x": at("d/x"), "dangling/y": at("no/where/y"), "hidden/z": at("hidden/z"), "up": at("d"), "none": at("none"), "loop": at("loop"),
	} {
		if got := LedTo(at(name), sees); got != want {
			t.Errorf("%s leads to %s, want %s", name, got, want)
		}
	}
	if got := LedTo("", sees); got != "" {
		t.Errorf("nothing leads to %q", got)
	}
}
