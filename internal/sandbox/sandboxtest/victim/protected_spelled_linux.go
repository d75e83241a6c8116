package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest/probe"
)

// spelledProtected creates and changes protected files by other spellings.
func spelledProtected() []Check {
	c := Check{Family: "protected-create", Want: linkRefused, Changes: true}
	create := func(p string) error { return thenPlanted(p, writeNew(p)) }
	change := func(p string) error { return thenPlanted(p, writeEvil(p, unix.O_WRONLY|unix.O_APPEND)) }
	at := func(parts ...string) func(fx Fixtures) string {
		return func(fx Fixtures) string { return filepath.Join(append([]string{fx.Workspace}, parts...)...) }
	}
	list := spelled(spellings(), "A341", "change a nested .git/config", c, change, at(probe.Nested, ".git/config"))
	list = append(list, spelled(spellings(), "A342", "change .envrc", c, change, at(".envrc"))...)
	c.State = probe.Absent
	list = append(list, spelled(spellings(), "A343", "create .mcp.json", c, create, at(".mcp.json"))...)
	list = append(list, spelled(spellings(), "A344", "create a nested .envrc", c, create, at(probe.Deep, ".envrc"))...)
	list = append(list, spelled(spellings(), "A345", "create a hook", c, create, at(probe.Repo, ".git/info/attributes"))...)
	list = append(list, spelled(spellings(), "A346", "rename a file to .envrc", c, func(p string) error { return thenPlanted(p, replace(p)) }, at(probe.Deep, ".envrc"))...)
	list = slices.DeleteFunc(list, func(c Check) bool { return c.Name == "A346:symlink" || c.Name == "A346:chain" }) // a rename replaces the link
	return append(list, caseChecks()...)
}

func thenPlanted(p string, err error) error {
	if err != nil {
		return err
	}
	return planted(p)
}

// caseChecks create protected names in other letters, which are the same file
// where the file system ignores case.
func caseChecks() []Check {
	var list []Check
	for _, name := range []string{".GIT/hooks/pre-commit", ".Git/config", ".VSCODE/tasks.json", ".Mcp.json", ".ENVRC", ".BashRC", ".Claude/settings.local.json", ".koda/AGENTS/x.json"} {
		list = append(list, attackChecks(attack{name: "A347", why: "create it in other letters",
			do: withParents(func(t target) error { return t.then(writeNew(t.path())) })}, probe.Absent, probe.Deep, []string{name})...)
	}
	return list
}

// gitConfig is what a guest must not get into a repository's configuration.
const gitConfig = "[core]\n\trepositoryformatversion = 0\n\tfsmonitor = \"" + probe.Evil1 + "\"\n"

// gitChecks use the ways by which git itself writes, which stay open to it.
func gitChecks() []Check {
	c := func(name, family, state, why string, do func(fx Fixtures) error, want ...errno) Check {
		return Check{Name: name, Family: family, State: state, Why: why, Do: do, Want: append(want, linkRefused...), Changes: true}
	}
	list := []Check{
		c("E046", "protected-link", probe.Absent, "a hook in a repository made deeper in the tree", newRepositoryHook),
		c("E048", "protected-link", probe.Present, "a worktree's metadata outside of the workspace", worktreeOutside),
		c("A350", "protected-create", probe.Absent, "a configuration that names a program, by way of config.lock", lockedConfig(probe.Deep)),
		c("A351", "protected-create", probe.Absent, "the same where a configuration is already", lockedConfig(probe.Repo)),
		c("A352", "protected-create", probe.Absent, "a .git file that points at a directory of the guest's", gitFileTo(probe.Deep), nothing),
		c("A353", "protected-create", probe.Absent, "a worktree's commondir that points at a directory of the guest's", commonDir, nothing),
		c("A354", "protected-create", probe.Absent, "a hook that was a sample", sampleHook),
		c("A355", "protected-create", probe.Absent, "a submodule's hook", nestedModule),
		c("A356", "protected-link", probe.Absent, "hooks as a link into the guest's files", hooksLink),
		c("A358", "protected-create", probe.Present, "another remote in a configuration taken away and made anew", remoteElsewhere),
		c("A357", "protected-rename", probe.Absent, "an object directory that becomes hooks", objectsToHooks),
	}
	made := map[string]string{"E046": "sub", "A350": probe.Deep, "A352": probe.Deep} // where there was no repository
	for i := range list {
		if place := made[list[i].Name]; place != "" {
			list[i].Git = filepath.Join(place, probe.GitFile)
		}
	}
	return list
}

func newRepositoryHook(fx Fixtures) error {
	t := target{base: filepath.Join(fx.Workspace, "sub"), name: ".git/hooks/post-checkout"}
	return withParents(func(t target) error { return t.then(writeNew(t.path())) })(t)
}

func worktreeOutside(fx Fixtures) error {
	dir := filepath.Join(fx.Workspace, "..", "wt-"+fx.Token)
	if err := makeParents(dir); err != nil {
		return err
	}
	return writeNew(filepath.Join(dir, ".git"))
}

func lockedConfig(place string) func(fx Fixtures) error {
	return func(fx Fixtures) error {
		git := filepath.Join(fx.Workspace, place, ".git")
		if err := makeParents(git); err != nil {
			return err
		}
		lock := filepath.Join(git, "config.lock")
		if err := createWith(lock, gitConfig); err != nil {
			return err
		}
		onUndo(func() { os.Remove(lock) })
		if err := unix.Rename(lock, filepath.Join(git, "config")); err != nil {
			return err
		}
		return contains(filepath.Join(git, "config"), probe.Evil1)
	}
}

func createWith(p, text string) error {
	fd, err := unix.Open(p, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, []byte(text))
	return err
}

func contains(p, text string) error {
	got, err := os.ReadFile(p)
	return found(err == nil && strings.Contains(string(got), text))
}

func gitFileTo(place string) func(fx Fixtures) error {
	return func(fx Fixtures) error {
		mine, err := evilTree("config")
		if err != nil {
			return err
		}
		p := filepath.Join(fx.Workspace, place, ".git")
		if err := createWith(p, "gitdir: "+mine+"\n"); err != nil {
			return err
		}
		onUndo(func() { os.Remove(p) })
		return contains(p, mine)
	}
}

func commonDir(fx Fixtures) error {
	dir := filepath.Join(fx.Workspace, probe.Repo, ".git/worktrees/w")
	if err := makeParents(dir); err != nil {
		return err
	}
	p := filepath.Join(dir, "commondir")
	if err := createWith(p, scratch+"\n"); err != nil {
		return err
	}
	onUndo(func() { os.Remove(p) })
	return contains(p, scratch)
}

func sampleHook(fx Fixtures) error {
	hooks := filepath.Join(fx.Workspace, probe.Repo, ".git/hooks")
	if err := makeParents(hooks); err != nil {
		return err
	}
	sample := filepath.Join(hooks, "pre-commit.sample")
	if err := writeNew(sample); err != nil {
		return err
	}
	onUndo(func() { os.Remove(sample) })
	hook := filepath.Join(hooks, "pre-commit")
	return thenPlanted(hook, unix.Rename(sample, hook))
}

func nestedModule(fx Fixtures) error {
	t := target{base: filepath.Join(fx.Workspace, probe.Repo), name: ".git/modules/a/b/hooks/post-checkout"}
	return withParents(func(t target) error { return t.then(writeNew(t.path())) })(t)
}

// remoteElsewhere would send the next push of the host to somebody else.
func remoteElsewhere(fx Fixtures) error {
	git := filepath.Join(fx.Workspace, probe.Spare, ".git")
	if err := unix.Unlink(filepath.Join(git, "config")); err != nil {
		return err
	}
	const text = "[core]\n\trepositoryformatversion = 0\n[remote \"origin\"]\n\turl = https://elsewhere.example/x.git\n"
	lock := filepath.Join(git, "config.lock")
	if err := createWith(lock, text); err != nil {
		return err
	}
	onUndo(func() { os.Remove(lock) })
	if err := unix.Rename(lock, filepath.Join(git, "config")); err != nil {
		return err
	}
	return contains(filepath.Join(git, "config"), "elsewhere.example")
}

func hooksLink(fx Fixtures) error {
	root, err := evilTree("pre-commit")
	if err != nil {
		return err
	}
	hooks := filepath.Join(fx.Workspace, probe.Repo, ".git/hooks")
	return thenPlanted(filepath.Join(hooks, "pre-commit"), unix.Symlink(root, hooks))
}

func objectsToHooks(fx Fixtures) error {
	git := filepath.Join(fx.Workspace, probe.Repo, ".git")
	dir := filepath.Join(git, "objects/zz")
	if err := makeParents(dir); err != nil {
		return err
	}
	hook := filepath.Join(dir, "pre-commit")
	if err := writeNew(hook); err != nil {
		return err
	}
	onUndo(func() { os.Remove(hook) })
	return thenPlanted(filepath.Join(git, "hooks/pre-commit"), unix.Rename(dir, filepath.Join(git, "hooks")))
}
