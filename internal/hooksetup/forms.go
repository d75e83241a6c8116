package hooksetup

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"

	"github.com/bawn-dev/bawn/internal/agents"
)

// Files that are made: the user's own can hold keys.
const (
	own    = 0o600
	shared = 0o644
	runs   = 0o755
)

// parts are the files by which an agent is told to ask.
func (s Setup) parts(a *agents.Agent, l Level) ([]part, []string, error) {
	where := at(a, l)
	if where == "" || !a.Hooks.Veto {
		return nil, nil, noHooks(a, l)
	}
	file, base, err := s.place(a, l, where)
	if err != nil {
		return nil, nil, err
	}
	p := part{path: file, base: base, mode: modeOf(l)}
	switch a.Hooks.Kind {
	case "plugin":
		return s.text(p, plugin, a, ownFiles[a.Hooks.Kind])
	case "extension":
		return s.text(p, extension, a, ownFiles[a.Hooks.Kind])
	case "cline":
		p.mode = runs
		return s.text(p, script, a, ownFiles[a.Hooks.Kind])
	case "codex":
		if l == Managed {
			return s.requirements(p, a)
		}
		return s.codex(p, a, l)
	}
	if a.Hooks.Kind == "copilot" {
		p.path = filepath.Join(p.path, ownFiles[a.Hooks.Kind])
	}
	sh, ok := shapeOf(a)
	if !ok {
		return nil, nil, noHooks(a, l)
	}
	if l == Managed {
		sh.pin = pins[a.Name]
	}
	return []part{s.settings(p, sh, a)}, remarks(a, l), nil
}

func shapeOf(a *agents.Agent) (shape, bool) {
	if sh, ok := shapes[a.Name]; ok {
		return sh, true
	}
	sh, ok := shapes[a.Hooks.Kind]
	return sh, ok
}

// at is where an agent's hooks stand at a level, "" for nowhere. What a project
// keeps for one human alone is preferred: the place of bawn is this machine's.
func at(a *agents.Agent, l Level) string {
	switch l {
	case Managed:
		return a.Hooks.Managed
	case User:
		return a.Hooks.User
	}
	if a.Name == "claude" {
		return path.Join(path.Dir(a.Hooks.Project), "settings.local.json")
	}
	return a.Hooks.Project
}

// ownFiles are Bawn's files in a directory of hooks, by the kind of hooks.
var ownFiles = map[string]string{"plugin": "bawn.js", "extension": "bawn.ts", "cline": "PreToolUse", "copilot": "bawn.json"}

// File is the file with an agent's hooks at a level, below a variable of the agent's or
// the project; "" if the agent has none there.
func File(a *agents.Agent, l Level) string {
	place := at(a, l)
	if own := ownFiles[a.Hooks.Kind]; place != "" && own != "" {
		return path.Join(place, own)
	}
	return place
}

func noHooks(a *agents.Agent, l Level) error {
	e := &NoHooksError{Agent: a.Title, Level: l}
	for _, other := range []Level{Project, User, Managed} {
		if a.Hooks.Veto && at(a, other) != "" && other != l {
			e.Other = append(e.Other, other)
		}
	}
	return e
}

func modeOf(l Level) fs.FileMode {
	if l == User {
		return own
	}
	return shared
}

// vetoes are the events whose answer may be a denial.
var vetoes = []string{"PreToolUse", "PermissionRequest", "ConfigChange", "BeforeTool", "preToolUse", "permissionRequest", "beforeShellExecution", "beforeMCPExecution", "beforeReadFile"}

// events are those that a hook is put in for.
func (s Setup) events(a *agents.Agent) []event {
	var all []event
	for _, name := range a.Hooks.Events {
		all = append(all, event{name, command(s.Bawn, a.Name, slices.Contains(vetoes, name), s.flags()...)})
	}
	return all
}

// settings is a file in JSON that is the user's as well.
func (s Setup) settings(p part, sh shape, a *agents.Agent) part {
	p.put = func(old []byte) ([]byte, error) { return sh.put(old, a.Name, s.events(a), a.Hooks.Seconds) }
	p.take = func(old, before []byte) ([]byte, error) {
		if old == nil {
			return nil, nil
		}
		return sh.take(old, before, a.Name)
	}
	return p
}

// text is a file that is wholly ours, in the directory that p names.
func (s Setup) text(p part, t text, a *agents.Agent, name string) ([]part, []string, error) {
	p.path = filepath.Join(p.path, name)
	p.put = func(old []byte) ([]byte, error) { return t.put(old, s.Bawn, a.Name, s.flags()...) }
	p.take = func(old, _ []byte) ([]byte, error) {
		if want, err := t.is(s.Bawn, a.Name, s.flags()...); err != nil || bytes.Equal(old, want) {
			return nil, err
		}
		return t.take(old)
	}
	return []part{p}, nil, nil
}

// codex is hooks.json, and the trust in it, which is the user's own.
func (s Setup) codex(p part, a *agents.Agent, l Level) ([]part, []string, error) {
	hooks := s.settings(p, shapes["codex"], a)
	file, base, err := s.place(a, User, path.Join(path.Dir(a.Hooks.User), "config.toml"))
	if err != nil {
		return nil, nil, err
	}
	names := []string{p.path}
	if real, err := resolve(p.path); err == nil && real != p.path {
		names = append(names, real)
	}
	var text []byte
	put := hooks.put
	hooks.put = func(old []byte) (_ []byte, err error) {
		text, err = put(old)
		return text, err
	}
	config := part{path: file, base: base, mode: own}
	config.put = func(old []byte) ([]byte, error) {
		want, err := trusts(text, names)
		if err != nil {
			return nil, err
		}
		return putTrust(old, want, names)
	}
	config.take = func(old, before []byte) ([]byte, error) { return s.distrust(old, before, p.path, names, put) }
	return []part{hooks, config}, remarks(a, l), nil
}

// distrust takes the trust in our hooks out of config.toml: those that stand in
// the hooks file, and those that would be put in.
func (s Setup) distrust(old, before []byte, file string, names []string, put func([]byte) ([]byte, error)) ([]byte, error) {
	if old == nil {
		return nil, nil
	}
	var ours []trust
	for _, read := range []func() ([]byte, error){func() ([]byte, error) { return readFile(file) }, func() ([]byte, error) { return put(nil) }} {
		text, err := read()
		if err != nil {
			continue // what can't be read has no hooks of ours that count
		}
		some, err := trusts(text, names)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", file, err)
		}
		ours = append(ours, some...)
	}
	text, err := takeTrust(old, nil, names, ours...)
	if err == nil && before == nil && len(bytes.TrimSpace(text)) == 0 {
		return nil, nil
	}
	return text, err
}

// remarks are what an agent's human has to know of a level.
func remarks(a *agents.Agent, l Level) []string {
	var all []string
	switch {
	case l == Project && (a.Name == "codex" || a.Name == "copilot"):
		all = append(all, "it reads a project's hooks only where its human has trusted the project: start it here once and say so, or use --user")
	}
	return all
}
