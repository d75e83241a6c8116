package session

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/fspath"
)

// A Parent limits a session that a guest starts.
type Parent struct {
	Session   bawn.Session // with every path as links lead to it
	Open      []string     // credentials that it may read
	Protected []string     // names that its guest can't write
	Guarded   []string     // what an agent obeys
	Project   bool         // its workspace holds no home directory (sandbox.Request)
	Places    []bawn.Mount // of the host, as in its plan
	Git       []bawn.GitDir
	GitPool   string   // where the git directories of repositories are that the guests make, or ""
	Zone      string   // of a split session of which it is a part, else ""
	Models    []string // of that session; their secrets are of its other zone
	Depth     int      // of the child: 1 for that of a session which a human has started
	Tree      string   // begins the names of the files that count the sessions of the tree
	Dir       string   // where the guest is
	Environ   Words    // the guest's
	SetEnv    Words    // that the command was judged with
	Asks      string   // socket at which the child's questions are put, or ""
	CanAsk    bool
	Covered   bool // a checkpoint covers the files that the session may destroy
	Plugin    bool // the first session is a plugin's, which has no plugins itself
}

// A RefusedError says that a session can't be started from within another one.
type RefusedError struct {
	Err  error
	Hint string // what to do, or ""
}

func (e *RefusedError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *RefusedError) Unwrap() error { return e.Err }

// Clamp makes a session no freer than its parent, and reports what was asked for
// and is not given. known is what the providers of both enforce here.
func (k *Parent) Clamp(asked bawn.Session, known Providers) (bawn.Session, []Narrowed, error) {
	names, unseen := k.lead(&asked.Isolation)
	given, narrowed, err := known.Meet(k.Session, asked)
	if err != nil {
		return bawn.Session{}, nil, &RefusedError{Err: fmt.Errorf("this session can't be started from within session %s: %w", k.Session.ID, err)}
	}
	if given.Isolation.Workspace == "" {
		return bawn.Session{}, nil, k.outside()
	}
	return given, asWritten(append(unseen, narrowed...), names), nil
}

// outside is the same answer for every directory that the parent does not work
// on, so that it does not tell which of them exist.
func (k *Parent) outside() error {
	return &RefusedError{fmt.Errorf("the directory is none that session %s works on", k.Session.ID), "start it in the workspace"}
}

// Directory resolves the links in a path, if the parent sees and works on its
// target.
func (k *Parent) Directory(asked string) (string, error) {
	dir := LedTo(asked, k.Sees)
	if info, err := os.Stat(dir); !k.Sees(dir) || !fspath.Below(dir, k.Session.Isolation.Workspace) || err != nil || !info.IsDir() {
		return "", k.outside()
	}
	return dir, nil
}

// Sees reports whether the parent's guest sees a place of the host. Places below it
// that the parent hides or keeps for itself do not matter: the child does not get
// them either (see verify).
func (k *Parent) Sees(p string) bool {
	places := slices.DeleteFunc(slices.Clone(k.Places), func(m bawn.Mount) bool {
		if m.Path == p || !fspath.Below(m.Path, p) {
			return false
		}
		return m.Access == bawn.Hidden || m.Access == bawn.Private && (k.keeps(m.Path) || k.hasGit(m.Path))
	})
	return len(Exceeds(places, []bawn.Mount{{Path: p, Access: bawn.ReadOnly}})) == 0
}

// keeps reports whether the parent's isolation makes a place its own.
func (k *Parent) keeps(p string) bool {
	return slices.ContainsFunc(k.Session.Isolation.Mounts, func(m bawn.Mount) bool { return m.Path == p && m.Access == bawn.Private })
}

// lead resolves the links of every path of an isolation, and removes the mounts
// that would show what the parent does not see, existing or not. names has the
// mounts as they were written.
func (k *Parent) lead(iso *bawn.Isolation) (names map[string]string, unseen []Narrowed) {
	names = map[string]string{}
	mounts := iso.Mounts
	*iso = Led(*iso, k.Sees)
	for i, m := range iso.Mounts {
		names[m.Path] = mounts[i].Path
	}
	iso.Mounts = slices.DeleteFunc(iso.Mounts, func(m bawn.Mount) bool {
		if m.Access == bawn.Hidden || k.Sees(m.Path) {
			return false
		}
		unseen = append(unseen, Narrowed{Attribute: "mounts", Path: m.Path, Asked: m.Path + " " + m.Access.String(), Why: "the session that starts this one has less"})
		return true
	})
	return names, unseen
}

// asWritten keeps only the requested places that were not given, under the names
// that the request used. The guest must not learn where a link leads that it can't
// see.
func asWritten(list []Narrowed, names map[string]string) []Narrowed {
	for i, n := range list {
		list[i].Asked = names[n.Path] + strings.TrimPrefix(n.Asked, n.Path)
	}
	return slices.DeleteFunc(list, func(n Narrowed) bool { return n.Path != "" && names[n.Path] == "" })
}

// hasGit reports whether a place is that of a private git directory, which children
// get as well.
func (k *Parent) hasGit(p string) bool {
	return slices.ContainsFunc(k.Git, func(g bawn.GitDir) bool { return g.Path == p })
}

// Verify refuses a plan that shows or writes places of the host that the
// parent's does not: between two looks at a path, a guest can make a link of
// it. A nil Parent refuses nothing.
func (k *Parent) Verify(provider string, places []bawn.Mount) error {
	if k == nil {
		return nil
	}
	more := slices.DeleteFunc(Exceeds(k.Places, places), gone)
	if len(more) == 0 && provider == k.Session.Provider {
		return nil
	}
	what := "a place of the host"
	for _, place := range more {
		if k.Sees(place) {
			what = fmt.Sprintf("%q", place)
		}
	}
	return &RefusedError{Err: fmt.Errorf("this session would have more of %s than session %s has", what, k.Session.ID)}
}

// gone reports whether nothing is at a path any more. The parent's guest can't
// remove files that its plan hides or protects, but others can.
func gone(p string) bool {
	_, err := os.Lstat(p)
	return errors.Is(err, fs.ErrNotExist)
}
