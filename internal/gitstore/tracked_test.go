package gitstore

import (
	"os"
	"path/filepath"
	"testing"
)

func TestTracked(t *testing.T) {
	for _, c := range []struct{ version, format string }{{"2", "sha1"}, {"4", "sha1"}, {"2", "sha256"}} {
		t.Run(c.version+c.format, func(t *testing.T) {
			dir := t.TempDir()
			git := func(args ...string) { run(t, dir, human(), append([]string{"git"}, args...)...) }
			git("init", "-q", "--object-format="+c.format)
			for _, name := range []string{"a/node_modules/x/f", "a/node_modulesx/f", "b/target/deep/er/g", "c", "d/node_modules/new"} {
				if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			git("add", "a", "b", "c")
			git("add", "-N", "a")
			git("update-index", "--index-version="+c.version)
			tracked := Tracked(filepath.Join(dir, ".git"), dir)
			for name, want := range map[string]bool{"a/node_modules": true, "a/node_modules/x": true, "b/target": true, "c": false, "d/node_modules": false, "a/node": false} {
				if got := tracked(filepath.Join(dir, name)); got != want {
					t.Errorf("%s: %v, want %v", name, got, want)
				}
			}
			if err := os.WriteFile(filepath.Join(dir, ".git/index"), []byte("DIRCgarbage"), 0o644); err != nil {
				t.Fatal(err)
			}
			if !Tracked(filepath.Join(dir, ".git"), dir)(filepath.Join(dir, "d/node_modules")) {
				t.Error("a broken index counts as empty")
			}
		})
	}
}

func FuzzTrackedDirs(f *testing.F) {
	f.Add([]byte("DIRC\x00\x00\x00\x02\x00\x00\x00\x00aaaaaaaaaaaaaaaaaaaa"), 20)
	f.Fuzz(func(t *testing.T, text []byte, id int) {
		if id == 20 || id == 32 {
			_, _ = trackedDirs(text, id)
		}
	})
}
