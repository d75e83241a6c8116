package launch

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn/internal/fspath"
	"github.com/bawn-dev/bawn/internal/protect"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// homesIn are the directories in which home directories lie whose users no list of this
// machine may name.
var homesIn = []string{"/home", "/Users"}

// homes are the home directories of this machine.
type homes struct {
	known bool
	dirs  []string
	ends  []string // where the links of the human's home lead
}

// findHomes looks for them. The directories that variables of getenv name count as home
// directories.
func findHomes(getenv func(string) string, home string) homes {
	dirs, known := userHomes()
	dirs = append(dirs, home, real(home))
	for _, name := range standIns {
		dirs = append(dirs, real(filepath.Clean(getenv(name))))
	}
	for _, dir := range filepath.SplitList(getenv("PATH")) {
		if strings.HasSuffix(filepath.Clean(dir), "/.local/bin") {
			dirs = append(dirs, real(dir))
		}
	}
	return homes{known && home != "", dirs, leads(home)}
}

// project reports whether dotfiles of shells and logins (protect.Login) that lie deeper
// in dirs are executed by no program. That holds if none of dirs is or contains a home
// directory, and no link of the human's home leads there. linked are the places in dirs
// to which such links lead.
func (h homes) project(dirs ...string) (is bool, linked []string) {
	is = h.known
	for _, dir := range dirs {
		dir = real(dir)
		holds := func(place string) bool { return place != "" && fspath.Below(place, dir) }
		within := slices.DeleteFunc(slices.Clone(h.ends), func(p string) bool { return !holds(p) })
		linked = append(linked, within...)
		is = is && len(within) == 0 && !slices.ContainsFunc(h.dirs, holds) && !slices.ContainsFunc(homesIn, holds) && !slices.Contains(homesIn, filepath.Dir(dir))
	}
	return is, linked
}

// standIns are variables that have shells and others read their files elsewhere than in
// the home directory.
var standIns = []string{"ZDOTDIR", "XDG_CONFIG_HOME", "BASH_ENV", "ENV", "INPUTRC", "SCREENRC"}

// real is a path with its links resolved, or the path itself if it does not
// exist.
func real(p string) string {
	if to, err := filepath.EvalSymlinks(p); err == nil {
		return to
	}
	return p
}

// userHomes are the home directories that this machine's list of users names; false where
// it can't be read.
func userHomes() ([]string, bool) {
	text, err := os.ReadFile(layout.PasswdFile)
	if err != nil {
		return nil, false
	}
	var list []string
	for line := range strings.Lines(string(text)) {
		if f := strings.Split(line, ":"); len(f) > 5 && f[5] != "/" {
			list = append(list, filepath.Clean(f[5]))
		}
	}
	return list, true
}

// leads are the targets of links that have a protected name in a home directory, or
// lie in a directory of such a name. The links on the way count as well.
func leads(home string) (list []string) {
	if home == "" {
		return nil
	}
	note := func(p string) {
		if links, end := layout.Follow(p); len(links) > 0 {
			list = append(append(list, links...), end)
		}
	}
	there := dotted(home)
	for _, e := range slices.Concat(protect.Project(), protect.Home()) {
		first, _, _ := strings.Cut(e.Path(), "/")
		if e.Class != protect.Host && e.Class != protect.Login || !there[first] {
			continue
		}
		p := filepath.Join(home, e.Path())
		note(p)
		if e.Dir() {
			entries, _ := os.ReadDir(p)
			for _, in := range entries {
				if in.Type()&os.ModeSymlink != 0 {
					note(filepath.Join(p, in.Name()))
				}
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// dotted are the names in a directory that begin with a dot.
func dotted(dir string) map[string]bool {
	entries, _ := os.ReadDir(dir)
	names := make(map[string]bool, len(entries))
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			names[e.Name()] = true
		}
	}
	return names
}
