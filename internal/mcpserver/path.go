package mcpserver

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/fspath"
)

// maxLinks bounds the links on the way to a file.
const maxLinks = 40

// A spot is a name in the workspace, with the links on its way followed: the
// directory that holds it, opened, and its last element, which is no link.
type spot struct {
	dir  *os.Root
	base string
	path string // absolute, without links: what is put to the Judge
}

func (s *spot) close() { s.dir.Close() }

// outsideError is told where a path leads out of the workspace.
func outsideError(name string) error {
	return &deniedError{Verdict{
		Reason: fmt.Sprintf("%q leads out of the workspace", name), Rule: "builtin:tools-workspace",
		Remedy: "name a file below the workspace; other files can be read with exec, where the session sees them",
	}}
}

// relative is a path of a call below the workspace.
func (s *server) relative(name string) (string, error) {
	switch {
	case name == "":
		return "", errors.New("no path; want one relative to the workspace, or absolute below it")
	case strings.ContainsRune(name, 0):
		return "", fmt.Errorf("path %q holds a NUL", name)
	}
	clean := filepath.Clean(name)
	if filepath.IsAbs(clean) {
		if !fspath.Below(clean, s.Workspace) {
			return "", outsideError(name)
		}
		clean = strings.TrimPrefix(strings.TrimPrefix(clean, s.Workspace), "/")
		if clean == "" {
			clean = "."
		}
	}
	if !filepath.IsLocal(clean) {
		return "", outsideError(name)
	}
	return clean, nil
}

// locate follows the links of a path, within the workspace only. Directories
// on the way must exist.
func (s *server) locate(name string) (*spot, error) {
	at, err := s.relative(name)
	if err != nil {
		return nil, err
	}
	for range maxLinks {
		p, err := s.enter(name, at)
		if err != nil {
			return nil, err
		}
		to, err := p.dir.Readlink(p.base)
		if err != nil { // no link, or not there yet
			return p, nil
		}
		p.close()
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(p.path), to)
		}
		if at, err = s.relative(to); err != nil {
			return nil, outsideError(name)
		}
	}
	return nil, fmt.Errorf("%q has too many links on its way", name)
}

// enter opens the directory of a path and finds out where that is.
func (s *server) enter(name, at string) (*spot, error) {
	dir, err := s.root.OpenRoot(filepath.Dir(at))
	if err != nil {
		return nil, s.explain(name, err)
	}
	p := &spot{dir: dir, base: filepath.Base(at)}
	real, err := s.where(dir, filepath.Dir(at))
	if err != nil {
		p.close()
		return nil, s.explain(name, err)
	}
	p.path = filepath.Join(real, p.base)
	return p, nil
}

// where is the path of a directory that is open, without links. It errs where
// the directory was exchanged meanwhile.
func (s *server) where(dir *os.Root, at string) (string, error) {
	real, err := filepath.EvalSymlinks(filepath.Join(s.Workspace, at))
	if err != nil {
		return "", err
	}
	opened, err := dir.Stat(".")
	if err != nil {
		return "", err
	}
	found, err := os.Lstat(real)
	if err != nil {
		return "", err
	}
	if !fspath.Below(real, s.Workspace) || !os.SameFile(opened, found) {
		return "", errors.New("it was moved while it was looked up; try again")
	}
	return real, nil
}

// explain gives an error of a look-up the words of the call: no path of ours.
func (s *server) explain(name string, err error) error {
	var at *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%q does not exist", name)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%q can't be used: permission denied", name)
	case errors.As(err, &at) && strings.Contains(at.Err.Error(), "escapes"):
		return outsideError(name)
	case errors.As(err, &at):
		return fmt.Errorf("%q: %w", name, at.Err)
	}
	return fmt.Errorf("%q: %w", name, err)
}

// file is an action on a file.
func file(op bawn.Operation, path string) bawn.Action {
	return bawn.Action{Kind: bawn.Filesystem, Operation: op, Resource: path}
}
