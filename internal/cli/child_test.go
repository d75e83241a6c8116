package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/intent"
)

// TestTellAChild: what JSON would change does not reach a child changed.
func TestTellAChild(t *testing.T) {
	k := &children{parent: parentage{Session: bawn.Session{ID: "s"}}}
	w := &wish{Run: intent.Run{Dir: "/w", Env: []string{"A=1", "B=\xff"}}}
	if text, err := k.tell(w); err != nil || !strings.Contains(string(text), "A=1") || strings.Contains(string(text), `"B=`) {
		t.Errorf("%s, %v", text, err)
	}
	k.parent.Places = []bawn.Mount{{Path: "/w/\xff", Access: bawn.Hidden}}
	if text, err := k.tell(w); err == nil {
		t.Errorf("a hidden place has become another: %s", text)
	}
}

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
		if got := ledTo(at(name), sees); got != want {
			t.Errorf("%s leads to %s, want %s", name, got, want)
		}
	}
	if got := ledTo("", sees); got != "" {
		t.Errorf("nothing leads to %q", got)
	}
}
