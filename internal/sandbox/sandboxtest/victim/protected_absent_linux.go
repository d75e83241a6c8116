package main

import (
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest/probe"
)

// created are the checks of the catalogue that create one protected name.
var created = map[string]string{
	".git/hooks/pre-commit": "E021", ".git/config": "E022", ".git/config.worktree": "E023", ".git/info/attributes": "E024",
	".claude/settings.local.json": "E026", ".koda/agents/x.json": "E027", ".mcp.json": "E029", ".vscode/tasks.json": "E030",
	".codex/config.toml": "E033", ".envrc": "E035", ".husky/pre-commit": "E036",
}

// absentChecks attack names that did not exist when the session began: in the
// workspace, in an empty directory inside it, and in a repository that has only
// what git needs.
func absentChecks() []Check {
	all := append([]string{probe.GitFile}, probe.Protected...)
	var inRepo []string
	for _, n := range probe.Protected {
		if probe.InGit(n) && n != ".git/config" {
			inRepo = append(inRepo, n)
		}
	}
	var list []Check
	for _, a := range absentAttacks() {
		list = append(list, attackChecks(a, probe.Absent, "", all)...)
		list = append(list, attackChecks(a, probe.Absent, probe.Deep, all)...)
		if a.name != "A328" && a.name != "A329" { // .git itself is there
			list = append(list, attackChecks(a, probe.Absent, probe.Repo, inRepo)...)
		}
	}
	for i := range list {
		if e := created[strings.TrimPrefix(list[i].Name, "A321:")]; e != "" {
			list[i].Name = e
		}
		if strings.HasSuffix(list[i].Name, "/"+probe.GitFile) || strings.HasSuffix(list[i].Name, ":"+probe.GitFile) {
			list[i].Want = append(list[i].Want, nothing) // a worktree's pointer may be written, but not with our text
		}
	}
	return list
}

func absentAttacks() []attack {
	notGit := func(n string) bool { return n != probe.GitFile }
	onEvil := func(f func(evil, p string) error) func(t target) error {
		return withParents(func(t target) error {
			evil, err := evilFile()
			if err != nil {
				return err
			}
			return t.then(f(evil, t.path()))
		})
	}
	return []attack{
		{"A321", "create it", withParents(func(t target) error { return t.then(writeNew(t.path())) }), nil, nil},
		{"A322", "make a directory of its name", withParents(func(t target) error { return unix.Mkdir(t.path(), 0o755) }), notGit, nil},
		{"A323", "make the directory that holds it", makeOwnDirectory, ownDirectory, nil},
		{"A324", "make it with mknod", withParents(func(t target) error { return nodeOnly(t.path(), unix.S_IFREG|0o755) }), nil, nil},
		{"A325", "rename a file to it", onEvil(unix.Rename), nil, nil},
		{"A326", "link a file to it", onEvil(unix.Link), nil, nil},
		{"A327", "a symbolic link in its place", onEvil(unix.Symlink), nil, nil},
		{"A328", "a symbolic link in place of what holds it", func(t target) error { return treeTo(t, unix.Symlink) }, inDir, nil},
		{"A329", "rename a directory to what holds it", func(t target) error { return treeTo(t, unix.Rename) }, inDir, nil},
		{"A330", "a nameless file that gets its name", withParents(namelessFile), nil, nil},
		{"A331", "a FIFO in its place, on which the host hangs", withParents(func(t target) error { return nodeOnly(t.path(), unix.S_IFIFO|0o644) }), nil, nil},
		{"A332", "a socket in its place", withParents(socketOnly), nil, nil},
		{"A333", "create it with the oldest calls", withParents(func(t target) error { return t.then(legacyCreate(t.path())) }), nil, nil},
	}
}

// ownDirectory holds where the directory itself is nothing a guest may make.
func ownDirectory(name string) bool { return inDir(name) && !probe.InGit(name) }

// withParents makes the directories on the way, and removes them again if the
// attack is refused.
func withParents(f func(t target) error) func(t target) error {
	return func(t target) error {
		if err := makeParents(t.parent()); err != nil {
			return err
		}
		return f(t)
	}
}

func makeParents(dir string) error {
	err := unix.Mkdir(dir, 0o755)
	if err == unix.ENOENT {
		if err := makeParents(filepath.Dir(dir)); err != nil {
			return err
		}
		err = unix.Mkdir(dir, 0o755)
	}
	if err == nil {
		onUndo(func() { os.Remove(dir) })
	}
	if err == unix.EEXIST {
		return nil
	}
	return err
}

func makeOwnDirectory(t target) error {
	if err := makeParents(filepath.Dir(t.parent())); err != nil {
		return err
	}
	return unix.Mkdir(t.parent(), 0o755)
}

func nodeOnly(p string, mode uint32) error { return unix.Mknod(p, mode, 0) }

func socketOnly(t target) error {
	if err := unix.Chdir(t.parent()); err != nil { // a socket's path is short
		return broken(err)
	}
	return bindSocket("", "", filepath.Base(t.path()))
}

// treeTo puts a directory with the file in the place of the name's outermost
// component.
func treeTo(t target, f func(from, to string) error) error {
	_, rest, _ := strings.Cut(t.name, "/")
	root, err := evilTree(rest)
	if err != nil {
		return err
	}
	return t.then(f(root, t.top()))
}

func namelessFile(t target) error {
	fd, err := unix.Open(t.parent(), unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o755)
	if err == unix.EACCES || err == unix.EPERM || err == unix.EROFS || err == unix.EOPNOTSUPP {
		fd, err = unix.Open(filepath.Dir(scratch), unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o755)
	}
	if err != nil {
		return err
	}
	if _, err := unix.Write(fd, evilText); err != nil {
		return broken(err)
	}
	return t.then(unix.Linkat(unix.AT_FDCWD, fdPath(fd), unix.AT_FDCWD, t.path(), unix.AT_SYMLINK_FOLLOW))
}
