// Package gitstore gives each session a private git directory over that of its
// repository, and publishes the guest's work into the repository: objects by
// checked packs, refs by compare-and-swap, the index entry by entry. No git of
// the host reads a file that the guest has written.
package gitstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A Repository is one that a session works on.
type Repository struct {
	Workspace string // real path
	Common    string // the common git directory, real path
	Admin     string // of a linked worktree, below Common; "" for the main one
}

// An UnsupportedError says why a repository gets no private git directory. Its
// git directory is then read-only for a session.
type UnsupportedError struct{ Path, Why string }

func (e *UnsupportedError) Error() string { return fmt.Sprintf("%q: %s", e.Path, e.Why) }

// Find returns the repository whose top directory a workspace is. It returns nil if
// the workspace is not the top directory of a repository, and for a bare
// repository. It errs with an *UnsupportedError if a session can't have a private
// git directory of the repository.
func Find(workspace string) (*Repository, error) {
	ws, err := filepath.EvalSymlinks(workspace)
	if err != nil {
		return nil, fmt.Errorf("find the repository: %w", err)
	}
	at := filepath.Join(ws, ".git")
	fi, err := os.Lstat(at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("find the repository: %w", err)
	case fi.IsDir():
		if !isGitDir(at) { // such as one that git does not know
			return nil, nil
		}
		return &Repository{Workspace: ws, Common: at}, nil
	case fi.Mode().IsRegular():
		return linked(ws, at)
	}
	return nil, &UnsupportedError{at, "it is neither a directory nor a file"}
}

// linked finds the repository of a linked worktree. The link is believed only if
// the repository points back at this very workspace, and lies outside of it: no
// guest of the workspace can have arranged that.
func linked(ws, file string) (*Repository, error) {
	admin, err := pointer(file, "gitdir: ", ws)
	if err != nil {
		return nil, &UnsupportedError{file, err.Error()}
	}
	if filepath.Base(filepath.Dir(admin)) != "worktrees" {
		if r := submodule(ws, admin); r != nil {
			return r, nil
		}
		return nil, &UnsupportedError{file, "its repository lies elsewhere, and this is neither a linked worktree of it nor a submodule"}
	}
	back, err := pointer(filepath.Join(admin, "gitdir"), "", admin)
	real, err2 := filepath.EvalSymlinks(admin)
	if err != nil || err2 != nil || back != file && back != real {
		if resolved, err3 := filepath.EvalSymlinks(back); err != nil || err2 != nil || err3 != nil || resolved != file {
			return nil, &UnsupportedError{file, "the repository that it names does not know this worktree"}
		}
	}
	common := filepath.Dir(filepath.Dir(real))
	switch {
	case common == ws || strings.HasPrefix(common, ws+"/"):
		return nil, &UnsupportedError{file, "the repository that it names lies in the workspace, where a guest may have made it"}
	case !isGitDir(common) || !plainName(filepath.Base(real)):
		return nil, &UnsupportedError{file, "what it names is no repository"}
	}
	return &Repository{Workspace: ws, Common: common, Admin: real}, nil
}

// submodule finds the repository of a submodule, by the same rule: its git directory
// lies among the modules of another, outside of the workspace, and points back.
func submodule(ws, admin string) *Repository {
	real, err := filepath.EvalSymlinks(admin)
	if err != nil || !strings.Contains(real, "/modules/") || inside(real, ws) || !isGitDir(real) {
		return nil
	}
	root, err := os.OpenRoot(real)
	if err != nil {
		return nil
	}
	defer root.Close()
	text, err := plainFile(root, "config", maxConfig)
	if err != nil {
		return nil
	}
	list, err := parseConfig(string(text))
	if err != nil {
		return nil
	}
	back := ""
	for _, s := range list {
		if s.section == "core" && s.sub == "" && s.key == "worktree" {
			back = fromDir(real, s.value)
		}
	}
	if back, err = filepath.EvalSymlinks(back); err != nil || back != ws {
		return nil
	}
	return &Repository{Workspace: ws, Common: real}
}

// pointer reads a file that holds one path, relative to base if it is not absolute.
func pointer(file, prefix, base string) (string, error) {
	root, err := os.OpenRoot(filepath.Dir(file))
	if err != nil {
		return "", err
	}
	defer root.Close()
	text, err := readFile(root, filepath.Base(file), 4096)
	if err != nil {
		return "", err
	}
	p, ok := strings.CutPrefix(strings.TrimRight(string(text), "\r\n"), prefix)
	if !ok || p == "" || strings.ContainsAny(p, "\n\x00") {
		return "", errors.New("it names no git directory")
	}
	if !filepath.IsAbs(p) {
		p = filepath.Join(base, p)
	}
	return filepath.Clean(p), nil
}

// isGitDir reports what git takes for a git directory.
func isGitDir(dir string) bool {
	for _, name := range []string{"objects", "refs"} {
		if fi, err := os.Stat(filepath.Join(dir, name)); err != nil || !fi.IsDir() {
			return false
		}
	}
	_, err := os.Lstat(filepath.Join(dir, "HEAD"))
	return err == nil
}

// plainName accepts the name of a worktree or of a session.
func plainName(s string) bool {
	return s != "" && s[0] != '.' && s[0] != '-' && len(s) <= 200 && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == '/' || r == 0x7f })
}

// rel is the worktree's git directory relative to the common one.
func (r *Repository) rel() string {
	if r.Admin == "" {
		return "."
	}
	return filepath.Join("worktrees", filepath.Base(r.Admin))
}
