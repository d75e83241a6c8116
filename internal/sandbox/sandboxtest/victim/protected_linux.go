package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest/probe"
)

// An attack tries to get the text of an attack to a protected place.
type attack struct {
	name, why string
	do        func(t target) error
	fits      func(name string) bool // nil: every protected name
	want      []errno                // besides linkRefused
}

// A target is one protected name below one directory.
type target struct {
	base string // absolute directory that somebody works in
	name string // protected, below base
}

func (t target) path() string { return filepath.Join(t.base, t.name) }

// parent is the directory of the file.
func (t target) parent() string { return filepath.Dir(t.path()) }

// top is the outermost component of the protected name.
func (t target) top() string {
	first, _, _ := strings.Cut(t.name, "/")
	return filepath.Join(t.base, first)
}

func inDir(name string) bool { return strings.Contains(name, "/") }

// planted reports whether the text of an attack is now at the target.
func (t target) planted() error { return planted(t.path()) }

func planted(p string) error {
	text, err := os.ReadFile(p)
	if err != nil || !bytes.Contains(text, evilText) {
		return nothing
	}
	return nil
}

// then is what an attack returns once its own call worked.
func (t target) then(err error) error {
	if err != nil {
		return err
	}
	return t.planted()
}

// presentChecks attack names that were there when the session began, in the
// workspace itself and in a repository inside it.
func presentChecks() []Check {
	var list []Check
	for _, a := range presentAttacks() {
		for _, place := range []string{"", probe.Nested} {
			if a.name == "A314" && place != "" {
				continue // a guest may remove what is in its workspace
			}
			list = append(list, attackChecks(a, probe.Present, place, probe.Protected)...)
		}
	}
	for _, e := range []struct{ name, like string }{{"E039", "A305:.git/hooks/pre-commit"}, {"E041", "A304:.git/config"}, {"E042", "A314:.git/hooks/pre-commit"}, {"E045", "A309:.git/config"}} {
		for i := range list {
			if list[i].Name == e.like {
				list[i].Name = e.name
			}
		}
	}
	return list
}

// attackChecks makes one check for every name that the attack fits.
func attackChecks(a attack, state, place string, names []string) []Check {
	var list []Check
	for _, name := range names {
		if a.fits != nil && !a.fits(name) || place != "" && slices.Contains(probe.Logins, strings.ToLower(name)) {
			continue
		}
		list = append(list, Check{
			Name: a.name + ":" + filepath.Join(place, name), Family: protectedFamily(a.name), Why: a.why, State: state, Changes: true,
			Git: gitOf(filepath.Join(place, name)), Want: append(a.want, linkRefused...),
			Do: func(fx Fixtures) error {
				return a.do(target{base: filepath.Join(fx.Workspace, place), name: name})
			},
		})
	}
	return list
}

// gitOf is the git directory that holds a path or is at it; "" where none does.
func gitOf(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		if strings.EqualFold(part, probe.GitFile) {
			return filepath.Join(parts[:i+1]...)
		}
	}
	return ""
}

func protectedFamily(name string) string {
	switch name {
	case "A304", "A305", "A306", "A307", "A308", "A312", "A314", "A325", "A329":
		return "protected-rename"
	case "A309", "A311", "A326", "A327", "A328":
		return "protected-link"
	}
	return "protected-create"
}

func presentAttacks() []attack {
	open := func(flags int) func(t target) error {
		return func(t target) error { return t.then(writeEvil(t.path(), flags)) }
	}
	return []attack{
		{"A301", "overwrite", open(unix.O_WRONLY), nil, nil},
		{"A302", "truncate and write", open(unix.O_WRONLY | unix.O_TRUNC | unix.O_CREAT), nil, nil},
		{"A303", "append", open(unix.O_WRONLY | unix.O_APPEND), nil, nil},
		{"A304", "rename onto it", func(t target) error { return t.then(replace(t.path())) }, nil, nil},
		{"A305", "rename what holds it, and put another in its place", renameTop, inDir, nil},
		{"A306", "rename its directory, and put another in its place", renameParent, deep, nil},
		{"A307", "exchange it", func(t target) error { return t.then(exchange(t.path(), false)) }, nil, nil},
		{"A308", "exchange its directory", func(t target) error { return t.then(exchangeDir(t)) }, inDir, nil},
		{"A309", "write to a hard link of it", writeAlias, nil, nil},
		{"A310", "truncate(2)", func(t target) error { return truncated(t.path()) }, nil, nil},
		{"A311", "write through a symbolic link to it", func(t target) error { return t.then(writeLink(t.path())) }, nil, nil},
		{"A312", "exchange its directory with a symbolic link", func(t target) error { return t.then(exchangeForLink(t)) }, inDir, nil},
		{"A313", "open it for reading, then again for writing", func(t target) error { return t.then(reopenEvil(t.path())) }, nil, []errno{unix.ELOOP}},
		{"A314", "remove it and make it anew", removeAndMake, func(n string) bool { return n == ".git/hooks/pre-commit" || n == ".git/config" }, nil},
	}
}

// deep names lie in a directory that is not the outermost component.
func deep(name string) bool { return strings.Count(name, "/") > 1 }

func writeEvil(p string, flags int) error {
	fd, err := unix.Open(p, flags|unix.O_CLOEXEC, 0o755)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, evilText)
	return err
}

// away moves p into the scratch directory.
func away(p string) error {
	to, err := scratchFile("away")
	if err != nil {
		return err
	}
	return unix.Rename(p, to)
}

func renameTop(t target) error { return moveAndRemake(t, t.top()) }

func renameParent(t target) error { return moveAndRemake(t, t.parent()) }

func moveAndRemake(t target, dir string) error {
	if err := away(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(t.parent(), 0o755); err != nil {
		return nil // moved away is bad enough
	}
	_ = writeNew(t.path())
	return nil
}

// exchange swaps a file of ours with p.
func exchange(p string, link bool) error {
	evil, err := evilFile()
	if err != nil {
		return err
	}
	if link {
		if evil, err = viaLink(evil); err != nil {
			return err
		}
	}
	return unix.Renameat2(unix.AT_FDCWD, evil, unix.AT_FDCWD, p, unix.RENAME_EXCHANGE)
}

// evilTree makes, in the scratch directory, what below is reaches from dir,
// and returns the root of that tree.
func evilTree(below string) (string, error) {
	root, err := scratchFile("tree")
	if err != nil {
		return "", err
	}
	p := filepath.Join(root, below)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		return "", broken(err)
	}
	return root, broken(os.WriteFile(p, evilText, 0o755))
}

func exchangeDir(t target) error {
	root, err := evilTree(filepath.Base(t.path()))
	if err != nil {
		return err
	}
	return unix.Renameat2(unix.AT_FDCWD, root, unix.AT_FDCWD, t.parent(), unix.RENAME_EXCHANGE)
}

func exchangeForLink(t target) error {
	root, err := evilTree(filepath.Base(t.path()))
	if err != nil {
		return err
	}
	link, err := viaLink(root)
	if err != nil {
		return err
	}
	return unix.Renameat2(unix.AT_FDCWD, link, unix.AT_FDCWD, t.parent(), unix.RENAME_EXCHANGE)
}

func writeAlias(t target) error {
	alias, err := scratchFile("alias")
	if err != nil {
		return err
	}
	if err := unix.Link(t.path(), alias); err != nil {
		return err
	}
	return t.then(writeEvil(alias, unix.O_WRONLY|unix.O_APPEND))
}

func truncated(p string) error {
	if err := unix.Truncate(p, 0); err != nil {
		return err
	}
	st, err := os.Stat(p)
	return found(err == nil && st.Size() == 0)
}

func writeLink(p string) error {
	link, err := viaLink(p)
	if err != nil {
		return err
	}
	return writeEvil(link, unix.O_WRONLY|unix.O_APPEND)
}

func reopenEvil(p string) error {
	fd, err := unix.Open(p, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err == unix.ENOENT {
		return err // no refusal that counts, but where a private git directory lacks it
	}
	if err != nil {
		return broken(err)
	}
	return writeEvil(fdPath(fd), unix.O_WRONLY|unix.O_APPEND)
}

func removeAndMake(t target) error {
	if err := unix.Unlink(t.path()); err != nil {
		return err
	}
	return t.then(writeNew(t.path()))
}
