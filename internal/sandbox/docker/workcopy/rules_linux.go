package workcopy

import (
	"errors"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/sandbox/layout"
	"github.com/bawn-dev/bawn/internal/sandbox/supervise"
)

// A Session says what a workspace's copy was to a guest.
type Session struct {
	Plan   *layout.Plan
	Place  string   // where the guest found the workspace, absolute
	Hidden []string // as in [Rules]
	Kept   []string // likewise
}

// Rules are those of the session's places, as its supervisor would have ruled on
// them. They know all that is here, taken or not, and all that comes.
func (s Session) Rules(root *os.File, taken Manifest, untaken []Left, comes *Contents) Rules {
	w := supervise.NewApplyFilter(s.Plan)
	at := func(rel string) string { return path.Join(s.Place, rel) }
	for rel, e := range taken {
		w.Holds(at(rel), e.Kind == Dir)
	}
	for _, rel := range s.Hidden {
		w.Holds(at(rel), false)
	}
	for _, l := range alsoHere(root, taken, untaken, comes) {
		w.Holds(at(l.Path), false)
	}
	for rel, e := range comes.At {
		w.Holds(at(rel), e.Kind == Dir)
	}
	change := map[Change]supervise.Change{Put: supervise.ChangePut, Make: supervise.ChangeMake, PutLink: supervise.ChangeLink, Remove: supervise.ChangeRemove}
	return Rules{Hidden: s.Hidden, Kept: s.Kept, Refuses: func(c Change, rel string, isDir bool) string {
		return w.Refuses(change[c], at(rel), isDir)
	}}
}

// gitNames are those by which a directory becomes git's, and what git would obey
// there.
var gitNames = []string{"HEAD", "objects", "refs", "commondir", "config", "config.worktree", "modules", "worktrees", "hooks", "info"}

// alsoHere is what is here and was not taken: of git's names also such as somebody
// on this machine has made meanwhile beside one that comes.
func alsoHere(root *os.File, taken Manifest, untaken []Left, comes *Contents) []Left {
	list, seen := slices.Clone(untaken), map[string]bool{}
	for rel := range comes.At {
		dir, name := path.Split(rel)
		if seen[dir] || !slices.ContainsFunc(gitNames, func(n string) bool { return strings.EqualFold(n, name) }) {
			continue
		}
		seen[dir] = true
		for _, n := range gitNames {
			var st unix.Stat_t
			if _, known := taken[dir+n]; known {
				continue
			}
			if err := unix.Fstatat(int(root.Fd()), dir+n, &st, unix.AT_SYMLINK_NOFOLLOW); !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTDIR) {
				list = append(list, Left{Path: dir + n})
			}
		}
	}
	return list
}
