package agents

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn/internal/fspath"
)

// A World is what places are resolved against.
type World struct {
	Home    string              // absolute
	Project string              // absolute, or "" to leave out what lies in the project
	Getenv  func(string) string // the human's environment
}

// Expand resolves one of the agent's places to an absolute path. It returns false
// for a place in the project if w has no project. It also returns false if a
// variable names a path that can't be the agent's own: a relative path, the home
// directory or a directory that contains it.
func (a *Agent) Expand(p string, w World) (string, bool) {
	if rest, ok := strings.CutPrefix(p, "~/"); ok {
		return path.Join(w.Home, rest), true
	}
	v, ok := strings.CutPrefix(p, "$")
	if !ok {
		return path.Join(w.Project, p), w.Project != ""
	}
	name, rest, _ := strings.Cut(v, "/")
	dir := w.Getenv(name)
	if dir == "" {
		dir = path.Join(w.Home, strings.TrimPrefix(a.Environment.Homes[name], "~"))
	}
	full := path.Join(dir, rest)
	return full, path.IsAbs(dir) && !fspath.Below(w.Home, full)
}

// ExpandAll resolves places and leaves out those that Expand refuses.
func (a *Agent) ExpandAll(places []string, w World) []string {
	var all []string
	for _, p := range places {
		if full, ok := a.Expand(p, w); ok {
			all = append(all, full)
		}
	}
	return all
}

// Own resolves Apart: the directory that its variable is set to, the copy, and
// what it is a copy of. It returns false where there is nothing to keep apart, or
// the human has set the variable.
func (a *Agent) Own(w World) (dir, file, from string, ok bool) {
	if a.Apart == (Apart{}) || w.Getenv(a.Apart.Variable) != "" {
		return "", "", "", false
	}
	file, ok = a.Expand(a.Apart.place(), w)
	from, _ = a.Expand(a.Apart.From, w)
	return path.Dir(file), file, from, ok
}

// Variables are all that the agent gets of its human's environment, and what is
// set for it: NAME, PREFIX* or NAME=value.
func (a *Agent) Variables() []string {
	e := a.Environment
	return slices.Concat(slices.Sorted(maps.Keys(e.Homes)), e.Keys, e.Pass, e.CA, e.Set)
}
