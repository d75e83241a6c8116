package hooksetup

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn/internal/agents"
)

// A Level says whose sessions of an agent ask.
type Level string

// The levels: those in one project, all of this user, all on this machine.
const (
	Project Level = "project"
	User    Level = "user"
	Managed Level = "managed"
)

// A Setup is where edits are made, and what the hooks are to call.
type Setup struct {
	Bawn    string // absolute
	Home    string // absolute
	Project string // absolute, without symbolic links
	Root    string // below it lie the places of level Managed; "/" but in tests
	State   string // Bawn's own directory, for what undoes edits
	Getenv  func(string) string
	Stay    bool // commands that are allowed run where they are, in no sandbox
}

// flags are those of "bawn hook".
func (s Setup) flags() []string {
	if s.Stay {
		return []string{noSandbox}
	}
	return nil
}

// noSandbox is the flag of "bawn hook" that leaves commands where they are.
const noSandbox = "--no-sandbox"

// A Plan is what would be written for one agent, or what would be taken back.
type Plan struct {
	Agent string `json:"agent"`
	Level Level  `json:"level"`
	Edits []Edit `json:"edits"` // those that change nothing too
	// Remarks are what the human should know, or has to do besides.
	Remarks []string `json:"remarks,omitempty"`

	undo bool
}

// Changes reports whether the plan would change anything.
func (p Plan) Changes() bool { return slices.ContainsFunc(p.Edits, Edit.Changes) }

// An Edit is one file before and after. nil is no file.
type Edit struct {
	Path string
	Old  []byte
	New  []byte
	Mode fs.FileMode // of a file that is made

	base   string // nothing outside of it is written
	before []byte // what undoing it gives
	undo   bool
}

// Changes reports whether the edit would change anything.
func (e Edit) Changes() bool { return !bytes.Equal(e.Old, e.New) || (e.Old == nil) != (e.New == nil) }

// A NoHooksError says that an agent can't be told there to ask.
type NoHooksError struct {
	Agent string
	Level Level
	Other []Level // where it can
}

func (e *NoHooksError) Error() string {
	if len(e.Other) == 0 {
		return fmt.Sprintf("%s has no hooks that can veto", e.Agent)
	}
	return fmt.Sprintf("%s takes no hooks at the level %q", e.Agent, e.Level)
}

// A FileError says which file of an agent's can't be edited, and why.
type FileError struct {
	Path string
	Err  error
}

func (e *FileError) Error() string { return fmt.Sprintf("%q: %v", e.Path, e.Err) }
func (e *FileError) Unwrap() error { return e.Err }

// A part is one file of an agent's setup.
type part struct {
	path, base string
	mode       fs.FileMode
	put        func(old []byte) ([]byte, error)
	take       func(old, before []byte) ([]byte, error)
}

// Plan says what would be written so that an agent asks.
func (s Setup) Plan(a *agents.Agent, l Level) (Plan, error) { return s.plan(a, l, false) }

// Undo says what would be written to take back what was written for an agent at
// that level, in this project if it is Project.
func (s Setup) Undo(a *agents.Agent, l Level) (Plan, error) { return s.plan(a, l, true) }

func (s Setup) plan(a *agents.Agent, l Level, undo bool) (Plan, error) {
	parts, remarks, err := s.parts(a, l)
	if err != nil {
		return Plan{}, err
	}
	r, err := s.readRecord()
	if err != nil {
		return Plan{}, err
	}
	p := Plan{Agent: a.Name, Level: l, Remarks: remarks, undo: undo}
	if undo {
		p.Remarks = nil
	}
	for _, part := range parts {
		e, err := s.edit(part, r, s.by(a.Name, l), undo)
		if err != nil {
			return Plan{}, &FileError{part.path, err}
		}
		p.Edits = append(p.Edits, e)
	}
	return p, nil
}

// by names who has written a file.
func (s Setup) by(agent string, l Level) string {
	if l == Project {
		return agent + " " + string(l) + " " + s.Project
	}
	return agent + " " + string(l)
}

func (s Setup) edit(p part, r record, by string, undo bool) (Edit, error) {
	path, err := stay(p.base, p.path)
	if err != nil {
		return Edit{}, err
	}
	old, err := readFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Edit{}, err
	}
	e := Edit{Path: path, Old: old, Mode: p.mode, base: p.base, undo: undo}
	was, known := r.Files[path]
	untouched := known && was.After == digest(old)
	switch {
	case undo && untouched && was.only(by):
		e.New = was.before()
	case undo && !known: // what was before is not known, so the file stays
		e.New, err = p.take(old, []byte{})
	case undo:
		e.New, err = p.take(old, was.before())
	default:
		if e.New, err = p.put(old); err != nil || untouched {
			e.before = was.before()
			break
		}
		e.before, err = p.take(old, was.before())
		if errors.Is(err, errChanged) {
			e.before, err = nil, nil
		}
	}
	return e, err
}

// place resolves what an agent's data says to an absolute path and the directory
// that is not left for it.
func (s Setup) place(a *agents.Agent, l Level, p string) (path, base string, err error) {
	switch l {
	case Managed:
		return filepath.Join(s.Root, p), s.Root, nil
	case Project:
		if !filepath.IsLocal(p) {
			return "", "", fmt.Errorf("BUG(bawn): %q is no place in a project", p)
		}
		return filepath.Join(s.Project, p), s.Project, nil
	}
	path, ok := a.Expand(p, agents.World{Home: s.Home, Getenv: s.Getenv})
	if !ok || !filepath.IsAbs(path) {
		return "", "", fmt.Errorf("%q is no place of %s's own; look at the variables that name its directory", p, a.Title)
	}
	if base = s.Home; !strings.HasPrefix(path, base+"/") {
		base = filepath.Dir(path)
	}
	return path, base, nil
}

// stay returns where a path leads: a symbolic link within base is followed,
// one out of it is an error.
func stay(base, path string) (string, error) {
	realBase, err := resolve(base)
	if err != nil {
		return "", err
	}
	real, err := resolve(path)
	if err != nil {
		return "", err
	}
	if rel, err := filepath.Rel(realBase, real); err != nil || !filepath.IsLocal(rel) {
		return "", fmt.Errorf("a symbolic link leads to %q, out of %q; edit that file yourself, or put a file in the link's place", real, base)
	}
	return real, nil
}

// resolve follows the symbolic links of a path whose end may not exist yet.
func resolve(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return real, err
	}
	if _, err := os.Lstat(path); err == nil {
		return "", fmt.Errorf("%q is a symbolic link that leads to nothing; remove it", path)
	}
	dir, err := resolve(filepath.Dir(path))
	return filepath.Join(dir, filepath.Base(path)), err
}
