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

	"github.com/bawn-dev/bawn/internal/fspath"
	"github.com/bawn-dev/bawn/internal/protect"
)

//go:embed data/home.txt
var homeText string

// A shown lists the visible names in a directory below the home, as patterns.
type shown map[string][]string

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

// closing are the settings that close the home directory. Its contents are hidden except
// for the table's entries, the workspace, and the programs of PATH with their variables.
func closing(p paths) []setting {
	t := shownOfHome()
	b := builder{p}
	deny := hiddenOf(t, p, "")
	var ro []string
	for _, tool := range p.tools {
		if slices.ContainsFunc(deny, func(d string) bool { return fspath.Below(tool, d) }) && !slices.Contains(ro, tool) {
			ro = append(ro, tool)
		}
	}
	return append(b.list("deny", deny), b.list("ro", ro)...)
}

// hiddenOf are the names in a directory below the home that it does not show. A
// directory that can't be listed is hidden itself.
func hiddenOf(t shown, p paths, dir string) (hidden []string) {
	entries, err := os.ReadDir(path.Join(p.home, dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return []string{literal(path.Join(p.home, dir))}
	}
	for _, e := range entries {
		below := path.Join(dir, e.Name())
		at := path.Join(p.home, below)
		switch _, deeper := t[below]; {
		case deeper:
			hidden = append(hidden, hiddenOf(t, p, below)...)
		case t.has(dir, e.Name()) || at == p.workspace || itself(below):
		case slices.ContainsFunc(p.own, func(own string) bool { return fspath.Below(at, own) }):
		default:
			hidden = append(hidden, literal(at))
		}
	}
	return hidden
}

// itself reports whether a place is hidden or opened by another table: credentials, and
// what agents keep.
func itself(below string) bool {
	return slices.ContainsFunc(protect.Hidden(""), func(e *protect.Entry) bool { return fspath.Below("/"+below, "/"+e.Path()) })
}

// literal is a path in which no character stands for others: such names are denied with
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
