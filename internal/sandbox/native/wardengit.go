package native

import (
	"path"
	"strings"
)

// A gitDir is what a directory holds of what git goes by, once everything is there
// that comes.
type gitDir struct {
	all, old gitHolds
	obeyed   string // what was there already that git would execute or obey, or ""
}

// gitHolds are those of the names by which git knows its own that a directory has.
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

// Holds tells the warden of a name that was there already, or that comes, before
// it is asked about any: git takes a directory for its own by what lies in it,
// whatever it is called, and one may become that by the sum of old and new.
func (w *Warden) Holds(abs string, isDir, old bool) {
	base, parts := w.split(abs)
	n := len(parts) - 1
	if n < 0 {
		return
	}
	if h := holdsOf[parts[n]]; h != 0 && (h != holdsHead || !isDir) {
		w.hold(base, parts[:n], h, old, "")
	}
	if !old {
		return
	}
	switch name := parts[n]; name {
	case "config", "config.worktree", "commondir", "modules", "worktrees":
		w.hold(base, parts[:n], 0, old, name)
	case "hooks", "info":
		if !isDir { // a link, or nobody knows
			w.hold(base, parts[:n], 0, old, name)
		}
	}
	if n == 0 {
		return
	}
	if dir, name := parts[n-1], parts[n]; dir == "hooks" && !strings.HasSuffix(name, ".sample") || dir == "info" && name == "attributes" {
		w.hold(base, parts[:n-1], 0, old, dir)
	}
}

func (w *Warden) hold(base string, parts []string, h gitHolds, old bool, obeyed string) {
	at := base + strings.Join(parts, "/")
	d := w.dirs[at]
	d.all |= h
	if old {
		d.old |= h
	}
	if obeyed != "" {
		d.obeyed = obeyed
	}
	w.dirs[at] = d
}

// split returns the innermost root that holds abs, and the folded parts below it;
// none where nothing is protected.
func (w *Warden) split(abs string) (base string, parts []string) {
	abs = path.Clean(abs)
	rel, ok := w.names.relative(abs)
	if !ok {
		return "", nil
	}
	return strings.TrimSuffix(abs, rel), w.names.parts(rel)
}

// byLayout rules on a name by what git takes the directories above it for, as a
// supervisor does (see the rule of its calls).
func (w *Warden) byLayout(c Change, abs string, isDir bool) string {
	base, parts := w.split(abs)
	inGit, branches := false, false
	for i, name := range parts {
		switch {
		case inGit: // ruled on by its name
			branches = gitBranches[name]
		case gitNames[name]:
			is, rule := w.dirs[base+strings.Join(parts[:i], "/")].rule(c, parts[i:], isDir, branches)
			if rule != "" {
				return rule
			}
			if is && gitData[name] {
				branches = gitBranches[name]
			}
		}
		inGit = name == ".git"
	}
	return ""
}

// rule rules on a name below a directory, and says whether that counts as a git
// directory. A HEAD is enough for what git would obey beside it, but for branches.
func (d gitDir) rule(c Change, rest []string, isDir, branches bool) (is bool, rule string) {
	const bare = "protected:bare repository"
	whole, itself := d.all.whole(), len(rest) == 1 && gitParts[rest[0]]
	if itself && c != ChangeRemove && d.obeyed != "" {
		head := rest[0] == "head" && !isDir && !branches && d.old&holdsHead == 0
		if head || whole && !d.old.whole() {
			return true, bare + ":" + d.obeyed
		}
	}
	if !whole && (itself || branches || d.all&holdsHead == 0) {
		return false, ""
	}
	if c == ChangeLink {
		return true, bare
	}
	for _, op := range operationsOf[c] {
		if r, rule := gitRule(op, rest, isDir); r != rulingAllow {
			return true, rule
		}
	}
	return true, ""
}
