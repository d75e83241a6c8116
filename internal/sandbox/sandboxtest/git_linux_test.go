package sandboxtest

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest/probe"
)

// TestLosses shows what passes for a private git directory's doing outside, and
// that nothing beside it does.
func TestLosses(t *testing.T) {
	f := New(t, "/bin/sh", Self())
	made := probe.Info{State: probe.Absent, Git: "sub/deep/.git"}
	own := probe.Info{State: probe.Present, Git: probe.GitFile}
	nested := probe.Info{State: probe.Present, Git: probe.Nested + "/.git"}
	both := Options{OwnGit: true, MadeGit: true}
	for _, c := range []struct {
		name  string
		do    func(dir string) // in the workspace
		check probe.Info
		o     Options
		lost  bool
	}{
		{"an empty directory", func(dir string) { mkdir(t, dir, made.Git) }, made, both, false},
		{"an empty file", func(dir string) { put(t, "", dir, made.Git) }, made, both, false},
		{"the same of a provider that makes none", func(dir string) { mkdir(t, dir, made.Git) }, made, Options{OwnGit: true}, true},
		{"the same of a check of something else", func(dir string) { mkdir(t, dir, made.Git) }, probe.Info{State: probe.Absent}, both, true},
		{"a directory with an entry", func(dir string) { put(t, "", dir, made.Git, "x") }, made, both, true},
		{"a file with contents", func(dir string) { put(t, "gitdir: x\n", dir, made.Git) }, made, both, true},
		{"a link", func(dir string) { check(t, os.Symlink("nowhere", filepath.Join(dir, made.Git))) }, made, both, true},
		{"a FIFO", func(dir string) { check(t, unix.Mkfifo(filepath.Join(dir, made.Git), 0o644)) }, made, both, true},
		{"an entry in other letters", func(dir string) { mkdir(t, dir, "sub/deep/.GIT") }, made, both, true},
		{"an object", func(dir string) { object(t, filepath.Join(dir, ".git"), "blob", "x") }, own, both, false},
		{"an object of a provider that publishes none", func(dir string) { object(t, filepath.Join(dir, ".git"), "blob", "x") }, own, Options{}, true},
		{"an object in another repository", func(dir string) { object(t, filepath.Join(dir, nested.Git), "blob", "x") }, nested, both, true},
		{"an object that is not what it is called", func(dir string) { put(t, "x", dir, ".git/objects/00", strings.Repeat("0", 38)) }, own, both, true},
		{"a tree that names .git", func(dir string) {
			raw, err := hex.DecodeString(object(t, filepath.Join(dir, ".git"), "blob", "x"))
			check(t, err)
			object(t, filepath.Join(dir, ".git"), "tree", "100644 .git\x00"+string(raw))
		}, own, both, true},
		{"objects elsewhere", func(dir string) { put(t, "/nowhere\n", dir, ".git/objects/info/alternates") }, own, both, true},
		{"a hook", func(dir string) { put(t, "", dir, ".git/hooks/post-merge") }, own, both, true},
		{"a changed configuration", func(dir string) { put(t, "", dir, ".git/config") }, own, both, true},
		{"an index", func(dir string) { put(t, "", dir, ".git/index") }, own, both, true},
		{"a branch", func(dir string) { put(t, "", dir, ".git/refs/heads/new") }, own, both, true},
		{"a reference of Bawn's to nothing", func(dir string) { put(t, strings.Repeat("1", 40)+"\n", dir, ".git/refs/bawn/x") }, own, both, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := f.in(c.check.State)
			in.reset(t)
			c.do(in.Workspace)
			list := in.losses(t, c.o, c.check)
			list = slices.DeleteFunc(list, func(c string) bool { return strings.HasPrefix(c, "the host's process") }) // a shell is no victim
			if (len(list) > 0) != c.lost {
				t.Errorf("lost %q; want some: %v", list, c.lost)
			}
		})
	}
	if list := (Options{OwnGit: true}).unused(f, []probe.Info{own}, false); !slices.ContainsFunc(list, func(f Failure) bool { return f.Problem != "" }) {
		t.Error("it is not noticed that no check worked in a private git directory")
	}
}

func mkdir(t *testing.T, parts ...string) {
	t.Helper()
	check(t, os.MkdirAll(filepath.Join(parts...), 0o755))
}
