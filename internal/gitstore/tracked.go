package gitstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"sync"
)

// Tracked returns a function that reports whether the index of a work tree lists files
// below a directory. The index is read when the function is first called. If the index
// can't be read, every directory counts as tracked.
func Tracked(gitDir, workspace string) func(dir string) bool {
	dirs := sync.OnceValues(func() (map[string]bool, error) {
		root, err := os.OpenRoot(gitDir)
		if err != nil {
			return nil, err
		}
		defer root.Close()
		text, err := readFile(root, "index", maxKeptIndex*4)
		if missing(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return trackedDirs(text, formatSize(gitDir))
	})
	return func(dir string) bool {
		list, err := dirs()
		rel, err2 := filepath.Rel(workspace, dir)
		return err != nil || err2 != nil || list[rel]
	}
}

// formatSize is the length of an object ID in the index, in bytes.
func formatSize(gitDir string) int {
	common, _, err := commonOf(gitDir)
	if err != nil {
		return 20
	}
	root, err := os.OpenRoot(common)
	if err != nil {
		return 20
	}
	defer root.Close()
	if f, err := formatAt(root); err == nil && f.size == 64 {
		return 32
	}
	return 20
}

var errIndex = errors.New("the index of git can't be read")

// trackedDirs lists the directories above the paths of an index in git's own format
// (gitformat-index(5), versions 2 to 4). A split index is an error.
func trackedDirs(text []byte, id int) (map[string]bool, error) {
	if len(text) < 12+id || string(text[:4]) != "DIRC" {
		return nil, errIndex
	}
	version, count := binary.BigEndian.Uint32(text[4:]), binary.BigEndian.Uint32(text[8:])
	if version < 2 || version > 4 {
		return nil, errIndex
	}
	rest, name := text[12:len(text)-id], []byte(nil)
	dirs := map[string]bool{}
	for range count {
		var err error
		if rest, name, err = indexName(rest, name, id, version); err != nil {
			return nil, err
		}
		for at := name; ; {
			i := bytes.LastIndexByte(at, '/')
			if i < 0 || dirs[string(at[:i])] {
				break
			}
			at = at[:i]
			dirs[string(at)] = true
		}
	}
	if len(rest) >= 4 && string(rest[:4]) == "link" {
		return nil, errIndex
	}
	return dirs, nil
}

// indexName reads one entry and returns its name. last is the name of the entry before.
func indexName(b, last []byte, id int, version uint32) (rest, name []byte, err error) {
	const stat = 40
	head := stat + id + 2
	if len(b) < head {
		return nil, nil, errIndex
	}
	if b[head-2]&0x40 != 0 && version > 2 {
		head += 2
	}
	keep := 0
	at := head
	if version == 4 {
		drop, n := offset(b[min(at, len(b)):])
		if n == 0 || drop > len(last) {
			return nil, nil, errIndex
		}
		keep, at = len(last)-drop, at+n
	}
	if at > len(b) {
		return nil, nil, errIndex
	}
	end := bytes.IndexByte(b[at:], 0)
	if end < 0 {
		return nil, nil, errIndex
	}
	name = append(last[:keep:keep], b[at:at+end]...)
	size := at + end + 1
	if version < 4 {
		size = (at + end + 8) &^ 7
	}
	if size > len(b) {
		return nil, nil, errIndex
	}
	return b[size:], name, nil
}

// offset reads a number as git's packs have it, and returns its length.
func offset(b []byte) (value, n int) {
	for i, c := range b {
		if i > 4 {
			break
		}
		value = value<<7 | int(c&0x7f)
		if c&0x80 == 0 {
			return value, i + 1
		}
		value++
	}
	return 0, 0
}
