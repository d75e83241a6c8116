package supervise

import (
	"path"
	"strings"
)

// gitHolds are the names of a git directory that a directory holds, including
// those about to be made.
type gitHolds uint8

const (
	holdsHead gitHolds = 1 << iota
	holdsObjects
	holdsRefs
	holdsCommon
)

var holdsOf = map[string]gitHolds{"head": holdsHead, "objects": holdsObjects, "refs": holdsRefs, "commondir": holdsCommon}

// whole reports whether git would take a directory for a git directory.
func (h gitHolds) whole() bool {
	return h&holdsHead != 0 && (h&holdsCommon != 0 || h&(holdsObjects|holdsRefs) == holdsObjects|holdsRefs)
}

// Holds tells the filter of a name that exists already, or that comes, before it
// is asked about any. Git recognises a repository by its contents, whatever the
// directory is called, and old and new names together may complete one.
func (w *ApplyFilter) Holds(abs string, isDir bool) {
	base, parts := w.split(abs)
	n := len(parts) - 1
	if n < 0 {
		return
	}
	if h := holdsOf[parts[n]]; h != 0 && (h != holdsHead || !isDir) {
		w.dirs[base+strings.Join(parts[:n], "/")] |= h
	}
}

// split returns the innermost root that holds abs, and the folded parts below it;
// none where nothing is protected.
func (w *ApplyFilter) split(abs string) (base string, parts []string) {
	abs = path.Clean(abs)
	rel, ok := w.names.Relative(abs)
	if !ok {
		return "", nil
	}
	return strings.TrimSuffix(abs, rel), w.names.Parts(rel)
}

// inGit reports whether git would take a directory around a name for a git
// directory. In those nothing is changed.
func (w *ApplyFilter) inGit(abs string) bool {
	base, parts := w.split(abs)
	for i := range parts {
		if w.dirs[base+strings.Join(parts[:i], "/")].whole() {
			return true
		}
	}
	return false
}
