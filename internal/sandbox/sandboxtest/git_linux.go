package sandboxtest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest/probe"
)

// privately reports whether what the check attacks lies in a private git
// directory inside. Then it may work, or miss what only the host's has: what is
// different outside decides.
func (o Options) privately(f *Fixtures, i probe.Info) bool {
	if i.Git == "" {
		return false
	}
	if _, there := f.snapshot.entries[tree(i.State, i.Git)]; there {
		return o.OwnGit && i.Git == probe.GitFile
	}
	return o.MadeGit
}

// tree is a path below a workspace as the snapshot has it.
func tree(state, name string) string { return filepath.Join("home/src", state, name) }

// losses are differences outside, except those that private git directories
// leave: an empty entry for each that these checks make, and objects of the
// guest's commits in the workspace's repository.
func (f *Fixtures) losses(t testing.TB, o Options, checks ...probe.Info) []string {
	t.Helper()
	var empty []string
	for _, i := range checks {
		if o.privately(f, i) {
			empty = append(empty, "+"+tree(i.State, i.Git))
		}
	}
	published := false
	list := slices.DeleteFunc(f.changed(t), func(c string) bool {
		if o.OwnGit && f.publishes(c) {
			published = true
			return true
		}
		return slices.Contains(empty, c) && f.isEmpty(c[1:])
	})
	if published {
		list = append(list, f.unsound()...)
	}
	return list
}

// isEmpty reports whether the entry is a directory without entries or a file
// without contents.
func (f *Fixtures) isEmpty(rel string) bool {
	p := filepath.Join(f.Base, rel)
	st, err := os.Lstat(p)
	if err != nil || !st.IsDir() {
		return err == nil && st.Mode().IsRegular() && st.Size() == 0
	}
	entries, err := os.ReadDir(p)
	return err == nil && len(entries) == 0
}

// publishes reports whether the change is a new object of the workspace's
// repository, or a new reference of Bawn's own. What says where more objects are
// (objects/info) is neither.
func (f *Fixtures) publishes(change string) bool {
	git := "+" + tree(f.State, probe.GitFile)
	for _, below := range []string{"/objects", "/refs/bawn"} {
		rest, ok := strings.CutPrefix(change, git+below)
		if !ok || rest != "" && rest[0] != '/' || rest == "/info" || strings.HasPrefix(rest, "/info/") {
			continue
		}
		st, err := os.Lstat(filepath.Join(f.Base, change[1:]))
		return err == nil && (st.IsDir() || st.Mode().IsRegular() && st.Mode().Perm()&0o111 == 0)
	}
	return false
}

// unsound says what git finds wrong with the workspace's repository. Objects are
// what their names say, and no tree names .git, where it finds nothing.
func (f *Fixtures) unsound() []string {
	var out bytes.Buffer
	cmd := exec.Command("git", "--git-dir", filepath.Join(f.Workspace, probe.GitFile), "fsck", "--full", "--strict", "--no-dangling")
	cmd.Dir, cmd.Stdout, cmd.Stderr = f.Base, &out, &out
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1"}
	if err := cmd.Run(); err != nil {
		return []string{"the repository is no longer sound: " + err.Error() + ": " + out.String()}
	}
	return nil
}

// unused is a failure where a provider says that it gives private git
// directories, and none of the checks below one worked.
func (o Options) unused(f *Fixtures, infos []probe.Info, worked bool) []Failure {
	claims := slices.ContainsFunc(infos, func(i probe.Info) bool { return i.State == f.State && o.wants(i) && o.privately(f, i) })
	if !claims || worked {
		return nil
	}
	return []Failure{{Problem: "no check worked below a private git directory, so that it is out of date that there is one: " + f.State}}
}
