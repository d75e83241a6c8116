package supervise

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestReview shows that names which do not count are passed over, and that
// whatever changes on the way to a place is seen.
func TestReview(t *testing.T) {
	for name, c := range map[string]struct {
		change func(dir string) error
		again  bool
	}{
		"nothing":                  {func(string) error { return nil }, false},
		"another name":             {func(dir string) error { return os.WriteFile(filepath.Join(dir, "other"), nil, 0o600) }, false},
		"a name below":             {func(dir string) error { return os.Mkdir(filepath.Join(dir, "there", "x"), 0o700) }, false},
		"a directory comes":        {func(dir string) error { return os.Mkdir(filepath.Join(dir, "absent"), 0o700) }, true},
		"a link comes":             {func(dir string) error { return os.Symlink("there", filepath.Join(dir, "absent")) }, true},
		"the directory goes":       {func(dir string) error { return os.Remove(filepath.Join(dir, "there")) }, true},
		"the directory is another": {func(dir string) error { return anew(filepath.Join(dir, "there")) }, true},
		"another takes its place":  {func(dir string) error { return instead(dir) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, "there"), 0o700); err != nil {
				t.Fatal(err)
			}
			k := &refresher{dirs: map[string]int{}, names: map[string][]string{dir: {"there", "absent"}}, ends: map[string]bool{}, through: map[string]bool{}}
			for _, p := range []string{dir, filepath.Join(dir, "there")} {
				fd, err := unix.Open(p, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
				if err != nil {
					t.Fatal(err)
				}
				defer unix.Close(fd)
				k.dirs[p] = fd
			}
			if err := c.change(dir); err != nil {
				t.Fatal(err)
			}
			if again, err := k.review(); again != c.again || err != nil {
				t.Errorf("to be looked at again: %v, %v; want %v", again, err, c.again)
			}
		})
	}
}

// TestReviewSeesWhatOnePlaceMissed: a directory that was made between the looks
// at two places on the way to which it lies is looked at again for the first.
func TestReviewSeesWhatOnePlaceMissed(t *testing.T) {
	for _, missed := range []error{nil, unix.EACCES} {
		dir := t.TempDir()
		way := filepath.Join(dir, "way")
		if err := os.Mkdir(way, 0o700); err != nil {
			t.Fatal(err)
		}
		fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		k := &refresher{dirs: map[string]int{dir: fd}, absent: map[string]error{way: missed}, names: map[string][]string{dir: {"way"}}, ends: map[string]bool{}, through: map[string]bool{way: true}}
		if k.dirs[way], err = unix.Open(way, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
			t.Fatal(err)
		}
		defer unix.Close(k.dirs[way])
		if again, err := k.review(); again != (missed != nil) || err != nil {
			t.Errorf("missed for %v: to be looked at again: %t, %v", missed, again, err)
		}
	}
}

// anew replaces a directory; file systems like to give the new one the number
// of the old.
func anew(dir string) error {
	if err := os.Remove(dir); err != nil {
		return err
	}
	return os.Mkdir(dir, 0o700)
}

// instead renames another directory over one.
func instead(dir string) error {
	if err := os.Mkdir(filepath.Join(dir, "new"), 0o700); err != nil {
		return err
	}
	return unix.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "there")) // os.Rename renames over no directory
}
