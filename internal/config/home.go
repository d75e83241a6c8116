package config

import (
	_ "embed" // what a closed home shows
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/fspath"
	"github.com/bawn-dev/bawn/internal/fspath/links"
	"github.com/bawn-dev/bawn/internal/protect"
)

//go:embed data/home.txt
var homeText string

// A shown lists the visible names in a directory below the home, as patterns.
type shown map[string][]string

// upwards is the table's directory that stands for the home and all directories between
// it and the workspace.
const upwards = ".."

// shownOfHome is the table, by directory; "" is the home itself.
var shownOfHome = sync.OnceValue(func() shown { return readShown(homeText) })

func readShown(text string) shown {
	t := shown{}
	for line := range strings.Lines(text) {
		names := strings.Fields(line)
		if len(names) == 0 || names[0][0] == '#' {
			continue
		}
		dir := ""
		if strings.HasSuffix(names[0], "/") {
			dir, names = strings.TrimSuffix(names[0], "/"), names[1:]
		}
		t[dir] = append(t[dir], names...)
	}
	return t
}

// has reports whether a directory shows a name.
func (t shown) has(dir, name string) bool {
	return slices.ContainsFunc(t[dir], func(pattern string) bool {
		ok, err := path.Match(pattern, name)
		return ok && err == nil
	})
}

// manyNames is the number of names above which a directory with an open place in it is
// hidden as a whole, and not name by name.
const manyNames = 300

// closer finds what a closed home hides.
type closer struct {
	table     shown
	home      string   // links resolved
	workspace string   // links resolved
	open      []string // places that are visible, links resolved
	own       []string // Bawn's own, hidden in any case
	reals     links.Resolved
	other     []*protect.Entry // hidden or opened by another table: credentials, and what agents keep
	hidden    []string
}

// closeHome notes what the session does not see since the home is closed. An entry of the
// layer that closes it, or of a later one, opens its place with all below; so does what an
// agent keeps. A home that is itself the workspace, or lies in it, stays open.
func (st *state) closeHome() {
	st.shut = nil
	reals := links.Resolved{}
	home, workspace := reals.Or(st.paths.home), reals.Or(st.paths.workspace)
	if home == "/" || fspath.Below(home, workspace) {
		return
	}
	c := closer{table: shownOfHome(), home: home, workspace: workspace, own: st.paths.own, reals: reals, other: protect.Hidden("")}
	c.open = slices.Concat(each(slices.Clone(st.paths.tools), reals.Or), each(st.list("cache_dirs"), reals.Or), c.repositories())
	for path, r := range st.reaches {
		if r.access > bawn.Hidden && (r.at.Layer >= st.closedBy || r.at.ofAgent() || path == st.paths.workspace) {
			c.open = append(c.open, reals.Or(path))
		}
	}
	for _, n := range st.narrowed { // a project makes read-only what was writable
		if n.access > bawn.Hidden {
			c.open = append(c.open, reals.Or(n.path))
		}
	}
	c.linked("")
	c.dir("")
	st.shut = c.hidden
}

// repositories are the directories between home and workspace that have a git directory:
// the workspace is a part of them.
func (c *closer) repositories() (list []string) {
	for dir := path.Dir(c.workspace); dir != c.home && fspath.Below(dir, c.home); dir = path.Dir(dir) {
		if _, err := os.Lstat(path.Join(dir, ".git")); err == nil {
			list = append(list, dir)
		}
	}
	return list
}

// linked opens the targets of the table's names that are links, as those of somebody who
// keeps dotfiles in a repository.
func (c *closer) linked(dir string) {
	entries, _ := os.ReadDir(path.Join(c.home, dir)) // hide hides what can't be listed
	for _, e := range entries {
		below := path.Join(dir, e.Name())
		_, deeper := c.table[below]
		if deeper {
			c.linked(below)
		}
		if e.Type() == fs.ModeSymlink && (deeper || c.table.has(dir, e.Name())) {
			if target := c.reals.Or(path.Join(c.home, below)); !fspath.Below(c.home, target) {
				c.open = append(c.open, target)
			}
		}
	}
}

// dir hides the names in a directory below the home that are not shown. A directory
// that can't be listed is hidden itself.
func (c *closer) dir(dir string) {
	at := path.Join(c.home, dir)
	entries, err := os.ReadDir(at)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if _, listed := c.table[dir]; err != nil || !listed && len(entries) > manyNames {
		c.hidden = append(c.hidden, literal(at))
		return
	}
	above := fspath.Below(c.workspace, at)
	for _, e := range entries {
		if above && c.table.has(upwards, e.Name()) || c.table.has(dir, e.Name()) {
			continue
		}
		c.name(path.Join(dir, e.Name()), e.Type())
	}
}

// name hides a name below the home, unless it is open or only leads elsewhere; of a
// directory in which something is open it hides the rest.
func (c *closer) name(below string, kind fs.FileMode) {
	at := path.Join(c.home, below)
	_, deeper := c.table[below]
	switch {
	case deeper:
		c.dir(below)
	case kind == fs.ModeSymlink || c.itself(below) || c.isOpen(at):
	case slices.ContainsFunc(c.own, func(own string) bool { return fspath.Below(at, own) }):
	case slices.ContainsFunc(c.open, func(o string) bool { return fspath.Below(o, at) }):
		c.dir(below)
	default:
		c.hidden = append(c.hidden, literal(at))
	}
}

func (c *closer) isOpen(at string) bool {
	return slices.ContainsFunc(c.open, func(o string) bool { return fspath.Below(at, o) })
}

// itself reports whether another table decides on a place.
func (c *closer) itself(below string) bool {
	return slices.ContainsFunc(c.other, func(e *protect.Entry) bool { return fspath.Below("/"+below, "/"+e.Path()) })
}

// literal is a path in which no character stands for others: such names are hidden with
// all that look like them.
func literal(name string) string {
	return strings.NewReplacer("*", "?", "[", "?", "]", "?", "{", "?", "}", "?", "\\", "?").Replace(name)
}

// tools are the directories below the home that hold programs and their files: the
// parent of each bin directory in PATH, and the directories that variables of tool
// chains name.
func tools(home, list string, variables ...string) (dirs []string) {
	for _, dir := range strings.Split(list, ":") {
		if base := path.Base(dir); slices.Contains([]string{"bin", "sbin", ".bin", "shims"}, base) && path.Dir(dir) != home {
			dir = path.Dir(dir)
		}
		variables = append(variables, dir)
	}
	for _, dir := range variables {
		if clean := path.Clean(dir); dir != "" && clean != home && fspath.Below(clean, home) {
			dirs = append(dirs, clean)
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// Tools are what Inputs.Tools wants, of an environment.
func Tools(home string, getenv func(string) string) []string {
	var named []string
	for _, v := range []string{"GOPATH", "GOROOT", "CARGO_HOME", "RUSTUP_HOME", "NVM_DIR", "PYENV_ROOT", "JAVA_HOME", "RBENV_ROOT", "SDKMAN_DIR", "VOLTA_HOME", "PNPM_HOME", "BUN_INSTALL", "DENO_INSTALL"} {
		named = append(named, getenv(v))
	}
	return tools(home, getenv("PATH"), named...)
}
