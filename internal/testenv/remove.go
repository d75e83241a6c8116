package testenv

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TempDir is t.TempDir for directories that sessions write. It can also be
// removed if a killed session has left a sealed directory (package sealed),
// which an ordinary user can't enter.
func TempDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "bawn-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := RemoveAll(dir); err != nil {
			t.Errorf("remove the test's directory: %v", err)
		}
	})
	return dir
}

// RemoveAll is os.RemoveAll, and enters directories whose mode forbids it.
func RemoveAll(dir string) error {
	err := os.RemoveAll(dir)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	_ = filepath.WalkDir(dir, func(p string, e fs.DirEntry, _ error) error {
		if e != nil && e.IsDir() {
			_ = os.Chmod(p, 0o700) // RemoveAll says what fails
		}
		return nil
	})
	return os.RemoveAll(dir)
}
