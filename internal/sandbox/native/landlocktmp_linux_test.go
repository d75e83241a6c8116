package native

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Temporary directories of sessions that were killed are removed; those that a
// session holds, and everybody else's, stay.
func TestSweepTmp(t *testing.T) {
	dir := t.TempDir()
	at := func(c string) string { return filepath.Join(dir, tmpPrefix+strings.Repeat(c, 26)) }
	held, err := holdTmp(at("a"))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	dead, err := holdTmp(at("b"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := holdTmp(at("a")); err == nil {
		t.Error("a directory that is there was taken")
	}
	if err := os.WriteFile(filepath.Join(at("b"), "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dead.Close()
	outside := filepath.Join(t.TempDir(), "kept")
	for _, other := range []string{outside, filepath.Join(dir, "bawn-plan-123"), filepath.Join(dir, "bawn-"+strings.Repeat("A", 26))} {
		if err := os.MkdirAll(other, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, at("c")); err != nil {
		t.Fatal(err)
	}
	sweepTmp(dir)
	for name, want := range map[string]bool{at("a"): true, at("b"): false, at("c"): true, outside: true, filepath.Join(dir, "bawn-plan-123"): true, filepath.Join(dir, "bawn-"+strings.Repeat("A", 26)): true} {
		if _, err := os.Lstat(name); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
