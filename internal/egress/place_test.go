package egress

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func write(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("x"), 0o400); err != nil {
		t.Fatal(err)
	}
}

func TestRemovePlace(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	write(t, filepath.Join(dir, "trust/ca.pem"))
	write(t, filepath.Join(dir, "masks/0/.npmrc"))
	outside := filepath.Join(t.TempDir(), "kept")
	write(t, outside)
	if err := os.Symlink(filepath.Dir(outside), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := RemovePlace(dir); !errors.Is(err, ErrNoPlace) {
		t.Fatalf("without the mark: %v", err)
	}
	if err := MarkPlace(dir); err != nil {
		t.Fatal(err)
	}
	if err := RemovePlace(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(dir); err == nil {
		t.Error("it is still there")
	}
	if _, err := os.Lstat(outside); err != nil {
		t.Errorf("a link was followed: %v", err)
	}
	if err := RemovePlace(dir); err != nil {
		t.Errorf("a second time: %v", err)
	}
}

// A path that leads somewhere else costs nothing, also with a mark.
func TestRemovesNothingElse(t *testing.T) {
	for name, fill := range map[string]func(dir string){
		"no mark": func(dir string) { write(t, filepath.Join(dir, "etc/passwd")); os.Remove(filepath.Join(dir, placeMark)) },
		"many": func(dir string) {
			for i := range maxPlaced {
				write(t, filepath.Join(dir, fmt.Sprint(i)))
			}
		},
		"deep": func(dir string) { write(t, filepath.Join(dir, "a/b/c/d/e")) },
		"a directory for a mark": func(dir string) {
			os.Remove(filepath.Join(dir, placeMark))
			write(t, filepath.Join(dir, placeMark, "x"))
		},
	} {
		dir := t.TempDir()
		if err := MarkPlace(dir); err != nil {
			t.Fatal(err)
		}
		fill(dir)
		before := count(t, dir)
		if err := RemovePlace(dir); !errors.Is(err, ErrNoPlace) {
			t.Errorf("%s: %v; want ErrNoPlace", name, err)
		}
		if got := count(t, dir); got != before {
			t.Errorf("%s: %d of %d entries are left", name, got, before)
		}
	}
}

func count(t *testing.T, dir string) (n int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(string, os.DirEntry, error) error { n++; return nil })
	if err != nil {
		t.Fatal(err)
	}
	return n
}
