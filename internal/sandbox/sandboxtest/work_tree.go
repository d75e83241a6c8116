package sandboxtest

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A node is one file of a tree, without what differs from run to run.
type node struct {
	mode     fs.FileMode // type and permissions
	size     int64       // of a regular file
	same     string      // the first name in the tree for the same file, if not this one
	owner    string      // user and group; the same for all, or somebody else wrote it
	sparse   bool        // far fewer blocks than bytes
	contents string      // of a regular file or a symbolic link
}

func (n node) String() string {
	s := fmt.Sprintf("%s, %d bytes, owner %s, %.120q", n.mode, n.size, n.owner, n.contents)
	if n.sparse {
		s += ", with holes"
	}
	if n.same != "" {
		s += fmt.Sprintf(", the same as %q", n.same)
	}
	return s
}

// readTree reads all below dir. The name of dir itself, which differs, is
// replaced wherever it stands in a file.
func readTree(dir string) (map[string]node, error) {
	tree, names := map[string]node{}, map[identity]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		n, id, err := readNode(dir, path)
		if first, ok := names[id]; ok {
			n.same = first
		} else {
			names[id] = rel
		}
		tree[rel] = n
		return err
	})
	return tree, err
}

func readNode(dir, path string) (node, identity, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return node{}, identity{}, err
	}
	n := node{mode: info.Mode()}
	id := n.fromStat(info)
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		n.contents, err = os.Readlink(path)
	case info.Mode().IsRegular():
		n.size = info.Size()
		n.contents, err = readContents(path, info)
	case info.IsDir():
		err = openDirectory(path, info)
	}
	n.contents = strings.ReplaceAll(n.contents, dir, "$WORK")
	return n, id, err
}

// readContents reads a file, as its owner even if its mode says nobody may.
func readContents(path string, info fs.FileInfo) (string, error) {
	if info.Mode()&0o400 == 0 {
		if err := os.Chmod(path, info.Mode()|0o400); err != nil {
			return "", err
		}
	}
	data, err := os.ReadFile(path)
	return string(data), err
}

// openDirectory makes a directory readable whose mode has been noted.
func openDirectory(path string, info fs.FileInfo) error {
	if info.Mode()&0o500 == 0o500 {
		return nil
	}
	return os.Chmod(path, info.Mode()|0o700)
}
