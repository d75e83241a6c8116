package agents

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn/internal/netrule"
	"github.com/bawn-dev/bawn/internal/protect"
	"github.com/bawn-dev/bawn/internal/stricttoml"
)

// Parse reads the data file of the agent name. It takes nothing that it does
// not know, and no path that leads out of where it begins.
func Parse(name string, text []byte) (*Agent, error) {
	var a Agent
	if err := stricttoml.Decode(name+".toml", text, &a); err != nil {
		return nil, err
	}
	if a.Name != name {
		return nil, fmt.Errorf("its name is %q; want %q, as its file is called", a.Name, name)
	}
	project, guarded := protect.OfAgent(name)
	a.Files.ProjectGuard = project
	for _, p := range guarded {
		a.Files.Guard = append(a.Files.Guard, a.place(p))
	}
	return &a, a.check()
}

// place writes a place below the home directory as one of the agent's own, which
// follows the variable that says where the agent keeps it.
func (a *Agent) place(p string) string {
	variable, longest := "", ""
	for name, dir := range a.Environment.Homes {
		if dir != "~" && strings.HasPrefix(p, dir+"/") && len(dir) > len(longest) {
			variable, longest = name, dir
		}
	}
	if variable == "" {
		return p
	}
	return "$" + variable + strings.TrimPrefix(p, longest)
}

// check finds what can't be right.
func (a *Agent) check() error {
	errs := []error{a.checkWords(), a.checkPlaces(), a.checkEnvironment(), a.checkApart(), a.checkHooks()}
	for _, m := range slices.Concat(a.Models, a.Closed) {
		_, err := netrule.ParseHost(m)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (a *Agent) checkWords() error {
	switch {
	case a.Title == "":
		return errors.New("it has no title")
	case len(a.Programs) == 0:
		return errors.New("it has no programs")
	case slices.ContainsFunc(a.Programs, func(p string) bool { return p == "" || path.Base(p) != p }):
		return fmt.Errorf("programs %q: want names without directories", a.Programs)
	case a.Verified && a.Version == "":
		return errors.New("it is verified with no version; want the one that was run")
	}
	return nil
}

func (a *Agent) checkPlaces() error {
	f := a.Files
	for what, list := range map[string][]string{"state": f.State, "cache": f.Cache, "private": f.Private, "read": f.Read, "make": f.Make, "guard": f.Guard, "tries": f.Tries} {
		for _, p := range list {
			if project(p) {
				return fmt.Errorf("%s %q lies in the project; want a place of the human's", what, p)
			}
		}
	}
	for _, p := range f.Private { // one deeper could be moved out of the way with what holds it
		if !slices.Contains(f.State, path.Dir(p)) {
			return fmt.Errorf("private %q does not lie directly in one of state", p)
		}
	}
	for _, p := range f.ProjectGuard {
		if !project(p) {
			return fmt.Errorf("project_guard %q lies outside of the project", p)
		}
	}
	for _, p := range slices.Concat(f.State, f.Cache, f.Private, f.Read, f.Make, f.Empty, f.Guard, f.Tries, f.ProjectGuard, f.Skills, f.Definitions, f.Instructions) {
		if err := a.checkPlace(p); err != nil {
			return err
		}
	}
	return nil
}

// project reports whether a place lies in the project.
func project(p string) bool { return !strings.HasPrefix(p, "~/") && !strings.HasPrefix(p, "$") }

func (a *Agent) checkPlace(p string) error {
	rest := strings.TrimPrefix(p, "~/")
	if v, ok := strings.CutPrefix(p, "$"); ok {
		var name string
		if name, rest, _ = strings.Cut(v, "/"); a.Environment.Homes[name] == "" {
			return fmt.Errorf("place %q begins with a variable that environment.homes does not list", p)
		} else if rest == "" {
			return nil
		}
	}
	if rest == "" || rest != path.Clean(rest) || rest[0] == '/' || rest == "." || rest == ".." || strings.HasPrefix(rest, "../") {
		return fmt.Errorf("place %q is invalid; want \"~/…\", \"$NAME/…\" or one in the project, without \"..\"", p)
	}
	return nil
}

func (a *Agent) checkEnvironment() error {
	e := a.Environment
	for name, dir := range e.Homes {
		if rest, ok := strings.CutPrefix(dir, "~"); !isVariable(name) || !ok || rest != "" && (rest[0] != '/' || path.Clean(rest) != rest) {
			return fmt.Errorf("home %s = %q; want a variable with \"~\" or a directory below it", name, dir)
		}
	}
	for _, name := range slices.Concat(e.Keys, e.CA) {
		if !isVariable(name) {
			return fmt.Errorf("variable %q is invalid", name)
		}
	}
	for _, name := range e.Pass {
		if !isVariable(strings.TrimSuffix(name, "*")) {
			return fmt.Errorf("variable %q is invalid; want NAME or PREFIX*", name)
		}
	}
	for _, kv := range e.Set {
		if name, _, ok := strings.Cut(kv, "="); !ok || !isVariable(name) {
			return fmt.Errorf("variable %q is invalid; want NAME=value", kv)
		}
	}
	return nil
}

// checkApart wants a copy that nothing outside of sessions reads, and that is
// guarded where something does.
func (a *Agent) checkApart() error {
	p := a.Apart
	if p == (Apart{}) {
		return nil
	}
	if a.Environment.Homes[p.Variable] == "" || p.File == "" || path.Base(p.File) != p.File || !strings.HasPrefix(p.From, "~/") || a.checkPlace(p.From) != nil {
		return fmt.Errorf("apart %+v: want one of environment.homes, a name, and a place \"~/…\"", p)
	}
	if !slices.Contains(a.Files.Guard, p.place()) {
		return fmt.Errorf("apart: %q is not guarded, for the case that %s is set", p.place(), p.Variable)
	}
	return nil
}

// place is that of the copy.
func (p Apart) place() string { return "$" + p.Variable + "/" + p.File }

// isVariable reports whether s is a name of capital letters, digits and "_".
func isVariable(s string) bool {
	return s != "" && (s[0] < '0' || s[0] > '9') && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
}

// kinds of hooks.
var kinds = []string{"", "claude", "codex", "gemini", "copilot", "cline", "cursor", "crush", "plugin", "extension"}

func (a *Agent) checkHooks() error {
	h := a.Hooks
	switch {
	case !slices.Contains(kinds, h.Kind):
		return fmt.Errorf("hooks of kind %q; want one of %q", h.Kind, kinds)
	case h.Seconds < 0 || h.Default < 0 || h.Seconds < h.Default:
		return fmt.Errorf("hooks wait %d and by default %d seconds; want the most and what it is otherwise", h.Seconds, h.Default)
	case h.Kind == "" && (h.User != "" || h.Veto || h.Rewrite || h.Ask):
		return errors.New("hooks of no kind can do nothing")
	}
	return nil
}
