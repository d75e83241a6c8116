package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/bawn-dev/bawn/internal/atomicfile"
)

// ProjectFile is where a project's configuration lies, below its workspace.
const ProjectFile = ".bawn/config.toml"

// linkBelow returns the first symbolic link on the way from dir to name, both clean
// and absolute. It returns "" if the way has no link, or if dir is "".
func linkBelow(dir, name string) string {
	rest, ok := strings.CutPrefix(name, strings.TrimSuffix(dir, "/")+"/")
	if dir == "" || !ok {
		return ""
	}
	at := dir
	for p := range strings.SplitSeq(rest, "/") {
		at = path.Join(at, p)
		info, err := os.Lstat(at)
		if err != nil {
			return "" // nothing further exists
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			return at
		}
	}
	return ""
}

// readTrusted reads a file of the user or the machine. It returns nil if the file
// does not exist.
func readTrusted(name string) ([]byte, error) {
	data, err := atomicfile.Read(name, maxBytes)
	if absent(err) {
		return nil, nil
	}
	return nonNil(data), err
}

// absent reports whether the error says that there is no such file.
func absent(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// nonNil keeps an empty file apart from an absent one.
func nonNil(data []byte) []byte {
	if data == nil {
		return []byte{}
	}
	return data
}

// readProject reads the project's file, or returns nil if the file does not exist.
// Everybody who works in the workspace can write near this file. So it must be a
// regular file in a directory, and neither may be reached by a symbolic link. The
// opened file must also be the one that was checked.
func readProject(workspace string) ([]byte, error) {
	root, err := os.OpenRoot(workspace)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if _, err := wantType(root, path.Dir(ProjectFile), fs.ModeDir, "a directory"); err != nil {
		return nil, unlessAbsent(err)
	}
	looked, err := wantType(root, ProjectFile, 0, "a regular file")
	if err != nil {
		return nil, unlessAbsent(err)
	}
	return readSame(root, looked)
}

// readSame reads the project's file if it is still the one that was looked at.
func readSame(root *os.Root, looked fs.FileInfo) ([]byte, error) {
	f, err := root.OpenFile(ProjectFile, os.O_RDONLY|atomicfile.NonBlock, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if opened, err := f.Stat(); err != nil || !os.SameFile(looked, opened) {
		return nil, fmt.Errorf("%q was replaced while it was opened", ProjectFile)
	}
	data, err := atomicfile.ReadOpen(f, maxBytes)
	return nonNil(data), err
}

func unlessAbsent(err error) error {
	if absent(err) {
		return nil
	}
	return err
}

// wantType looks at name without following a link.
func wantType(root *os.Root, name string, want fs.FileMode, what string) (fs.FileInfo, error) {
	info, err := root.Lstat(name)
	if err == nil && info.Mode().Type() != want {
		err = fmt.Errorf("%q must be %s, and no symbolic link leads to it", filepath.Join(root.Name(), name), what)
	}
	return info, err
}

// WriteStarter makes the user's file and the directories that lead to it, with every
// key commented out. It returns fs.ErrExist if the file exists.
func (in Inputs) WriteStarter() error {
	if err := os.MkdirAll(filepath.Dir(in.User()), 0o700); err != nil {
		return err
	}
	return atomicfile.Create(in.User(), Starter(in.Machine), 0o600)
}
