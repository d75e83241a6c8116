package egress

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// placeMark is a file in every place, which says that it is one.
const placeMark = ".bawn-place"

// A place is small. A directory with more, or deeper, files is something else.
const (
	maxPlaced = 256
	maxDepth  = 4
)

// ErrNoPlace says that a directory is not one in which a session placed its
// files.
var ErrNoPlace = errors.New("it is no place of a session; nothing was removed")

// MarkPlace makes a new, empty directory a session's place.
func MarkPlace(dir string) error {
	f, err := os.OpenFile(filepath.Join(dir, placeMark), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o400)
	if err != nil {
		return err
	}
	return f.Close()
}

// RemovePlace removes a session's place with its contents. For a directory
// without the mark, or with more files than a session ever places, it removes
// nothing and returns ErrNoPlace. A wrong path must not cost more than a few
// files. A place that is not there is no error.
func RemovePlace(dir string) error {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	paths, err := placed(root)
	if err != nil {
		return fmt.Errorf("remove %q: %w", dir, err)
	}
	var errs []error
	for i := len(paths) - 1; i >= 0; i-- { // the contents of a directory come after it
		errs = append(errs, root.Remove(paths[i]))
	}
	return errors.Join(append(errs, os.Remove(dir))...)
}

// placed lists the contents of a place.
func placed(root *os.Root) ([]string, error) {
	if info, err := root.Lstat(placeMark); err != nil || !info.Mode().IsRegular() {
		return nil, ErrNoPlace
	}
	var paths []string
	err := fs.WalkDir(root.FS(), ".", func(path string, _ fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == ".":
			return nil
		case len(paths) == maxPlaced || strings.Count(path, "/") >= maxDepth:
			return ErrNoPlace
		}
		paths = append(paths, path)
		return nil
	})
	return paths, err
}
