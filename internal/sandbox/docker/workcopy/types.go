package workcopy

import (
	"io/fs"
	"strings"
	"syscall"
)

// A Kind is what an entry is. An entry of the zero Kind is not copied.
type Kind uint8

// What is copied.
const (
	File Kind = iota + 1
	Dir
	Link // symbolic
)

// A Stamp tells whether a file of the host is still the one that was taken. Of
// its times the last one is set by the kernel alone (inode(7), "ctime").
type Stamp struct {
	Dev, Ino uint64
	Size     int64
	Change   syscall.Timespec
}

// An Entry is one name of a workspace.
type Entry struct {
	Kind  Kind
	Mode  fs.FileMode // permissions alone
	Size  int64       // bytes, of a File
	Sum   [32]byte    // SHA-256, of a File
	To    string      // of a Link, as it is written
	Stamp Stamp       // where it was taken from the host
}

// same reports whether a guest has left an entry as it was. Nothing of
// directories is brought back.
func (e Entry) same(o Entry) bool {
	if e.Kind != o.Kind {
		return false
	}
	switch e.Kind {
	case File:
		return e.Sum == o.Sum && e.Size == o.Size && e.Mode == o.Mode
	case Link:
		return e.To == o.To
	}
	return true
}

// A Manifest is what was taken, by path, relative to the workspace and clean. The
// workspace itself is not in it.
type Manifest map[string]Entry

// A Change is what is done with a name of the host's.
type Change uint8

// No rule can allow the zero Change.
const (
	Put     Change = iota + 1 // a file comes into its place
	Make                      // a directory is made
	PutLink                   // a symbolic link comes into its place
	Remove
)

// Rules say what of a workspace is not the guest's. Paths are relative to the
// workspace, and clean.
type Rules struct {
	Hidden []string // not taken, with all below them; nothing comes back there
	Kept   []string // taken; nothing comes back there
	// Refuses returns why a change is refused, "" where it is allowed. A nil one
	// refuses everything.
	Refuses func(c Change, rel string, isDir bool) string
}

// closed says why nothing comes back to rel, or "".
func (r Rules) closed(c Change, rel string, isDir bool) string {
	if r.Refuses == nil {
		return "there are no rules"
	}
	if rule := r.Refuses(c, rel, isDir); rule != "" {
		return "it is protected (" + rule + ")"
	}
	rel = strings.ToLower(rel) // a file system may not tell them apart
	if within(lower(r.Hidden), rel) {
		return "it is hidden from the session"
	}
	if within(lower(r.Kept), rel) {
		return "the session may not write it"
	}
	return ""
}

func lower(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = strings.ToLower(s)
	}
	return out
}

// within reports whether rel is one of places, or below one.
func within(places []string, rel string) bool {
	for _, p := range places {
		if rel == p || strings.HasPrefix(rel, p+"/") {
			return true
		}
	}
	return false
}

// Limits bound a copy, either way.
type Limits struct {
	Bytes   int64 // of all files together
	Entries int
}

// A Left is something that was not copied, and why.
type Left struct{ Path, Why string }
